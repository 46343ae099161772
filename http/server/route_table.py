"""The route table: source of the app, the OpenAPI document and the access matrix."""

from functools import cache
from typing import Any, Final

import msgspec

from ...storage.accounts.rules.access import Need, Permission
from ..accounts.routes import (
    audit,
    auth_policy,
    group_roles,
    invitations,
    me,
    members,
    operations,
    organizations,
    password_resets,
    projects,
    tokens,
)
from ..accounts.routes import (
    local_login as signin,
)
from ..accounts.routes import (
    oidc_login as single_sign_on,
)
from ..accounts.routes import (
    oidc_settings as sign_on_settings,
)
from ..accounts.routes import (
    users as people,
)
from ..agents.routes import agent, agent_tokens, fleet
from ..alerting import routes as service_alerting
from ..bundles.routes import bundles, file_providers
from ..changes.routes import changes
from ..gate.routes import gate, gate_ledger, gate_overrides, gate_replay
from ..home.routes import bulk_actions, search, version
from ..incidents.routes import alert_routes, answers, incident_templates, incidents
from ..incidents.routes import alertmanager_intake as alerts
from ..maintenance.routes import maintenance, maintenance_series
from ..monitors.routes import event_stream as stream
from ..monitors.routes import (
    monitor_defaults,
    monitor_list,
    monitors,
    organization_limits,
    push,
    push_keys,
    push_runs,
    secrets,
)
from ..monitors.routes import monitor_results as results
from ..mutes import routes as mutes
from ..notifications.routes import (
    answer_secrets,
    channels,
    contacts,
    gateway,
    mail_settings,
    outbox,
    webhooks,
)
from ..notifications.routes import (
    global_silence as alerting,
)
from ..objectives.routes import sla, sla_targets
from ..oncall.routes import cover_requests, duties, escalation_policies, oncall
from ..retirement import routes as succession
from ..services.routes import response_times, service_reliability, services, support_hours
from ..status_pages.public.html_routes import ROUTES as PUBLIC_PAGES
from ..status_pages.public.subscription_forms import ROUTES as SUBSCRIBING
from ..status_pages.routes import (
    branding,
    month_reports,
    public_pages,
    status_pages,
)
from ..status_pages.routes import (
    page_subscriptions as subscriptions,
)
from ..wire.own_paths import base_path_now
from ..wire.route import Request, Response, Route
from .console_routes import ROUTES as PAGES
from .openapi_builder import describe


@cache
def _document(base_path: str) -> bytes:
    return msgspec.json.encode(describe(ROUTES, base_path))


async def _read_document(_ask: Request) -> Response:
    """Returns the OpenAPI document. It is here because the document covers all routes."""
    return Response(body=_document(base_path_now()))


ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *me.ROUTES,
    *version.ROUTES,
    *organizations.ROUTES,
    *members.ROUTES,
    *invitations.ROUTES,
    *projects.ROUTES,
    *operations.ROUTES,
    *bulk_actions.ROUTES,
    *tokens.ROUTES,
    *agent_tokens.ROUTES,
    *monitor_list.ROUTES,
    *monitors.ROUTES,
    *bundles.ROUTES,
    *file_providers.ROUTES,
    *secrets.ROUTES,
    *channels.ROUTES,
    *contacts.ROUTES,
    *escalation_policies.ROUTES,
    *oncall.ROUTES,
    *duties.ROUTES,
    *cover_requests.ROUTES,
    *webhooks.ROUTES,
    *incidents.ROUTES,
    *incident_templates.ROUTES,
    *alerts.ROUTES,
    *alert_routes.ROUTES,
    *answers.ROUTES,
    *maintenance.ROUTES,
    *maintenance_series.ROUTES,
    *mutes.ROUTES,
    *status_pages.ROUTES,
    *subscriptions.ROUTES,
    *public_pages.ROUTES,
    *month_reports.ROUTES,
    *branding.ROUTES,
    *alerting.ROUTES,
    *auth_policy.ROUTES,
    *mail_settings.ROUTES,
    *gateway.ROUTES,
    *answer_secrets.ROUTES,
    *sign_on_settings.ROUTES,
    *group_roles.ROUTES,
    *single_sign_on.ROUTES,
    *password_resets.ROUTES,
    *monitor_defaults.ROUTES,
    *organization_limits.ROUTES,
    *services.ROUTES,
    *support_hours.ROUTES,
    *service_reliability.ROUTES,
    *response_times.ROUTES,
    *service_alerting.ROUTES,
    *succession.ROUTES,
    *gate.ROUTES,
    *gate_overrides.ROUTES,
    *gate_ledger.ROUTES,
    *gate_replay.ROUTES,
    *changes.ROUTES,
    *results.ROUTES,
    *sla.ROUTES,
    *sla_targets.ROUTES,
    *push.ROUTES,
    *push_keys.ROUTES,
    *push_runs.ROUTES,
    *agent.ROUTES,
    *search.ROUTES,
    *stream.ROUTES,
    *audit.ROUTES,
    *outbox.ROUTES,
    *fleet.ROUTES,
    *people.ROUTES,
    Route(
        method="GET",
        path="/api/v1/openapi.json",
        action=Permission(Need.ANYONE),
        handler=_read_document,
        summary="This document.",
        tag="table",
        answer=dict[str, Any],
    ),
    *PUBLIC_PAGES,
    *SUBSCRIBING,
    *PAGES,
)
