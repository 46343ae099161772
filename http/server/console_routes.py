"""Every page of the console, for the one table of routes."""

from typing import Final

from ..accounts.console import audit_log as audit
from ..accounts.console import (
    group_roles,
    operation_screen,
    organization,
    profile,
    project_list,
    project_settings,
    sign_in_policy,
    token_list,
)
from ..accounts.console import oidc_settings as sign_on
from ..accounts.console import signin_screen as signin
from ..accounts.console import users as accounts
from ..accounts.form import invitation_accept, signed_out
from ..accounts.form import password_reset as reset
from ..agents.console import fleet_screen as fleet
from ..bundles.console import bundle_screen as bundle
from ..bundles.console import import_screen
from ..changes.console import change_detail as change
from ..changes.console import change_list as changes
from ..changes.console import project_changes
from ..gate.console import decision_list as gate_ledger
from ..gate.console import gate_screen as gate
from ..gate.console import policy_form as gate_policy_form
from ..home.console import bulk_progress, monitor_list
from ..home.console import overview_screen as overview
from ..home.console import search_screen as search
from ..incidents.console import alert_routes, answer_screen, incident_new, incident_templates
from ..incidents.console import incident_detail as incident
from ..incidents.console import incident_list as incidents
from ..maintenance.console import maintenance_screen as maintenance
from ..monitors.console import (
    monitor_copy,
    monitor_defaults,
    organization_limits,
    secrets,
)
from ..monitors.console import monitor_screen as monitor
from ..monitors.form import form_screen as monitor_form
from ..mutes import console as mutes
from ..notifications.console import (
    answer_secrets,
    channels,
    contacts,
    gateway_settings,
    mail_settings,
    webhook_list,
)
from ..notifications.console import failed_deliveries as dead_letters
from ..notifications.console import global_silence as silence
from ..objectives.console import objective_form as service_promise
from ..objectives.console import sla_report as sla
from ..oncall.console import escalation_policy_form as ladder_form
from ..oncall.console import oncall_screen as oncall
from ..oncall.console import schedule_form
from ..retirement import console as succession
from ..services.console import service_copy
from ..services.console import service_list as services
from ..services.console import service_screen as service
from ..services.form import declaration_form as service_declare
from ..services.form import dependency_form as service_edges
from ..services.form import new_service
from ..status_pages.console import branding
from ..status_pages.console import delete_page as status_page_removal
from ..status_pages.console import new_page as status_page_make
from ..status_pages.console import page_editor as status_page
from ..status_pages.console import page_list as status_pages
from ..status_pages.console import page_preview as status_page_preview
from ..status_pages.console import subscriber_list as status_page_followers
from ..ui import static_files as assets
from ..ui.pickers import objects as pickers
from ..ui.shell import help_screen, preferences, settings_index
from ..wire.route import Route

ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *reset.ROUTES,
    *invitation_accept.ROUTES,
    *signed_out.ROUTES,
    *overview.ROUTES,
    *monitor_list.ROUTES,
    *bulk_progress.ROUTES,
    *search.ROUTES,
    *monitor.ROUTES,
    *monitor_copy.ROUTES,
    *monitor_form.ROUTES,
    *incidents.ROUTES,
    *incident_new.ROUTES,
    *incident_templates.ROUTES,
    *alert_routes.ROUTES,
    *answer_screen.ROUTES,
    *pickers.ROUTES,
    *incident.ROUTES,
    *secrets.ROUTES,
    *bundle.ROUTES,
    *import_screen.ROUTES,
    *organization.ROUTES,
    *token_list.ROUTES,
    *project_list.ROUTES,
    *project_settings.ROUTES,
    *operation_screen.ROUTES,
    *audit.ROUTES,
    *accounts.ROUTES,
    *channels.ROUTES,
    *webhook_list.ROUTES,
    *services.ROUTES,
    *service_declare.ROUTES,
    *new_service.ROUTES,
    *service.ROUTES,
    *service_copy.ROUTES,
    *service_edges.ROUTES,
    *service_promise.ROUTES,
    *changes.ROUTES,
    *project_changes.ROUTES,
    *change.ROUTES,
    *gate.ROUTES,
    *gate_policy_form.ROUTES,
    *gate_ledger.ROUTES,
    *sla.ROUTES,
    *maintenance.ROUTES,
    *mutes.ROUTES,
    *oncall.ROUTES,
    *schedule_form.ROUTES,
    *ladder_form.ROUTES,
    *status_pages.ROUTES,
    *status_page_make.ROUTES,
    *status_page.ROUTES,
    *status_page_followers.ROUTES,
    *status_page_removal.ROUTES,
    *status_page_preview.ROUTES,
    *profile.ROUTES,
    *contacts.ROUTES,
    *succession.ROUTES,
    *silence.ROUTES,
    *monitor_defaults.ROUTES,
    *organization_limits.ROUTES,
    *branding.ROUTES,
    *sign_in_policy.ROUTES,
    *mail_settings.ROUTES,
    *gateway_settings.ROUTES,
    *answer_secrets.ROUTES,
    *sign_on.ROUTES,
    *group_roles.ROUTES,
    *dead_letters.ROUTES,
    *fleet.ROUTES,
    *settings_index.ROUTES,
    *preferences.ROUTES,
    *help_screen.ROUTES,
    *assets.ROUTES,
)
