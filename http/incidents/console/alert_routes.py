"""Screen of the alert routes of a project: the list, the form, and the test on a sample."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.alert_routes import select_route_targets, select_routes_of
from ....storage.incidents.rows import AlertRouteRow
from ....storage.incidents.rules.alert_route import LABELS_MOST, ROUTES_MOST
from ....storage.incidents.transactions.put_alert_routes import EDIT
from ....storage.mutes.rules.label_matcher import (
    TEXT_LONGEST,
    BadMatcher,
    MatchOperator,
    parse_matchers,
)
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, value_of
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import alert_routes as api
from ..schemas import AlertRoute, AlertRouteResult, AlertRoutes, AlertRoutesSample, AlertTarget

# Empty lines of the form beyond the routes.
_SPARE: Final = 2


class RoutesQuery(msgspec.Struct, frozen=True):
    """`show` is `edit` for the form."""

    show: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class RouteLine:
    """Line of the form. `target` is a kind and an id, such as `policy:…`, empty for none."""

    matchers: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class RoutesInput:
    """Values of the form. `faulty` is the index of the refused line, as text, or `sample`."""

    lines: Sequence[RouteLine] = ()
    default: str = ""
    sample: str = ""
    faulty: str = ""
    fault: str = ""
    tested: AlertRouteResult | None = None
    # Index of the line of each route, as empty lines are left out.
    places: Sequence[int] = field(default=())


async def render_routes(ask: Request) -> Response:
    if ask.query.show != "edit":
        return await _list(ask)
    async with ask.context.pool.transaction("console_alert_routes", read_only=True) as tx:
        rows = await select_routes_of(tx, org_of(ask), project_of(ask))
    has_default = bool(rows) and not rows[-1].matchers
    return await _form(
        ask,
        RoutesInput(
            lines=[RouteLine(row.matchers, _target(row)) for row in rows if row.matchers],
            default=_target(rows[-1]) if has_default else "",
        ),
    )


async def submit_routes(ask: Request) -> Response:
    """Tests the routes of the form on a sample, or saves them. A refused form keeps its values."""
    typed = _typed(ask)
    act = value_of(ask, "act")
    if act not in ("test", "save"):
        raise Problem("Unknown action")
    routes = [_route(typed.lines[place]) for place in typed.places]
    default = None
    if typed.default:
        service, policy = _ids(typed.default)
        default = AlertTarget(service_id=service, escalation_policy_id=policy)
    try:
        if act == "test":
            body = AlertRoutesSample(routes=routes, default=default, labels=_labels(typed.sample))
            return await _form(ask, replace(typed, tested=await api.test(replace(ask, body=body))))
        await api.put(replace(ask, body=AlertRoutes(routes=routes, default=default)))
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        return await _form(ask, _refused(typed, refused))
    return redirect(f"/projects/{ask.ids['projectID']}/alert-routes?done=save")


def _refused(typed: RoutesInput, refused: Refused) -> RoutesInput:
    """Returns the input with the fault at its line."""
    name = refused.field
    if name.startswith("routes["):
        number, _, rest = name.removeprefix("routes[").partition("]")
        what = "Matchers" if rest == ".matchers" else "Recipient"
        line = typed.places[int(number)]
        said = f"Route {line + 1}: {what} {refused.message}."
        return replace(typed, faulty=str(line), fault=said)
    if name == "labels":
        return replace(typed, faulty="sample", fault=f"Sample {refused.message}.")
    return replace(typed, faulty="default", fault=f"Default {refused.message}.")


def _typed(ask: Request) -> RoutesInput:
    """Reads the lines in their order. A line without matchers is left out."""
    matchers = [text.strip() for text in ask.form.get("matchers", [])[: ROUTES_MOST + _SPARE]]
    targets = ask.form.get("target", [])
    if len(targets) < len(matchers):
        raise Problem("Unknown action")
    lines = [RouteLine(*pair) for pair in zip(matchers, targets, strict=False)]
    return RoutesInput(
        lines=lines,
        default=value_of(ask, "default"),
        sample=stripped(ask, "sample"),
        places=[place for place, line in enumerate(lines) if line.matchers],
    )


def _labels(sample: str) -> dict[str, str]:
    """Returns the labels of a sample such as `severity="page", team="shop"`.

    Raises: Refused invalid.
    """
    try:
        found = parse_matchers(sample)
    except BadMatcher as fault:
        raise Refused("invalid", "labels", str(fault)) from None
    if any(one.operator is not MatchOperator.EQUAL for one in found):
        raise Refused("invalid", "labels", "must have the operator = only")
    return {one.name: one.value for one in found[:LABELS_MOST]}


def _route(line: RouteLine) -> AlertRoute:
    service, policy = _ids(line.target)
    return AlertRoute(matchers=line.matchers, service_id=service, escalation_policy_id=policy)


def _ids(target: str) -> tuple[UUID | UnsetType, UUID | UnsetType]:
    """Returns the id of the service and of the escalation policy, of which one is set at most."""
    if not target:
        return UNSET, UNSET
    kind, _, uid = target.partition(":")
    match kind:
        case "service":
            return uuid_given(uid), UNSET
        case "policy":
            return UNSET, uuid_given(uid)
        case _:
            raise Problem("Unknown action")


def _target(row: AlertRouteRow) -> str:
    if row.service_uid is not None:
        return f"service:{row.service_uid}"
    return "" if row.policy_uid is None else f"policy:{row.policy_uid}"


async def _form(ask: Request, typed: RoutesInput) -> Response:
    async with ask.context.pool.transaction("console_alert_routes_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        choices = await _choices(tx, ask)
    if not frame.may_write:
        raise Problem("forbidden")
    lines = list(typed.lines)
    empty = sum(not line.matchers for line in lines)
    lines += [RouteLine()] * min(max(_SPARE - empty, 0), max(ROUTES_MOST - len(lines), 0))
    return page(
        "incidents/console/alert_routes.html",
        status=400 if typed.fault else 200,
        frame=frame,
        what="edit",
        done="",
        path=f"/projects/{ask.ids['projectID']}/alert-routes",
        typed=typed,
        numbered=list(enumerate(lines)),
        outcome=_outcome(typed),
        matching=_matching(typed),
        choices=choices,
        matchers_longest=TEXT_LONGEST,
        most=ROUTES_MOST,
    )


def _outcome(typed: RoutesInput) -> str:
    match typed.tested:
        case AlertRouteResult(outcome="route", route=int() as index):
            return f"Route {typed.places[index] + 1} decides."
        case AlertRouteResult(outcome="default"):
            return "No route matches: the default decides."
        case AlertRouteResult():
            return "Unrouted: no route matches, so the alert pages nobody."
    return ""


def _matching(typed: RoutesInput) -> set[int]:
    """Returns the lines that match the sample."""
    if typed.tested is None:
        return set()
    pairs = zip(typed.places, typed.tested.matching, strict=True)
    return {place for place, is_match in pairs if is_match}


async def _choices(tx: Tx, ask: Request) -> list[tuple[str, str]]:
    """Returns (value, text) of each recipient."""
    found = await select_route_targets(tx, org_of(ask), project_of(ask))
    return [
        (f"{kind}:{uid}", f"{'Service' if kind == 'service' else 'Policy'} {name}")
        for kind, uid, name in found
    ]


async def _list(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_alert_routes", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_routes_of(tx, org_of(ask), project_of(ask))
    return page(
        "incidents/console/alert_routes.html",
        frame=frame,
        what="",
        done="Saved." if ask.query.done == "save" else "",
        path=f"/projects/{ask.ids['projectID']}/alert-routes",
        rows=rows,
        has_default=bool(rows) and not rows[-1].matchers,
    )


_PATH: Final = "/projects/{projectID}/alert-routes"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_routes,
        summary="Alert routes of a project.",
        query=RoutesQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_routes,
        summary="Test alert routes on a sample, or save them.",
    ),
)
