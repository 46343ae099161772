"""All monitors of a project with their current status, for the screens that show or count them.

The statuses of a project are read once and reused while nothing has changed. They are exact: each
request compares the revision of the project, the clock is compared with the first instant at which
the passing of time changes a status, and the newest results are compared for monitors whose status
a new result of any kind would change. Details of the newest result (latency, message, consecutive
failures) can be RENEWED_US old; `refreshed` reads them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ....storage.alerting.queries.open_warnings import NO_WARNINGS, OpenWarnings, select_warnings
from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitors import (
    MonitorStatusRow,
    held_until,
    select_monitors_of_project,
    select_standings,
    still_troubled,
)
from ....storage.monitors.queries.probe_errors import select_probe_errors
from ....storage.monitors.rows import MonitorRow
from ....storage.results.queries.console_results import select_maintenance
from ....storage.results.queries.live_revision import (
    RESULTS_MOST,
    select_live_revision,
    select_newest_results,
)
from ....storage.scheduling.queries.region_list import select_regions
from ....storage.services.queries.service_health import KnownMonitor
from ...ui.live_page import RENEWED_US
from ...ui.monitor_status import MonitorStatusText, is_checked, shown
from ...wire.project_cache import ProjectCache
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of

_WITHOUT_RESULT: Final = frozenset({MonitorStatusText.UNKNOWN, MonitorStatusText.PENDING})
_HELD: Final = frozenset({MonitorStatusText.UP, MonitorStatusText.DOWN})


@dataclass(frozen=True, slots=True)
class MonitorData:
    """Monitor with its stored status and the status that is shown."""

    row: MonitorRow
    standing: MonitorStatusRow | None
    state: MonitorStatusText
    # Whether its region has no live worker or agent, so that no check runs.
    is_unserved: bool = False
    # Reason why no check was possible since the last result, empty if checks were possible. Only of
    # unknown and pending monitors.
    trouble: str = ""
    warnings: OpenWarnings = NO_WARNINGS

    @property
    def key(self) -> MonitorKey:
        return self.row.key

    @property
    def group(self) -> str:
        return self.row.tags[0] if self.row.tags else ""


@dataclass(slots=True, eq=False)
class ProjectStatuses:
    """Monitors of a project by group and name; untagged monitors are last.

    `dependent` contains values computed from these statuses, by name, each with the instant until
    which the passing of time does not change it. It is dropped with them.
    """

    monitors: Sequence[MonitorData]
    revision: str
    read_at: Instant
    # First instant at which the passing of time alone can change a status.
    until: Instant
    # Newest results of the monitors without a known status, None without a result.
    unsettled: Mapping[int, Instant | None]
    dependent: dict[str, tuple[object, Instant]]

    def known(self) -> dict[MonitorKey, KnownMonitor]:
        """Returns the monitors with a status, for reads that need them too."""
        return {
            item.key: KnownMonitor(item.row.type, item.row.enabled, item.row.region, item.standing)
            for item in self.monitors
            if item.standing is not None
        }


async def select_statuses(ask: Request, tx: Tx) -> ProjectStatuses:
    """Returns the statuses of the project, from the cache if nothing has changed."""
    context = ask.context
    regions = context.options.regions
    return await read_statuses(tx, context.statuses, org_of(ask), project_of(ask), regions)


async def read_statuses(
    tx: Tx,
    cache: ProjectCache[ProjectStatuses],
    org: int,
    project: int,
    regions: Collection[str],
) -> ProjectStatuses:
    """Returns the statuses of a project. `regions` are those that this installation declares."""
    # Read before the data: a change in between is in the data and differs from the revision.
    revision = await select_live_revision(tx, org, project, (), services=True)
    known = cache.get(org, project)
    if known is not None and await _is_current(tx, org, known, revision):
        return known
    monitors = await _select_monitors(tx, org, project, regions)
    unsettled = {
        item.row.id: item.standing.last_at if item.standing else None
        for item in monitors
        if item.state in _WITHOUT_RESULT
    }
    until = min([Instant(tx.now + RENEWED_US), *_ends(monitors, tx.now)])
    found = ProjectStatuses(monitors, revision, tx.now, until, unsettled, {})
    if len(unsettled) <= RESULTS_MOST:
        cache.put(org, project, found, len(monitors))
    else:
        cache.drop(org, project)
    return found


async def _is_current(tx: Tx, org: int, known: ProjectStatuses, revision: str) -> bool:
    if revision != known.revision or not known.read_at <= tx.now < known.until:
        return False
    if not known.unsettled:
        return True
    newest = await select_newest_results(tx, org, list(known.unsettled))
    return all(newest.get(monitor) == at for monitor, at in known.unsettled.items())


def _ends(monitors: Iterable[MonitorData], now: Instant) -> Iterable[Instant]:
    """Returns the instants at which a result is no longer fresh or a schedule term begins."""
    for item in monitors:
        standing = item.standing
        if standing is None:
            continue
        if standing.term_from > now:
            yield standing.term_from
        if item.state in _HELD and (until := held_until(standing, item.row.type, now)) is not None:
            yield until


async def _select_monitors(
    tx: Tx, org: int, project: int, regions: Collection[str]
) -> list[MonitorData]:
    rows = await select_monitors_of_project(tx, org, project)
    keys = [row.key for row in rows]
    standings = await select_standings(tx, keys)
    maintenance = await select_maintenance(tx, keys, tx.now)
    live = {name for name, is_live in await select_regions(tx, regions) if is_live}
    warnings = await select_warnings(tx, keys)
    found = [
        MonitorData(
            row,
            standings.get(key),
            shown(row, standings.get(key), maintenance.get(key, ()), tx.now),
            is_unserved=is_checked(row) and row.region not in live,
            warnings=warnings.get(key, NO_WARNINGS),
        )
        for row, key in zip(rows, keys, strict=True)
    ]
    found = await _with_troubles(tx, found)
    return sorted(found, key=lambda w: (not w.group, w.group.lower(), w.row.name.lower()))


async def refreshed(tx: Tx, items: Sequence[MonitorData]) -> list[MonitorData]:
    """Returns the monitors with their newest result and its status."""
    keys = [item.key for item in items]
    if not keys:
        return []
    standings = await select_standings(tx, keys)
    maintenance = await select_maintenance(tx, keys, tx.now)
    warnings = await select_warnings(tx, keys)
    found = [
        replace(
            item,
            standing=standings.get(key),
            state=shown(item.row, standings.get(key), maintenance.get(key, ()), tx.now),
            trouble="",
            warnings=warnings.get(key, NO_WARNINGS),
        )
        for item, key in zip(items, keys, strict=True)
    ]
    return await _with_troubles(tx, found)


async def _with_troubles(tx: Tx, found: list[MonitorData]) -> list[MonitorData]:
    asked = [w.key for w in found if w.state in _WITHOUT_RESULT]
    troubles = await select_probe_errors(tx, asked) if asked else {}
    if not troubles:
        return found
    told = {w.key: still_troubled(troubles.get(w.key), w.standing) for w in found}
    return [
        w if (error := told[w.key]) is None else replace(w, trouble=error.reason) for w in found
    ]
