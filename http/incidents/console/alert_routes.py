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
from ....storage.incidents.queries.alert_routes import select_route_marks, select_routes_of
from ....storage.incidents.rows import AlertRouteRow
from ....storage.incidents.rules.alert_route import LABELS_MOST, ROUTES_MOST
from ....storage.incidents.transactions.put_alert_routes import EDIT
from ....storage.mutes.rules.label_matcher import (
    TEXT_LONGEST,
    BadMatcher,
    MatchOperator,
    parse_matchers,
)
from ....storage.services.queries.pickable_objects import Pickable, PickableKind
from ...ui.bundle_notice import MANAGED_SAID, managed
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.pickers.objects import options_of, resolved, spelled
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import alert_routes as api
from ..schemas import AlertRoute, AlertRouteResult, AlertRoutes, AlertRoutesSample, AlertTarget

# Empty lines of the form beyond the routes.
_SPARE: Final = 2
_RECIPIENT: Final = PickableKind.RECIPIENT


class RoutesQuery(msgspec.Struct, frozen=True):
    """`show` is `edit` for the form."""

    show: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class RouteLine:
    """Line of the form. `target` is the text of the recipient, and `was` its hidden value."""

    matchers: str = ""
    target: str = ""
    was: str = ""


@dataclass(frozen=True, slots=True)
class RoutesInput:
    """Values of the form. `faulty` is the index of the refused line, as text, or `sample`."""

    lines: Sequence[RouteLine] = ()
    default: RouteLine = RouteLine()
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
            lines=[_line(row) for row in rows if row.matchers],
            default=_line(rows[-1]) if has_default else RouteLine(),
        ),
    )


async def submit_routes(ask: Request) -> Response:
    """Tests the routes of the form on a sample, or saves them. A refused form keeps its values."""
    typed = _typed(ask)
    act = value_of(ask, "act")
    if act not in ("test", "save"):
        raise Problem("Unknown action")
    try:
        routes, default = await _resolved(ask, typed)
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
    if refused.code == "managed_by_file":
        return replace(typed, fault=MANAGED_SAID)
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
    targets = [text.strip() for text in ask.form.get("target", [])]
    known = ask.form.get("was", [])
    if min(len(targets), len(known)) < len(matchers):
        raise Problem("Unknown action")
    lines = [RouteLine(*found) for found in zip(matchers, targets, known, strict=False)]
    return RoutesInput(
        lines=lines,
        default=RouteLine("", stripped(ask, "default"), value_of(ask, "default_was")),
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


async def _resolved(
    ask: Request, typed: RoutesInput
) -> tuple[list[AlertRoute], AlertTarget | None]:
    """Returns the routes and the default. Raises: Refused invalid if a text names no recipient."""
    routes = []
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        for number, place in enumerate(typed.places):
            line = typed.lines[place]
            service, policy = await _ids(ask, tx, line, f"routes[{number}].target")
            routes.append(
                AlertRoute(matchers=line.matchers, service_id=service, escalation_policy_id=policy)
            )
        service, policy = await _ids(ask, tx, typed.default, "default")
    if service is UNSET and policy is UNSET:
        return routes, None
    return routes, AlertTarget(service_id=service, escalation_policy_id=policy)


async def _ids(
    ask: Request, tx: Tx, line: RouteLine, field_: str
) -> tuple[UUID | UnsetType, UUID | UnsetType]:
    """Returns the id of the service and of the escalation policy, of which one is set at most."""
    org, project = org_of(ask), project_of(ask)
    found = await resolved(tx, org, project, _RECIPIENT, line.target, line.was, field_)
    if found is None:
        return UNSET, UNSET
    return (found.uid, UNSET) if found.type == "service" else (UNSET, found.uid)


def _line(row: AlertRouteRow) -> RouteLine:
    is_service = row.service_uid is not None
    uid = row.service_uid or row.policy_uid
    name = row.service_name if is_service else row.policy_name
    if uid is None or name is None:
        return RouteLine(row.matchers)
    one = Pickable(0, uid, name, None, "service" if is_service else "escalation policy")
    return RouteLine(row.matchers, *spelled(one, _RECIPIENT))


async def _form(ask: Request, typed: RoutesInput) -> Response:
    async with ask.context.pool.transaction("console_alert_routes_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        options = await options_of(tx, org_of(ask), project_of(ask), _RECIPIENT)
        marks = await select_route_marks(tx, org_of(ask), project_of(ask))
    if not frame.may_write:
        raise Problem("forbidden")
    lines = list(typed.lines)
    empty = sum(not line.matchers for line in lines)
    lines += [RouteLine()] * min(max(_SPARE - empty, 0), max(ROUTES_MOST - len(lines), 0))
    return page(
        "incidents/console/alert_routes.html",
        status=400 if typed.fault else 200,
        frame=frame,
        managed=None if marks is None else managed(marks, orphan_works=True),
        what="edit",
        done="",
        path=f"/projects/{ask.ids['projectID']}/alert-routes",
        typed=typed,
        numbered=list(enumerate(lines)),
        outcome=_outcome(typed),
        matching=_matching(typed),
        options=options,
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


async def _list(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_alert_routes", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_routes_of(tx, org_of(ask), project_of(ask))
        marks = await select_route_marks(tx, org_of(ask), project_of(ask))
    return page(
        "incidents/console/alert_routes.html",
        frame=frame,
        managed=None if marks is None else managed(marks, orphan_works=True),
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
