"""The one table of routes: the app, the OpenAPI document and the access matrix are made of it."""

from functools import cache
from typing import Any, Final

import msgspec

from ..storage.accounts.rules.access import Action, Need
from . import stream
from .console.pages import ROUTES as PAGES
from .describe import describe
from .publicpage.pages import ROUTES as PUBLIC_PAGES
from .publicpage.subscribing import ROUTES as SUBSCRIBING
from .route import Ask, Reply, Route
from .routes import (
    agent,
    agent_tokens,
    alerting,
    alerts,
    audit,
    auth_policy,
    branding,
    bundles,
    changes,
    channels,
    escalation_policies,
    file_providers,
    fleet,
    gate,
    gate_ledger,
    gate_overrides,
    gate_replay,
    incidents,
    mail_settings,
    maintenance,
    maintenance_series,
    me,
    members,
    monitor_defaults,
    monitors,
    oncall,
    organizations,
    outbox,
    password_resets,
    people,
    projects,
    public_pages,
    push,
    results,
    search,
    secrets,
    service_alerting,
    service_reliability,
    services,
    sign_on_settings,
    signin,
    single_sign_on,
    sla,
    sla_targets,
    status_pages,
    subscriptions,
    succession,
    tokens,
    version,
    webhooks,
)


@cache
def _document() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


async def _read_document(_ask: Ask) -> Reply:
    """Stands here and in no room of routes, as it tells of all of them."""
    return Reply(body=_document())


ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *me.ROUTES,
    *version.ROUTES,
    *organizations.ROUTES,
    *members.ROUTES,
    *projects.ROUTES,
    *tokens.ROUTES,
    *agent_tokens.ROUTES,
    *monitors.ROUTES,
    *bundles.ROUTES,
    *file_providers.ROUTES,
    *secrets.ROUTES,
    *channels.ROUTES,
    *escalation_policies.ROUTES,
    *oncall.ROUTES,
    *webhooks.ROUTES,
    *incidents.ROUTES,
    *alerts.ROUTES,
    *maintenance.ROUTES,
    *maintenance_series.ROUTES,
    *status_pages.ROUTES,
    *subscriptions.ROUTES,
    *public_pages.ROUTES,
    *branding.ROUTES,
    *alerting.ROUTES,
    *auth_policy.ROUTES,
    *mail_settings.ROUTES,
    *sign_on_settings.ROUTES,
    *single_sign_on.ROUTES,
    *password_resets.ROUTES,
    *monitor_defaults.ROUTES,
    *services.ROUTES,
    *service_reliability.ROUTES,
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
        action=Action(Need.ANYONE),
        handler=_read_document,
        summary="This document.",
        tag="table",
        answer=dict[str, Any],
    ),
    *PUBLIC_PAGES,
    *SUBSCRIBING,
    *PAGES,
)
