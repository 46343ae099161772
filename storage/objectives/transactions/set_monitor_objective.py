"""Objectives of monitors and projects, which editors set.

An objective is stored with four decimals, rounded half up. Projects have no burn rules: they could
not name the monitor that burns the budget.
"""

from collections.abc import Sequence
from uuid import UUID

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project
from ...accounts.transactions.object_marks import SETTINGS, expect_unmanaged_object
from ...core.availability import OBJECTIVE_SCALE, objective_e4
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.rows import MonitorRow
from ...monitors.transactions.lock_monitor import demand_monitor, expect_unmanaged_monitor
from ...services.tables.service_dependencies import lock_graph
from ..queries import monitor_targets as monitor_targets_queries
from ..queries import project_targets as project_targets_queries
from ..rows import BurnRuleRow, MonitorTarget, ProjectTarget
from ..rules import MONITOR_SHORT_LEAST_US, BurnRule, faults
from ..tables import burn_rules, monitor_targets, project_targets
from ..tables.burn_rules import BurnTarget
from .notify_burn import notify_unwatched, of_monitor

EDIT = Permission(Need.EDITOR)


async def set_monitor_objective(
    tx: Tx,
    principal: Principal,
    monitor: UUID,
    window: str,
    objective: float,
    rules: Sequence[BurnRule] | None,
    *,
    burn_enabled: bool,
) -> MonitorTarget:
    """Sets an objective. `rules` None keeps the existing rules. An equal one is not written.

    Raises: Refused not_found, forbidden, invalid, managed_by_file if a bundle states the
    objectives of the monitor.
    """
    row = await _lock_monitor(tx, principal, monitor)
    scaled = _scaled(objective)
    if rules is not None:
        for field, fault in faults(rules, MONITOR_SHORT_LEAST_US):
            raise Refused("invalid", field, fault)
    key = row.key
    told = await burn_rules.lock_notified_rules(tx, row.org, monitor=row.id)
    await notify_unwatched(tx, of_monitor(row), _unwatched(told, window, rules, burn_enabled))
    aim = BurnTarget(org=row.org, monitor=row.id, window=window)
    are_rules_changed = rules is not None and await burn_rules.replace_rules(tx, aim, rules)
    targets = await monitor_targets_queries.select_monitor_targets(tx, [key])
    before = targets.get(key, {}).get(window)
    same = before is not None and (before.objective, before.burn_enabled) == (scaled, burn_enabled)
    if before is not None and same and not are_rules_changed:
        return before
    await monitor_targets.put_monitor_target(tx, key, window, scaled, burn_enabled=burn_enabled)
    said = f"window={window} objective={scaled / OBJECTIVE_SCALE} burn_alert={burn_enabled}"
    await audit(tx, principal, row.org, "monitor.target", f"monitor:{row.uid} {said}")
    return (await monitor_targets_queries.select_monitor_targets(tx, [key]))[key][window]


async def delete_monitor_objective(
    tx: Tx, principal: Principal, monitor: UUID, window: str
) -> None:
    """Deletes an objective and its burn rules.

    Raises: Refused not_found, forbidden, managed_by_file.
    """
    row = await _lock_monitor(tx, principal, monitor)
    told = await burn_rules.lock_notified_rules(tx, row.org, monitor=row.id)
    await notify_unwatched(tx, of_monitor(row), [one for one in told if one.window == window])
    await burn_rules.replace_rules(tx, BurnTarget(org=row.org, monitor=row.id, window=window), [])
    await monitor_targets.delete_monitor_target(tx, row.key, window)
    said = f"monitor:{row.uid} window={window} objective=none"
    await audit(tx, principal, row.org, "monitor.target", said)


async def _lock_monitor(tx: Tx, principal: Principal, monitor: UUID) -> MonitorRow:
    row = await demand_monitor(tx, principal, EDIT, monitor)
    if await monitor_targets.are_targets_managed(tx, row.key):
        expect_unmanaged_monitor(principal, row)
    return row


def _unwatched(
    told: Sequence[BurnRuleRow], window: str, rules: Sequence[BurnRule] | None, enabled: bool
) -> list[BurnRuleRow]:
    """Returns the rules of the window that are removed or disabled."""
    return [
        row
        for row in told
        if row.window == window and not (enabled and (rules is None or row.rule in rules))
    ]


async def aim_for_project(
    tx: Tx, principal: Principal, project: UUID, window: str, objective: float
) -> ProjectTarget:
    """Sets the objective of a project. An equal one is not written.

    Raises: Refused not_found, forbidden, invalid, managed_by_file.
    """
    row = await _lock_settings(tx, principal, project)
    scaled = _scaled(objective)
    before = (await project_targets_queries.select_project_targets(tx, row.org, row.id)).get(window)
    if before is not None and before.objective == scaled:
        return before
    await project_targets.put_project_target(tx, row.org, row.id, window, scaled)
    said = f"window={window} objective={scaled / OBJECTIVE_SCALE}"
    await audit(tx, principal, row.org, "project.target", f"project:{row.uid} {said}")
    return (await project_targets_queries.select_project_targets(tx, row.org, row.id))[window]


async def delete_project_objective(
    tx: Tx, principal: Principal, project: UUID, window: str
) -> None:
    """Deletes an objective.

    Raises: Refused not_found, also without an objective, forbidden, managed_by_file.
    """
    row = await _lock_settings(tx, principal, project)
    if not await project_targets.delete_project_target(tx, row.org, row.id, window):
        raise Refused(NOT_FOUND)
    said = f"project:{row.uid} window={window} objective=none"
    await audit(tx, principal, row.org, "project.target", said)


async def report_weekly(tx: Tx, principal: Principal, project: UUID, *, enabled: bool) -> None:
    """Enables or disables the weekly report of a project. An equal setting is not written.

    Raises: Refused not_found, forbidden, managed_by_file.
    """
    row = await _lock_settings(tx, principal, project)
    if enabled == await project_targets_queries.is_reported_weekly(tx, row.org, row.id):
        return
    await project_targets.set_reported_weekly(tx, row.org, row.id, enabled=enabled)
    said = f"project:{row.uid} weekly={enabled}"
    await audit(tx, principal, row.org, "project.report", said)


async def _lock_settings(tx: Tx, principal: Principal, project: UUID) -> ProjectRow:
    """Locks the project as an application of a bundle does, which can own its settings."""
    row = await demand_project(tx, principal, EDIT, project)
    if await lock_graph(tx, row.org, row.id) is None:
        raise Refused(NOT_FOUND)
    await expect_unmanaged_object(tx, principal, row.org, row.id, SETTINGS, row.uid)
    return row


def _scaled(objective: float) -> int:
    scaled = objective_e4(objective)
    if scaled is None:
        raise Refused("invalid", "objective", "must be above 0 and below 100, to four decimals")
    return scaled
