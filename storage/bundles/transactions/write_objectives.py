"""Objectives and burn rules of a bundle's monitors, which are written after the services.

The evaluator of burn rules waits for the rules that change, so they are changed late.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import UNSET

from ...accounts.rules.access import Principal
from ...core.availability import objective_e4
from ...engine.pools import Tx
from ...monitors.tables.monitors import select_ids
from ...objectives.rows import PlainTarget
from ...objectives.tables.monitor_targets import delete_plain_targets, put_plain_targets
from ...objectives.transactions.set_monitor_objective import (
    delete_monitor_objective,
    set_monitor_objective,
)
from ..rules.bundle import Bundle
from ..rules.bundle_owner import is_left
from ..rules.bundle_settings import TargetEntry
from ..tables.bundle_ownership import mark_targets
from .bundle_context import ApplySource, BundleContext, under
from .service_entries import rule_of
from .write_monitors import Wanted


async def write_objectives(
    tx: Tx,
    bundle: Bundle,
    place: BundleContext,
    wanted: Wanted,
    applied: ApplySource,
    *,
    is_plan: bool,
) -> None:
    """Writes the changed objectives of monitors. A plan has checked them already.

    Raises:
        Refused with the faulty entry.
    """
    if is_plan:
        return
    own = {uid: row.uid for uid, row in wanted.rows.items()} | place.coming
    home, plain, gone = place.home, list[PlainTarget](), list[tuple[int, str]]()
    changed = [own[uid] for uid in wanted.targets]
    keys = await select_ids(tx, home.org, home.id, changed)
    for uid, before in wanted.targets.items():
        targets = bundle.monitors[uid].sla_targets
        assert isinstance(targets, Mapping), "the entry states objectives"
        with under(f"monitors.{uid}.sla_targets"):
            if _has_rules(before, targets):
                await _write_with_rules(tx, applied.principal, own[uid], targets, before)
                continue
        key = keys[own[uid]]
        for window, target in targets.items():
            scaled = objective_e4(target.objective)
            assert scaled is not None, "the comparison checked it"
            plain.append(PlainTarget(key, window, scaled, target.burn_alert_enabled))
        gone += [(key, window) for window in before.keys() - targets.keys()]
    # Thousands at once: one by one, each costs round trips.
    await put_plain_targets(tx, home.org, plain)
    await delete_plain_targets(tx, home.org, gone)
    stated = {
        own[uid]: one.sla_targets is not UNSET
        for uid, one in bundle.monitors.items()
        if not is_left(wanted.rows.get(uid), applied)
    }
    await mark_targets(tx, place.home.org, stated)


def _has_rules(before: Mapping[str, Any], targets: Mapping[Any, TargetEntry]) -> bool:
    had = any(one["burn_rules"] for one in before.values())
    return had or any(one.burn_rules for one in targets.values())


async def _write_with_rules(
    tx: Tx,
    who: Principal,
    monitor: UUID,
    targets: Mapping[Any, TargetEntry],
    before: Mapping[str, Any],
) -> None:
    for window, target in targets.items():
        await set_monitor_objective(
            tx,
            who,
            monitor,
            window,
            target.objective,
            [rule_of(one) for one in target.burn_rules],
            burn_enabled=target.burn_alert_enabled,
        )
    for window in before.keys() - targets.keys():
        await delete_monitor_objective(tx, who, monitor, window)
