"""Person on call by a schedule of layers: the one rule that API, calendar, console and pager use.

Invariant: at most one channel is on call at every instant. A gap has none.

Each layer rotates its participants. Shifts follow each other from the anchor in both directions, so
that instants before the anchor have a shift too. Without a timezone, a shift has a fixed elapsed
length. With a timezone, hand-offs occur at the same local times. The shift in which clocks go
forward is shorter by that change, and the shift in which they go back is longer. A hand-off at a
skipped local time occurs when the clocks go forward; at a repeated local time, at its first
occurrence. A layer is active from `starts_at` to `ends_at`, and only in its weekly hours. Of the
active layers, the last one takes precedence. An override takes precedence over the layers; of
several, the newest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...core.instant import (
    DAY,
    EARLIEST,
    HOUR,
    LATEST,
    Instant,
    from_datetime,
    is_timezone,
    to_datetime,
)
from .weekly_hours import WeeklyWindow, first_instant, hours_at, windows_fault, zone_of_name

SHIFT_SECONDS = (3_600, 366 * 86_400)
PARTICIPANTS = (1, 100)
LAYERS_MOST = 20
WINDOWS_OF_SCHEDULE_MOST = 200
OVERRIDE_LONGEST_US = 366 * 24 * HOUR
# Limits of anchors and overrides, far from the limits of `datetime`.
EARLIEST_YEAR, LATEST_YEAR = 1970, 2200
_EARLIEST = from_datetime(datetime(EARLIEST_YEAR, 1, 1, tzinfo=UTC))
_LATEST = from_datetime(datetime(LATEST_YEAR, 1, 1, tzinfo=UTC))
# Edges of a gap that never began or never ends.
GAP_FROM, GAP_UNTIL = EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class OnCallLayer:
    """Rotation of `participants` (channel ids). An empty `timezone` counts elapsed time.

    `windows` are the weekly hours in the timezone, or in UTC without one; empty for all hours.
    """

    anchor_at: Instant
    shift_us: int
    participants: tuple[int, ...]
    timezone: str = ""
    windows: tuple[WeeklyWindow, ...] = ()
    starts_at: Instant | None = None
    ends_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class OnCallSchedule:
    """Layers from the lowest precedence to the highest."""

    layers: tuple[OnCallLayer, ...]


@dataclass(frozen=True, slots=True)
class OnCallOverride:
    """Override of a schedule. `number` ascends in the order of creation."""

    number: int
    channel: int
    starts_at: Instant
    ends_at: Instant


@dataclass(frozen=True, slots=True)
class Duty:
    """Span [from_at, until) with one channel on call, or with none.

    `layer` is the position of the layer. It is None for a gap and for an override.
    """

    channel: int | None
    from_at: Instant
    until: Instant
    override: OnCallOverride | None = None
    layer: int | None = None

    @property
    def is_gap(self) -> bool:
        return self.channel is None


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a duty. Pieces of one duty have the same layer and shift."""

    layer: int | None
    shift: int
    from_at: Instant
    until: Instant


def stretch(roster: OnCallSchedule, overrides: Sequence[OnCallOverride], at: Instant) -> Duty:
    """Returns the whole span of the shift, gap or override at an instant.

    Overrides cut a shift, and newer overrides cut an override. The edges of the span are the
    instants at which a hand-off, a layer, a new override or the end of one changes the duty.
    """
    holding = _holding(overrides, at)
    if holding is None:
        duty = _layer_duty(roster, at)
        from_at, until, channel, layer = duty.from_at, duty.until, duty.channel, duty.layer
    else:
        from_at, until, channel, layer = holding.starts_at, holding.ends_at, holding.channel, None
    for other in overrides:
        # No newer override is active at this instant: it has ended or has not started.
        if holding is None or other.number > holding.number:
            if other.ends_at <= at:
                from_at = max(from_at, other.ends_at)
            else:
                until = min(until, other.starts_at)
    return Duty(channel, from_at, until, holding, layer)


def duties(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], from_at: Instant, until: Instant
) -> Iterator[Duty]:
    """Yields the duties between two instants in order, the first and the last one cut."""
    at = from_at
    while at < until:
        duty = stretch(roster, overrides, at)
        ends = min(duty.until, until)
        yield Duty(duty.channel, at, ends, duty.override, duty.layer)
        at = ends


def gaps(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], from_at: Instant, until: Instant
) -> Iterator[Duty]:
    """Yields the spans between two instants in which nobody is on call."""
    return (duty for duty in duties(roster, overrides, from_at, until) if duty.is_gap)


def windows_of_schedule_fault(layers: Sequence[Sequence[WeeklyWindow]]) -> tuple[int, str] | None:
    """Returns the position of the layer whose windows exceed the bound of a schedule, and the rule.

    The duties of a week, and the time to compute them, grow with the windows of all layers.
    """
    total = 0
    for place, windows in enumerate(layers):
        total += len(windows)
        if total > WINDOWS_OF_SCHEDULE_MOST:
            most = WINDOWS_OF_SCHEDULE_MOST
            return place, f"must have at most {most} entries in all layers of the schedule together"
    return None


def layer_fault(layer: OnCallLayer, participants: int) -> tuple[str, str] | None:
    """Returns the invalid field of a layer and its rule. `participants` is their number."""
    fault = roster_fault(layer.anchor_at, layer.shift_us // 1_000_000, participants, layer.timezone)
    if fault is not None:
        return fault
    wrong = windows_fault(layer.windows)
    if wrong is not None:
        return "restrictions", wrong
    for field, at in (("starts_at", layer.starts_at), ("ends_at", layer.ends_at)):
        wrong = None if at is None else _instant_fault(at)
        if wrong is not None:
            return field, wrong
    starts_at, ends_at = layer.starts_at, layer.ends_at
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        return "ends_at", "must be after starts_at"
    return None


def roster_fault(
    anchor_at: Instant, shift_seconds: int, participants: int, timezone: str
) -> tuple[str, str] | None:
    """Returns the invalid field of a schedule and its rule. `participants` is their number."""
    if not SHIFT_SECONDS[0] <= shift_seconds <= SHIFT_SECONDS[1]:
        return "shift_seconds", f"must be {SHIFT_SECONDS[0]} to {SHIFT_SECONDS[1]} seconds"
    if not PARTICIPANTS[0] <= participants <= PARTICIPANTS[1]:
        return "participants", f"must have {PARTICIPANTS[0]} to {PARTICIPANTS[1]} entries"
    if timezone and not is_timezone(timezone):
        return "timezone", "is not an IANA time zone"
    fault = _instant_fault(anchor_at)
    return ("anchor_at", fault) if fault else None


def override_fault(starts_at: Instant, ends_at: Instant) -> tuple[str, str] | None:
    """Returns the invalid field of an override's span and its rule."""
    for field, at in (("starts_at", starts_at), ("ends_at", ends_at)):
        fault = _instant_fault(at)
        if fault:
            return field, fault
    if ends_at <= starts_at:
        return "ends_at", "must be after starts_at"
    if ends_at - starts_at > OVERRIDE_LONGEST_US:
        return "ends_at", f"must be at most {OVERRIDE_LONGEST_US // DAY} days after starts_at"
    return None


def is_computed(at: Instant) -> bool:
    """Returns whether anchors, overrides and questions can name the instant."""
    return _EARLIEST <= at < _LATEST


def _instant_fault(at: Instant) -> str | None:
    if is_computed(at):
        return None
    return f"must lie in the years {EARLIEST_YEAR} to {LATEST_YEAR - 1}"


def hand_off(layer: OnCallLayer, number: int) -> Instant:
    """Returns the start of shift `number`. Shift 0 starts at the anchor."""
    if not layer.timezone:
        return Instant(layer.anchor_at + number * layer.shift_us)
    zone = zone_of_name(layer.timezone)
    anchor = to_datetime(layer.anchor_at).astimezone(zone).replace(tzinfo=None)
    return first_instant(anchor + timedelta(microseconds=number * layer.shift_us), zone)


def _holding(overrides: Sequence[OnCallOverride], at: Instant) -> OnCallOverride | None:
    found = [override for override in overrides if override.starts_at <= at < override.ends_at]
    return max(found, key=lambda override: override.number, default=None)


def _layer_duty(roster: OnCallSchedule, at: Instant) -> Duty:
    """Returns the duty by the layers alone."""
    here = _piece(roster, at)
    from_at, until = here.from_at, here.until
    # An edge of a layer that is inactive on both sides ends no duty. Such an edge needs a second
    # layer, or a gap.
    may_continue = len(roster.layers) > 1 or here.layer is None
    while may_continue and from_at > GAP_FROM:
        before = _piece(roster, Instant(from_at - 1))
        if (before.layer, before.shift) != (here.layer, here.shift):
            break
        from_at = before.from_at
    while may_continue and until < GAP_UNTIL:
        after = _piece(roster, until)
        if (after.layer, after.shift) != (here.layer, here.shift):
            break
        until = after.until
    if here.layer is None:
        return Duty(None, from_at, until)
    participants = roster.layers[here.layer].participants
    return Duty(participants[here.shift % len(participants)], from_at, until, None, here.layer)


def _piece(roster: OnCallSchedule, at: Instant) -> _Piece:
    """Returns a span around an instant in which the layers certainly give the same shift."""
    from_at, until = GAP_FROM, GAP_UNTIL
    for place in range(len(roster.layers) - 1, -1, -1):
        layer = roster.layers[place]
        is_active, begins, ends = _activity(layer, at)
        from_at, until = max(from_at, begins), min(until, ends)
        if is_active:
            shift = _shift_number(layer, at)
            from_at = max(from_at, hand_off(layer, shift))
            until = min(until, hand_off(layer, shift + 1))
            return _Piece(place, shift, from_at, until)
    return _Piece(None, 0, from_at, until)


def _activity(layer: OnCallLayer, at: Instant) -> tuple[bool, Instant, Instant]:
    """Returns whether a layer is active, and a span around the instant with that answer."""
    begins = GAP_FROM if layer.starts_at is None else layer.starts_at
    ends = GAP_UNTIL if layer.ends_at is None else layer.ends_at
    if at < begins or not layer.participants:
        return False, GAP_FROM, begins if layer.participants else GAP_UNTIL
    if at >= ends:
        return False, ends, GAP_UNTIL
    hours = hours_at(layer.windows, zone_of_name(layer.timezone), at)
    if hours is None:
        return True, begins, ends
    return hours.is_inside, max(begins, hours.from_at), min(ends, hours.until)


def _shift_number(layer: OnCallLayer, at: Instant) -> int:
    """Returns the number of the last shift that has started.

    Local time gives the number. The loop corrects it for shifts that started before the clocks
    went back.
    """
    if not layer.timezone:
        return (at - layer.anchor_at) // layer.shift_us
    zone = zone_of_name(layer.timezone)
    anchor, shows = (
        to_datetime(instant).astimezone(zone).replace(tzinfo=None)
        for instant in (layer.anchor_at, at)
    )
    number = (shows - anchor) // timedelta(microseconds=layer.shift_us)
    while hand_off(layer, number + 1) <= at:
        number += 1
    return number
