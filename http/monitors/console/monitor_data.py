"""Data of the monitor screen, read in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from ....storage.alerting.queries.alerting_state import Delegation, select_delegations
from ....storage.alerting.queries.console_outages import OpenOutage, select_open_outage
from ....storage.alerting.queries.flapping import select_flapping
from ....storage.alerting.queries.open_warnings import NO_WARNINGS, OpenWarnings, select_warnings
from ....storage.alerting.queries.paging_owners import select_owning
from ....storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ....storage.core.refusal import Refused
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import Days, select_days, select_windows
from ....storage.figures.queries.monitor_time import MonitorTime
from ....storage.monitors.queries.certificates import MonitorCertificate, select_certificates
from ....storage.monitors.queries.console_monitors import select_shown_monitor
from ....storage.monitors.queries.monitors import (
    MonitorStatusRow,
    select_standings,
    select_uids,
    still_troubled,
)
from ....storage.monitors.queries.probe_errors import select_probe_errors
from ....storage.monitors.rows import MonitorRow
from ....storage.monitors.rules.monitor import MonitorType
from ....storage.monitors.rules.monitor_state import freshness_us
from ....storage.mutes.queries import mutes_of_monitors
from ....storage.mutes.rows import MuteRow
from ....storage.regional.queries import (
    RegionalPart,
    select_members,
    select_regional_parts,
)
from ....storage.results.queries.console_results import (
    LatencyBin,
    ResultTimeline,
    select_courses,
    select_latency_bins,
    select_latency_plot,
    select_maintenance,
)
from ....storage.results.queries.push_bodies import select_push_bodies
from ....storage.results.queries.push_runs import PushRunRow, select_push_runs
from ....storage.results.queries.results import (
    HeartbeatRow,
    RunRow,
    select_failures,
    select_heartbeats,
    select_last_good,
    select_ledger,
)
from ....storage.results.rows import PushBodyRow
from ....storage.scheduling.queries.region_list import select_regions
from ....storage.scheduling.rules.run_schedule import longest_us, next_window
from ...ui.monitor_status import MonitorStatusText, is_checked, shown
from ...ui.shell.page_layout import PageLayout, frame_of
from ...ui.time_slots import Axis
from ...wire.route import Request
from .latency_range import LatencyRange, axis_of_range, grid_origin, young_axis
from .outage_trail import OutageTrail, select_trail
from .run_rows import RUNS_SHOWN

DAYS = 90
FAILURES = 10
SLOTS_MOST = 240
# More than the windows of the longest axis and those that are reserved ahead.
RUNS_MOST = 2_000
_COURSES = ((HOUR, 10 * MINUTE), (DAY, 4 * HOUR), (14 * DAY, 0))


@dataclass(frozen=True, slots=True)
class MonitorFacts:
    frame: PageLayout
    row: MonitorRow
    standing: MonitorStatusRow | None
    state: MonitorStatusText
    now: Instant
    next_due: Instant | None
    axis: Axis
    course: ResultTimeline
    runs: Sequence[RunRow]
    range_name: str
    latency_axis: Axis
    # None if the range has too many results.
    bins: Sequence[LatencyBin] | None
    maintenance: Sequence[TimeSpan]
    day: Sequence[LatencyBin]
    window_24h: MonitorTime
    days: Days
    last: HeartbeatRow | None
    last_good: HeartbeatRow | None
    failures: Sequence[HeartbeatRow]
    waits_for: Sequence[UUID]
    heartbeat_days: int
    # Reason why no check was possible since the last result, empty if checks were possible.
    trouble: str
    # Whether the region has no live worker or agent, so that no check runs.
    is_unserved: bool
    outage: OpenOutage | None
    flapping_since: Instant | None
    warnings: OpenWarnings
    certificate: MonitorCertificate | None
    # Owner of the monitor's paging.
    delegation: Delegation
    # Mutes in force, also those of services that page for the monitor.
    mutes: list[MuteRow]
    trail: OutageTrail | None
    push_runs: Sequence[PushRunRow]
    # Only for users who may write the monitor.
    push_bodies: Sequence[PushBodyRow]
    # What it is in a regional monitor, and the regions of that one with their states.
    regional: RegionalPart
    regions: Sequence[tuple[MonitorRow, MonitorStatusText]]

    @property
    def is_young(self) -> bool:
        return self.now - self.row.created_at < DAY


async def select_facts(ask: Request, chosen: LatencyRange | None) -> MonitorFacts:
    async with ask.context.pool.transaction("console_monitor", read_only=True) as tx:
        row = await select_shown_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        return await _facts(ask, tx, row, chosen)


async def _facts(
    ask: Request, tx: Tx, row: MonitorRow, chosen: LatencyRange | None
) -> MonitorFacts:
    key, now = row.key, tx.now
    frame, is_push = await frame_of(ask, tx), row.type == MonitorType.PUSH
    axis = young_axis(row, now) or course_axis(row, now)
    course = (await select_courses(tx, [key], axis.from_at, axis.until, axis.step_us))[key]
    standing = (await select_standings(tx, [key])).get(key)
    range_name, latency_axis = axis_of_range(row, chosen, now)
    maintenance = await select_maintenance(tx, [key], latency_axis.from_at)
    troubled = (await select_probe_errors(tx, [key])).get(key)
    trouble = still_troubled(troubled, standing)
    newest = await select_heartbeats(tx, key, 1)
    uids = await select_uids(tx, row.org, row.depends_on) if row.depends_on else {}
    window = next_window(course.terms, now) if row.enabled else None
    types = {key: row.type}
    delegation = (await select_delegations(tx, [key], now))[key]
    windows = await select_windows(tx, types, [DAY], ask.context.options.heartbeat_days)
    return MonitorFacts(
        frame=frame,
        row=row,
        standing=standing,
        state=shown(row, standing, course.maintenance, now),
        now=now,
        next_due=window.due if window else None,
        axis=axis,
        course=course,
        runs=await select_ledger(tx, key, axis.from_at, axis.until, None, RUNS_MOST),
        range_name=range_name,
        latency_axis=latency_axis,
        bins=await select_latency_plot(
            tx, key, latency_axis.from_at, latency_axis.until, latency_axis.step_us
        ),
        maintenance=maintenance.get(key, ()),
        day=await select_latency_bins(tx, key, Instant(now - DAY), Instant(now + 1), 2 * DAY),
        window_24h=windows[key][0].measured,
        days=(await select_days(tx, types, now, DAYS))[key],
        last=newest[0] if newest else None,
        last_good=await select_last_good(tx, key),
        failures=await select_failures(tx, key, FAILURES),
        waits_for=[uids[other] for other in row.depends_on if other in uids],
        heartbeat_days=ask.context.options.heartbeat_days,
        trouble=trouble.reason if trouble is not None else "",
        is_unserved=is_checked(row) and not await _is_live(ask, tx, row.region),
        outage=await select_open_outage(tx, *key),
        flapping_since=(await select_flapping(tx, [key])).get(key),
        warnings=(await select_warnings(tx, [key])).get(key, NO_WARNINGS),
        certificate=(await select_certificates(tx, [key])).get(key),
        delegation=delegation,
        mutes=(await mutes_of_monitors(tx, [key], await select_owning(tx, [key], now))).get(
            key, []
        ),
        trail=await select_trail(tx, row, [owner.uid for owner in delegation.live.owners]),
        push_runs=await select_push_runs(tx, key, RUNS_SHOWN) if is_push else [],
        push_bodies=await select_push_bodies(tx, key) if is_push and frame.may_write else [],
        regional=(await select_regional_parts(tx, [row])).get(row.id, RegionalPart()),
        regions=await _regions(tx, row),
    )


async def _regions(tx: Tx, row: MonitorRow) -> Sequence[tuple[MonitorRow, MonitorStatusText]]:
    members = await select_members(tx, row)
    if not members:
        return []
    keys = [member.key for member in members]
    standings = await select_standings(tx, keys)
    maintenance = await select_maintenance(tx, keys, tx.now)
    return [
        (one, shown(one, standings.get(one.key), maintenance.get(one.key, ()), tx.now))
        for one in members
    ]


async def _is_live(ask: Request, tx: Tx, region: str) -> bool:
    return (region, True) in await select_regions(tx, ask.context.options.regions)


def course_axis(row: MonitorRow, now: Instant) -> Axis:
    """Returns slots of one run each, or of the fewest runs that SLOTS_MOST allows.

    The slots begin at due instants, so that a run and its result are in the same slot.
    """
    interval_us = row.interval_seconds * SECOND
    length_us = next(length for length, least in _COURSES if interval_us <= least or not least)
    together = -(-length_us // (SLOTS_MOST * interval_us))
    step_us = interval_us * together
    many = max(length_us // step_us, 1)
    until = now + step_us - (now - grid_origin(row, now)) % step_us
    return Axis(Instant(until - many * step_us), step_us, many)


def is_probed(row: MonitorRow) -> bool:
    return row.type not in (MonitorType.PUSH, MonitorType.COMPOSITE)


def held_us(row: MonitorRow) -> int:
    """Returns for how long a result of the monitor is fresh, in microseconds."""
    interval_us = longest_us(row.interval_seconds, row.schedule, row.timezone)
    if row.type == MonitorType.PUSH:
        return interval_us + row.grace_seconds * SECOND
    return freshness_us(interval_us)
