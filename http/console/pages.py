"""Every page of the console, for the one table of routes."""

from typing import Final

from ..route import Route
from . import assets
from .accounts import page as accounts
from .audit import page as audit
from .branding import page as branding
from .bundle import page as bundle
from .changes import listing as changes
from .changes import one as change
from .channels import page as channels
from .dead_letters import page as dead_letters
from .fleet import page as fleet
from .gate import ledger as gate_ledger
from .gate import page as gate
from .gate import policy_form as gate_policy_form
from .incidents import listing as incidents
from .incidents import one as incident
from .mail_settings import page as mail_settings
from .maintenance import page as maintenance
from .monitor import page as monitor
from .monitor_defaults import page as monitor_defaults
from .monitor_form import page as monitor_form
from .oncall import ladder_form, schedule_form
from .oncall import page as oncall
from .organization import page as organization
from .overview import page as overview
from .profile import page as profile
from .secrets import page as secrets
from .service import page as service
from .service_form import declare as service_declare
from .service_form import edges as service_edges
from .service_form import promise as service_promise
from .services import page as services
from .sign_in_policy import page as sign_in_policy
from .sign_on import page as sign_on
from .signin import page as signin
from .signin import reset, signed_out
from .silence import page as silence
from .sla import page as sla
from .status_pages import editor as status_page
from .status_pages import followers as status_page_followers
from .status_pages import listing as status_pages
from .status_pages import make as status_page_make
from .status_pages import preview as status_page_preview
from .status_pages import removal as status_page_removal
from .succession import page as succession

ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *reset.ROUTES,
    *signed_out.ROUTES,
    *overview.ROUTES,
    *monitor.ROUTES,
    *monitor_form.ROUTES,
    *incidents.ROUTES,
    *incident.ROUTES,
    *secrets.ROUTES,
    *bundle.ROUTES,
    *organization.ROUTES,
    *audit.ROUTES,
    *accounts.ROUTES,
    *channels.ROUTES,
    *services.ROUTES,
    *service_declare.ROUTES,
    *service.ROUTES,
    *service_edges.ROUTES,
    *service_promise.ROUTES,
    *changes.ROUTES,
    *change.ROUTES,
    *gate.ROUTES,
    *gate_policy_form.ROUTES,
    *gate_ledger.ROUTES,
    *sla.ROUTES,
    *maintenance.ROUTES,
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
    *succession.ROUTES,
    *silence.ROUTES,
    *monitor_defaults.ROUTES,
    *branding.ROUTES,
    *sign_in_policy.ROUTES,
    *mail_settings.ROUTES,
    *sign_on.ROUTES,
    *dead_letters.ROUTES,
    *fleet.ROUTES,
    *assets.ROUTES,
)
