"""Range of the latency plot: a preset, the time since creation, or two instants of the URL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....probes.check.cron_schedule import cron_schedule
from ....storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ....storage.core.refusal import Refused
from ....storage.monitors.rows import MonitorRow
from ....storage.scheduling.rules.run_schedule import anchor_for
from ...ui.time_inputs import range_typed, zone_named
from ...ui.time_slots import Axis

# Range → (length, smallest step).
RANGES: Final = {
    "1h": (HOUR, MINUTE),
    "24h": (DAY, 5 * MINUTE),
    "7d": (7 * DAY, 30 * MINUTE),
    "30d": (30 * DAY, 2 * HOUR),
    "90d": (90 * DAY, DAY),
    "1y": (365 * DAY, DAY),
}
WORDS: Final = {
    "1h": "1 h",
    "24h": "24 h",
    "7d": "7 d",
    "30d": "30 d",
    "90d": "90 d",
    "1y": "1 y",
}
SINCE_START: Final = "start"
CUSTOM: Final = "custom"
# The longest range that the latency API answers with points of a day is longer.
LONGEST_US: Final = 366 * DAY
# In longer ranges, a step is a day in UTC or more, because packed days are counted.
UNCOUNTED_US: Final = 31 * DAY
# Up to this number of runs, each run is a step.
RUNS_EACH: Final = 150
STEPS_MOST: Final = 300
# A young axis has at least this number of steps, the last ones in the future.
STEPS_LEAST: Final = 12
# Scheduled runs that a young axis shows.
RUNS_AHEAD: Final = 4
_STEPS: Final = tuple(n * MINUTE for n in (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880))


@dataclass(frozen=True, slots=True)
class LatencyRange:
    """`name` is a preset, `start` or `custom`. `from_at` and `to` are None for a preset."""

    name: str
    from_at: Instant | None = None
    to: Instant | None = None


def read_range(name: str, from_text_: str, to_text_: str, zone: str = "") -> LatencyRange | None:
    """Returns the range of the URL, None if it names none.

    Times without an offset are in the zone of the URL, so that the address has one meaning for
    all users; without a zone in UTC. Raises Refused invalid for a malformed or empty range.
    """
    if not from_text_ and not to_text_:
        return LatencyRange(name) if name else None
    of_url = zone_named(zone)
    begin = range_typed("from", from_text_, of_url, is_end=False)
    end = range_typed("to", to_text_, of_url, is_end=True)
    if end - begin < SECOND:
        raise Refused("invalid", "to", "must be after from")
    if end - begin > LONGEST_US:
        raise Refused("invalid", "to", "must be at most 366 days after from")
    return LatencyRange(CUSTOM, begin, end)


def presets(created_at: Instant, now: Instant) -> list[tuple[str, str]]:
    """Returns (name, words) of the ranges that the monitor is old enough for."""
    age_us = now - created_at
    found = [(name, WORDS[name]) for name, (length, _) in RANGES.items() if length <= age_us]
    return [(SINCE_START, "since start"), *found] if age_us < DAY else found


def axis_of_range(row: MonitorRow, chosen: LatencyRange | None, now: Instant) -> tuple[str, Axis]:
    """Returns the name of the range and its axis, which never starts before creation."""
    if chosen is None:
        chosen = LatencyRange("24h" if now - row.created_at >= DAY else SINCE_START)
    if chosen.from_at is not None and chosen.to is not None:
        begin = max(chosen.from_at, min(row.created_at, chosen.to - SECOND))
        return chosen.name, exact_axis(row, Instant(begin), chosen.to, now)
    if chosen.name == SINCE_START:
        begin = max(row.created_at, now - LONGEST_US)
        return chosen.name, exact_axis(row, Instant(begin), now, now)
    return chosen.name, since_creation(axis_of_latency(row, chosen.name, now), row.created_at)


def exact_axis(row: MonitorRow, begin: Instant, end: Instant, now: Instant) -> Axis:
    """Returns the steps that contain the range: one run each if there are few, else two or more."""
    interval_us = row.interval_seconds * SECOND
    length_us = max(end - begin, interval_us)
    if length_us <= RUNS_EACH * interval_us:
        step_us, origin = interval_us, grid_origin(row, now)
    else:
        fine_us = length_us // STEPS_MOST if length_us <= UNCOUNTED_US else DAY
        least_us = max(2 * interval_us, fine_us)
        step_us, origin = next((s for s in _STEPS if s >= least_us), _STEPS[-1]), Instant(0)
    start = begin - (begin - origin) % step_us
    many = max(-(-(end - start) // step_us), 1)
    return Axis(Instant(start), step_us, many)


def young_axis(row: MonitorRow, now: Instant) -> Axis | None:
    """Returns one step per run since creation, None once these are more than RUNS_EACH."""
    axis = exact_axis(row, row.created_at, Instant(now + 1), now)
    if axis.step_us != row.interval_seconds * SECOND or axis.many >= RUNS_EACH:
        return None
    return Axis(axis.from_at, axis.step_us, max(axis.many + RUNS_AHEAD, STEPS_LEAST))


def grid_origin(row: MonitorRow, now: Instant) -> Instant:
    """Returns the last due instant, from which steps of the interval contain one run each."""
    if row.schedule:
        return Instant(cron_schedule(row.schedule, row.timezone).last_through(now))
    return anchor_for(row.uid, row.interval_seconds * SECOND, now)


def since_creation(axis: Axis, created_at: Instant) -> Axis:
    """Returns the axis without the steps before creation, with at least STEPS_LEAST steps."""
    skipped = min(max((created_at - axis.from_at) // axis.step_us, 0), axis.many - 1)
    if not skipped:
        return axis
    return Axis(axis.start(skipped), axis.step_us, max(axis.many - skipped, STEPS_LEAST))


def axis_of_latency(row: MonitorRow, range_name: str, now: Instant) -> Axis:
    """Returns steps of at least two runs, so that an empty step is a real gap."""
    length_us, finest_us = RANGES[range_name]
    least_us = max(finest_us, 2 * row.interval_seconds * SECOND)
    step_us = next((step for step in _STEPS if step >= least_us), _STEPS[-1])
    many = max(length_us // step_us, 1)
    until = now - now % step_us + step_us
    return Axis(Instant(until - many * step_us), step_us, many)


def tick_distance(length_us: int, distances: Sequence[int]) -> int:
    """Returns the first distance with at most 12 ticks, else 30 days."""
    return next((us for us in distances if length_us <= 12 * us), 30 * DAY)
