"""Read-only SQL of burn rules."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ...core.key import Key, MonitorKey, ServiceKey
from ...engine.pools import Tx
from ..rows import BurnRuleRow
from ..tables.burn_rules import _OF_MONITORS, _OF_SERVICES, _select

K = TypeVar("K", MonitorKey, ServiceKey)


async def select_rules_of_services(
    tx: Tx, services: Iterable[ServiceKey]
) -> dict[ServiceKey, dict[str, list[BurnRuleRow]]]:
    """Returns the rules by service and window, in order."""
    return _by_owner(ServiceKey, await _select(tx, _OF_SERVICES, list(services)))


async def select_rules_of_monitors(
    tx: Tx, monitors: Iterable[MonitorKey]
) -> dict[MonitorKey, dict[str, list[BurnRuleRow]]]:
    return _by_owner(MonitorKey, await _select(tx, _OF_MONITORS, list(monitors)))


def _by_owner(
    key_of: Callable[[Key], K], rows: Iterable[BurnRuleRow]
) -> dict[K, dict[str, list[BurnRuleRow]]]:
    found: dict[K, dict[str, list[BurnRuleRow]]] = {}
    for row in rows:
        owner = row.monitor if row.service is None else row.service
        assert owner is not None, "the database has one of them"
        found.setdefault(key_of((row.org, owner)), {}).setdefault(row.window, []).append(row)
    return found
