"""Routes of the API for the routing of external alerts: read, replace, test on a sample."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.incidents.queries.alert_routes import select_routes_of
from ....storage.incidents.rows import AlertRouteRow
from ....storage.incidents.rules.alert_route import first_match, matching
from ....storage.incidents.transactions.put_alert_routes import (
    EDIT,
    RouteDraft,
    put_alert_routes,
    read_routes,
)
from ....storage.mutes.rules.label_matcher import parse_matchers
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ..schemas import AlertRoute, AlertRouteResult, AlertRoutes, AlertRoutesSample, AlertTarget

_ALL: Final = "/api/v1/projects/{projectID}/alert-routes"


async def read(ask: Request) -> AlertRoutes:
    async with ask.context.pool.transaction("read_alert_routes", read_only=True) as tx:
        rows = await select_routes_of(tx, org_of(ask), project_of(ask))
    default = None
    if rows and not rows[-1].matchers:
        default = AlertTarget(
            service_id=known(rows[-1].service_uid), escalation_policy_id=known(rows[-1].policy_uid)
        )
    return AlertRoutes(
        routes=[_route_json(row) for row in rows if row.matchers],
        default=default,
    )


async def put(ask: Request) -> AlertRoutes:
    body: AlertRoutes = ask.body
    default = None if body.default is None else _draft(body.default)
    async with ask.context.pool.transaction("put_alert_routes") as tx:
        await put_alert_routes(
            tx, ask.who, ask.ids["projectID"], [_draft(one) for one in body.routes], default
        )
    return await read(ask)


async def test(ask: Request) -> AlertRouteResult:
    """Decides about a sample. Nothing is saved, and the targets are not read."""
    body: AlertRoutesSample = ask.body
    routes = [parse_matchers(text) for text in read_routes([_draft(one) for one in body.routes])]
    found = first_match(routes, body.labels)
    if found is not None:
        return AlertRouteResult(
            outcome="route", route=found, matching=matching(routes, body.labels)
        )
    return AlertRouteResult(
        outcome="unrouted" if body.default is None else "default",
        matching=matching(routes, body.labels),
    )


def _route_json(row: AlertRouteRow) -> AlertRoute:
    return AlertRoute(
        matchers=row.matchers,
        service_id=known(row.service_uid),
        escalation_policy_id=known(row.policy_uid),
    )


def _draft(body: AlertTarget) -> RouteDraft:
    matchers = body.matchers if isinstance(body, AlertRoute) else ""
    return RouteDraft(
        matchers=matchers,
        service=given(body.service_id),
        policy=given(body.escalation_policy_id),
    )


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=read,
        summary="Read the routes of external alerts, in their order.",
        tag="alerts",
        answer=AlertRoutes,
    ),
    Route(
        method="PUT",
        path=_ALL,
        action=EDIT,
        scope=_PROJECT,
        handler=put,
        summary="Replace the routes of external alerts.",
        tag="alerts",
        body=AlertRoutes,
        answer=AlertRoutes,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ALL}/test",
        action=EDIT,
        scope=_PROJECT,
        handler=test,
        summary="Test routes of external alerts on the labels of a sample.",
        tag="alerts",
        body=AlertRoutesSample,
        answer=AlertRouteResult,
    ),
)
