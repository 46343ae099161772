"""Objectives and burn rules of a bundle's monitors, which are written after the services.

The evaluator of burn rules waits for the rules that change, so they are changed late.
"""

from collections.abc import Mapping

from msgspec import UNSET

from ...engine.pools import Tx
from ...objectives.transactions.set_monitor_objective import (
    delete_monitor_objective,
    set_monitor_objective,
)
from ..rules.bundle import Bundle
from ..rules.bundle_owner import is_left
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
    who = applied.principal
    for uid, before in wanted.targets.items():
        targets = bundle.monitors[uid].sla_targets
        assert isinstance(targets, Mapping), "the entry states objectives"
        with under(f"monitors.{uid}.sla_targets"):
            for window, target in targets.items():
                await set_monitor_objective(
                    tx,
                    who,
                    own[uid],
                    window,
                    target.objective,
                    [rule_of(one) for one in target.burn_rules],
                    burn_enabled=target.burn_alert_enabled,
                )
            for gone in before - targets.keys():
                await delete_monitor_objective(tx, who, own[uid], gone)
    stated = {
        own[uid]: one.sla_targets is not UNSET
        for uid, one in bundle.monitors.items()
        if not is_left(wanted.rows.get(uid), applied)
    }
    await mark_targets(tx, place.home.org, stated)
