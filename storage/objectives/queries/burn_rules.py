"""Reads of burn rules."""

from collections.abc import Iterable

from ...core.key import Key
from ...engine.pools import Tx
from ..rows import BurnRuleRow
from ..tables.burn_rules import _OF_MONITORS, _OF_SERVICES, _select


async def select_rules_of_services(
    tx: Tx, services: Iterable[Key]
) -> dict[Key, dict[str, list[BurnRuleRow]]]:
    """By service, and by window in their order."""
    return _by_owner(await _select(tx, _OF_SERVICES, list(services)))


async def select_rules_of_monitors(
    tx: Tx, monitors: Iterable[Key]
) -> dict[Key, dict[str, list[BurnRuleRow]]]:
    return _by_owner(await _select(tx, _OF_MONITORS, list(monitors)))


def _by_owner(rows: Iterable[BurnRuleRow]) -> dict[Key, dict[str, list[BurnRuleRow]]]:
    found: dict[Key, dict[str, list[BurnRuleRow]]] = {}
    for row in rows:
        owner = row.monitor if row.service is None else row.service
        assert owner is not None, "the database has one of them"
        found.setdefault((row.org, owner), {}).setdefault(row.window, []).append(row)
    return found
