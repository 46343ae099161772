"""Reads of `service_alerting`."""

from collections.abc import Collection

from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rows import AlertingRow
from ..tables import service_alerting as service_alerting_table


async def select_alerting(tx: Tx, key: ServiceKey) -> AlertingRow | None:
    return await service_alerting_table.select_alerting(tx, key)


async def select_alertings(tx: Tx, keys: Collection[ServiceKey]) -> dict[ServiceKey, AlertingRow]:
    return await service_alerting_table.select_alertings(tx, keys)
