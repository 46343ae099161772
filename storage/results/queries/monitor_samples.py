"""Statuses of the first monitors of the installation, for metrics per monitor."""

from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.queries.monitors import status_of
from ...monitors.rules.monitor_state import MonitorStatus
from .composites import select_health

_FIRST: Final = """
select m.org, m.id, m.type, o.slug, p.slug, m.slug
from monitors m join organizations o on o.id = m.org
  join projects p on p.org = m.org and p.id = m.project
order by m.org, m.id limit %(most)s
"""
_COUNT: Final = "select count(*) from monitors"


class _Named(msgspec.Struct, frozen=True):
    org: int
    id: int
    type: str
    organization: str
    project: str
    monitor: str


class MonitorSample(msgspec.Struct, frozen=True):
    """Status of a monitor at the instant of the sample.

    `is_up` is None without a fresh result, and `latency_ms` too. `last_at` is the instant of the
    newest result.
    """

    organization: str
    project: str
    monitor: str
    type: str
    is_up: bool | None
    in_maintenance: bool
    latency_ms: int | None
    last_at: Instant | None


class MonitorSamples(msgspec.Struct, frozen=True):
    """Samples at one instant. `left_out` is the number of monitors beyond the limit."""

    at: Instant
    samples: list[MonitorSample]
    left_out: int


async def select_monitor_samples(tx: Tx, most: int) -> MonitorSamples:
    """Returns the statuses of the `most` oldest monitors of the first organizations."""
    rows = await tx.structs(_Named, _FIRST, most=most)
    health = await select_health(tx, [MonitorKey((row.org, row.id)) for row in rows], tx.now)
    total: int = await tx.value(_COUNT)
    samples = []
    for row in rows:
        key = MonitorKey((row.org, row.id))
        standing = health.standings.get(key)
        status = status_of(standing, row.type, tx.now, health.maintenance.get(row.id, ()))
        is_fresh = status is not MonitorStatus.PENDING
        samples.append(
            MonitorSample(
                organization=row.organization,
                project=row.project,
                monitor=row.monitor,
                type=row.type,
                is_up=status is MonitorStatus.UP if is_fresh else None,
                in_maintenance=health.is_in_maintenance(key),
                latency_ms=standing.latency_ms if standing is not None and is_fresh else None,
                last_at=standing.last_at if standing is not None else None,
            )
        )
    return MonitorSamples(tx.now, samples, max(total - len(rows), 0))
