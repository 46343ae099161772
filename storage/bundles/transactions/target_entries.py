"""Objectives of monitors, as in a bundle."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from ...core.availability import OBJECTIVE_SCALE
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...objectives.queries.burn_rules import select_rules_of_monitors
from ...objectives.queries.monitor_targets import select_monitor_targets
from ...objectives.rules import MONITOR_SHORT_LEAST_US, faults
from ..rules.bundle import MonitorEntry
from .service_entries import rule_in_words, rule_of, targets_in_words
from .write_settings import stored_objective


async def select_targets_in_words(
    tx: Tx, org: int, monitors: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Returns the objectives of monitors with one, by key."""
    keys = [MonitorKey((org, key)) for key in monitors]
    rules = await select_rules_of_monitors(tx, keys)
    return {
        key[1]: {
            window: {
                "objective": target.objective / OBJECTIVE_SCALE,
                "burn_alert_enabled": target.burn_enabled,
                "burn_rules": [
                    rule_in_words(one.rule) for one in rules.get(key, {}).get(window, ())
                ],
            }
            for window, target in sorted(targets.items())
        }
        for key, targets in (await select_monitor_targets(tx, keys)).items()
    }


def wanted_targets(path: str, entry: MonitorEntry) -> dict[str, Any] | None:
    """Returns the objectives that an entry states, None if it states none.

    Raises:
        Refused invalid with the objective or the burn rule.
    """
    if entry.sla_targets is UNSET:
        return None
    found = targets_in_words(entry.sla_targets)
    for window, target in entry.sla_targets.items():
        place = f"{path}.sla_targets.{window}"
        found[window]["objective"] = stored_objective(f"{place}.objective", target.objective)
        rules = [rule_of(one) for one in target.burn_rules]
        for field, fault in faults(rules, MONITOR_SHORT_LEAST_US):
            raise Refused("invalid", f"{place}.{field}", fault)
    return found
