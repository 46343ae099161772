"""Objectives of a monitor and of a project over a window, and the weekly-report setting."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.availability import OBJECTIVE_SCALE
from ....storage.core.instant import SECOND, to_text
from ....storage.core.key import MonitorKey
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.objectives.queries import burn_rules as burn_rules_queries
from ....storage.objectives.queries import project_targets as project_targets_queries
from ....storage.objectives.rows import ProjectTarget
from ....storage.objectives.rules import DEFAULT_RULES, BurnRule, BurnSeverity
from ....storage.objectives.transactions.set_monitor_objective import (
    EDIT,
    aim_for_project,
    delete_project_objective,
    report_weekly,
    set_monitor_objective,
)
from ...services.schemas.services import WindowName
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given
from ...wire.scope_keys import org_of, project_of
from ..schemas import (
    BurnRuleRequest,
    ReportedWeekly,
    ReportWeekly,
    SetMonitorTarget,
    SetProjectTarget,
    SLATarget,
)
from .sla import rule_json


class TargetQuery(msgspec.Struct, frozen=True):
    window: WindowName = "30d"


async def put_monitor_target(ask: Request) -> SLATarget:
    body: SetMonitorTarget = ask.body
    rules = given(body.burn_rules)
    async with ask.context.pool.transaction("set_monitor_objective") as tx:
        target = await set_monitor_objective(
            tx,
            ask.who,
            ask.ids["monitorID"],
            body.window,
            body.objective,
            await _rules_or_usual(ask, tx, body) if rules is None else _rules(rules),
            burn_enabled=body.burn_alert,
        )
        key = MonitorKey((target.org, target.monitor))
        owned = (await burn_rules_queries.select_rules_of_monitors(tx, [key])).get(key, {})
    return SLATarget(
        id=target.uid,
        monitor_id=ask.ids["monitorID"],
        objective=target.objective / OBJECTIVE_SCALE,
        window=body.window,
        burn_alert_enabled=target.burn_enabled,
        burn_rules=[rule_json(row) for row in owned.get(body.window, ())],
        created_at=to_text(target.created_at),
        updated_at=to_text(target.updated_at),
    )


async def _rules_or_usual(
    ask: Request, tx: Tx, body: SetMonitorTarget
) -> Sequence[BurnRule] | None:
    """Returns the default rules for a new alert; None to keep the rules of the window."""
    row = await select_monitor(tx, ask.ids["monitorID"])
    if row is None or not body.burn_alert:
        return None
    key = row.key
    owned = (await burn_rules_queries.select_rules_of_monitors(tx, [key])).get(key, {})
    return None if owned.get(body.window) else DEFAULT_RULES


def _rules(rules: Sequence[BurnRuleRequest]) -> list[BurnRule]:
    return [
        BurnRule(
            rule.long_window_seconds * SECOND,
            rule.short_window_seconds * SECOND,
            Fraction(str(rule.threshold)),
            BurnSeverity(rule.severity),
            rule.runbook_url,
        )
        for rule in rules
    ]


async def read_project_target(ask: Request) -> SLATarget:
    async with ask.context.pool.transaction("project_target", read_only=True) as tx:
        found = await project_targets_queries.select_project_targets(
            tx, org_of(ask), project_of(ask)
        )
    if ask.query.window not in found:
        raise Problem("not_found")
    return _project_target(ask, found[ask.query.window])


async def put_project_target(ask: Request) -> SLATarget:
    """Sets the objective of the window in the body, else in the query."""
    window = given(ask.body.window) or ask.query.window
    async with ask.context.pool.transaction("set_project_objective") as tx:
        target = await aim_for_project(
            tx, ask.who, ask.ids["projectID"], window, ask.body.objective
        )
    return _project_target(ask, target)


async def delete_project_target(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_project_objective") as tx:
        await delete_project_objective(tx, ask.who, ask.ids["projectID"], ask.query.window)


async def put_report(ask: Request) -> ReportedWeekly:
    async with ask.context.pool.transaction("report_weekly") as tx:
        await report_weekly(tx, ask.who, ask.ids["projectID"], enabled=ask.body.enabled)
    return ReportedWeekly(sla_report_weekly=ask.body.enabled)


def _project_target(ask: Request, target: ProjectTarget) -> SLATarget:
    return SLATarget(
        id=target.uid,
        project_id=ask.ids["projectID"],
        objective=target.objective / OBJECTIVE_SCALE,
        window=target.window,  # type: ignore[arg-type]
        burn_alert_enabled=False,
        burn_rules=[],
        created_at=to_text(target.created_at),
        updated_at=to_text(target.updated_at),
    )


_VIEW: Final = Permission(Need.VIEWER)
_MONITOR: Final = ("monitor", "monitorID")
_PROJECT: Final = ("project", "projectID")
_TARGET: Final = "/api/v1/projects/{projectID}/sla-target"

ROUTES: Final = (
    Route(
        method="PUT",
        path="/api/v1/monitors/{monitorID}/sla-target",
        action=EDIT,
        scope=_MONITOR,
        handler=put_monitor_target,
        summary="Set a monitor's objective and its burn rules.",
        tag="sla_targets",
        body=SetMonitorTarget,
        answer=SLATarget,
        also=(409,),
    ),
    Route(
        method="GET",
        path=_TARGET,
        action=_VIEW,
        scope=_PROJECT,
        handler=read_project_target,
        summary="Read the project's objective for a window.",
        tag="sla_targets",
        query=TargetQuery,
        answer=SLATarget,
    ),
    Route(
        method="PUT",
        path=_TARGET,
        action=EDIT,
        scope=_PROJECT,
        handler=put_project_target,
        summary="Set the project's objective for a window.",
        tag="sla_targets",
        query=TargetQuery,
        body=SetProjectTarget,
        answer=SLATarget,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path=_TARGET,
        action=EDIT,
        scope=_PROJECT,
        handler=delete_project_target,
        summary="Delete the project's objective for a window.",
        tag="sla_targets",
        query=TargetQuery,
        status=204,
        also=(409,),
    ),
    Route(
        method="PUT",
        path="/api/v1/projects/{projectID}/sla-report",
        action=EDIT,
        scope=_PROJECT,
        handler=put_report,
        summary="Enable or disable the project's weekly report.",
        tag="sla_targets",
        body=ReportWeekly,
        answer=ReportedWeekly,
        also=(409,),
    ),
)
