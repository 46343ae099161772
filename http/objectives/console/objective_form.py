"""Form of a service's objective with its burn rules, and the routes of its alerting form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import msgspec

from ....storage.core.instant import MINUTE, SECOND
from ....storage.core.refusal import Refused
from ....storage.core.runbook import RUNBOOK_LONGEST
from ....storage.objectives.queries.burn_rules import select_rules_of_services
from ....storage.objectives.queries.service_targets import select_service_targets
from ....storage.objectives.rules import (
    DEFAULT_RULES,
    LONG_LONGEST_US,
    RULES_MOST,
    BurnRule,
    BurnSeverity,
    threshold_of,
)
from ....storage.objectives.transactions.set_service_objective import put_burn_alerting, put_target
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_report import WINDOWS
from ....storage.services.transactions.lock_service import EDIT
from ...alerting.console import send_alerting, show_alerting
from ...ui.form_inputs import NONE, FieldFault, decimal, fault_of, typed_of
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, whole_number
from ...ui.formatting import setting
from ...ui.reliability_text import LABELS, objective_text, window_shown
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response


class ObjectiveQuery(msgspec.Struct, frozen=True):
    window: Literal["", "24h", "7d", "30d", "90d"] = ""


@dataclass(frozen=True, slots=True)
class ObjectiveFormData:
    frame: PageLayout
    row: ServiceRow
    aimed: Sequence[str]
    window: str
    typed: Mapping[str, str]


async def show_objective(ask: Request) -> Response:
    aim = await _aim(ask, ask.query.window)
    return _objective(aim, aim.typed)


async def send_objective(ask: Request) -> Response:
    window = stripped(ask, "window")
    if window not in WINDOWS:
        raise Problem("Unknown action")
    aim = await _aim(ask, window)
    row = aim.row
    try:
        objective = decimal("objective", stripped(ask, "objective"))
        rules = _rules(ask)
        enabled = "burn" in ask.form
        async with ask.context.pool.transaction("console_set_objective") as tx:
            await put_target(tx, ask.who, row.project_uid, row.uid, window, objective)
            await put_burn_alerting(
                tx, ask.who, row.project_uid, row.uid, window, rules, enabled=enabled
            )
    except Refused as refused:
        return _objective(aim, typed_of(ask), fault_of(refused))
    return redirect(f"/services/{row.uid}?window={window}")


def _rules(ask: Request) -> list[BurnRule]:
    """Reads the rows of burn rules. A row without a threshold is ignored."""
    found = []
    for n in range(RULES_MOST):
        threshold = stripped(ask, f"threshold-{n}")
        if not threshold:
            continue
        field = f"burn_rules[{n}]"
        try:
            severity = BurnSeverity(stripped(ask, f"severity-{n}"))
        except ValueError:
            raise Problem("Unknown action") from None
        long = whole_number(field, stripped(ask, f"long-{n}")) * MINUTE
        short = whole_number(field, stripped(ask, f"short-{n}")) * MINUTE
        runbook = stripped(ask, f"runbook-{n}")
        found.append(
            BurnRule(long, short, threshold_of(decimal(field, threshold)), severity, runbook)
        )
    return found


async def _aim(ask: Request, wanted: str) -> ObjectiveFormData:
    async with ask.context.pool.transaction("console_objective", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        frame = await frame_of(ask, tx)
        targets = (await select_service_targets(tx, [row.key]))[row.key]
        window = wanted or window_shown(targets)
        kept = (await select_rules_of_services(tx, [row.key])).get(row.key, {}).get(window, [])
    target = targets.get(window)
    typed = (
        {} if target is None else {"objective": objective_text(target.objective).removesuffix("%")}
    )
    if target is not None and target.burn_enabled:
        typed["burn"] = "on"
    rules = [one.rule for one in kept] or list(DEFAULT_RULES)
    for n, rule in enumerate(rules):
        typed[f"long-{n}"] = str(rule.long_us // MINUTE)
        typed[f"short-{n}"] = str(rule.short_us // MINUTE)
        typed[f"threshold-{n}"] = f"{float(rule.threshold):g}"
        typed[f"severity-{n}"] = rule.severity.value
        typed[f"runbook-{n}"] = rule.runbook_url
    return ObjectiveFormData(frame, row, list(targets), window, typed)


def _objective(
    aim: ObjectiveFormData, typed: Mapping[str, str], fault: FieldFault = NONE
) -> Response:
    names = ("long", "short", "threshold", "severity", "runbook")
    return page(
        "objectives/console/objective_form.html",
        status=400 if fault.text else 200,
        frame=aim.frame,
        row=aim.row,
        window=aim.window,
        windows=list(LABELS.items()),
        aimed=aim.aimed,
        objective=typed.get("objective", ""),
        burn="burn" in typed,
        rules=[{name: typed.get(f"{name}-{n}", "") for name in names} for n in range(RULES_MOST)],
        severities=[one.value for one in BurnSeverity],
        longest=setting(LONG_LONGEST_US // SECOND),
        runbook_longest=RUNBOOK_LONGEST,
        fault=fault,
    )


_OBJECTIVE: Final = "/services/{serviceID}/objective"
_ALERTING: Final = "/services/{serviceID}/alerting"
_SERVICE: Final = ("service", "serviceID")

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route(
        "GET",
        _OBJECTIVE,
        _SERVICE,
        show_objective,
        "Form of a service objective.",
        ObjectiveQuery,
    ),
    _route(
        "POST",
        _OBJECTIVE,
        _SERVICE,
        send_objective,
        "Set an objective with its burn rules.",
        ObjectiveQuery,
    ),
    _route(
        "GET",
        _ALERTING,
        _SERVICE,
        show_alerting,
        "Form of the alerting policy of a service.",
        ObjectiveQuery,
    ),
    _route(
        "POST",
        _ALERTING,
        _SERVICE,
        send_alerting,
        "Set the alerting policy of a service.",
        ObjectiveQuery,
    ),
)
