"""Limits of an organization on its monitors, so that one tenant cannot use up the schedule.

The number of monitors bounds the stored rows, the runs per minute bound the load of the schedule.

Invariant: a change that does not raise the use of an organization is accepted, also above a limit.
So a lower limit stops no monitor.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from ...core.instant import MINUTE, SECOND
from ...scheduling.rules.run_schedule import CONFIRM_LEAST_US
from .fields import BOUNDS, CONFIRMED, FieldBounds

# Load of one run per minute. The load of a monitor is rounded down to a millionth of it.
RUN_LOAD: Final = 1_000_000
_MINUTE_SECONDS: Final = MINUTE // SECOND
CONFIRM_LEAST_SECONDS: Final = CONFIRM_LEAST_US // SECOND


class OrganizationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that apply to each organization, with the defaults of Leadline.

    Half of the runs that one core makes, see docs/explanation/performance.md, and more monitors
    than such a host checks once a minute.
    """

    monitors: int = 50_000
    shortest_interval_seconds: int = BOUNDS["interval_seconds"].least
    runs_per_minute: int = 30_000


class OwnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one organization. None is the limit of the installation."""

    monitors: int | None = None
    shortest_interval_seconds: int | None = None
    runs_per_minute: int | None = None

    def over(self, limits: OrganizationLimits) -> OrganizationLimits:
        """Returns `limits` with those of the organization in their place."""
        own = {
            name: value for name, value in msgspec.structs.asdict(self).items() if value is not None
        }
        return msgspec.structs.replace(limits, **own)


LIMIT_BOUNDS: Final = {
    "monitors": FieldBounds(1, 1_000_000),
    "shortest_interval_seconds": BOUNDS["interval_seconds"],
    "runs_per_minute": FieldBounds(1, 1_000_000),
}


def limits_fault(limits: OrganizationLimits | OwnLimits) -> tuple[str, str] | None:
    """Returns the first invalid limit and the rule that it breaks."""
    for name, value in msgspec.structs.asdict(limits).items():
        broken = LIMIT_BOUNDS[name].fault(value) if value is not None else None
        if broken is not None:
            return name, broken
    return None


class Scheduled(Protocol):
    """The fields of a monitor that its load depends on.

    The interval of a schedule is the shortest distance of its runs, so its load is an upper bound.
    """

    @property
    def type(self) -> str: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def interval_seconds(self) -> int: ...
    @property
    def schedule(self) -> str: ...
    @property
    def failure_threshold(self) -> int: ...
    @property
    def confirm_interval_seconds(self) -> int: ...


def load_of(monitor: Scheduled) -> int:
    """Returns the largest load of a monitor; 0 if it is paused.

    Windows of push monitors and composites count too, since they are reserved and settled like
    those of other types. A failing target causes confirming runs, up to the threshold in each
    interval. `queries/organization_limits.py` has the same rule in SQL.
    """
    if not monitor.enabled:
        return 0
    interval = max(monitor.interval_seconds, 1)
    confirming = 0
    if monitor.type in CONFIRMED and monitor.confirm_interval_seconds:
        wait = max(min(monitor.confirm_interval_seconds, interval), CONFIRM_LEAST_SECONDS)
        confirming = min(max(monitor.failure_threshold, 1) - 1, (interval - 1) // wait)
    return RUN_LOAD * _MINUTE_SECONDS * (1 + confirming) // interval


@dataclass(frozen=True, slots=True)
class OrganizationUse:
    """Use of an organization, or a difference of two. `load` is that of the enabled monitors."""

    monitors: int = 0
    load: int = 0

    def __add__(self, other: "OrganizationUse") -> "OrganizationUse":
        return OrganizationUse(self.monitors + other.monitors, self.load + other.load)

    def __sub__(self, other: "OrganizationUse") -> "OrganizationUse":
        return OrganizationUse(self.monitors - other.monitors, self.load - other.load)

    @property
    def runs_per_minute(self) -> float:
        """Rounded up to a hundredth, so that a load above a limit is shown above it."""
        return -(-self.load * 100 // RUN_LOAD) / 100


def use_of(monitor: Scheduled | None) -> OrganizationUse:
    """Returns the use of one monitor, which is none before its creation."""
    return OrganizationUse() if monitor is None else OrganizationUse(1, load_of(monitor))


def is_faster(before: Scheduled | None, after: Scheduled) -> bool:
    """Returns whether a monitor is new, is resumed, or has a shorter interval than before."""
    return (
        before is None
        or (after.enabled and not before.enabled)
        or after.interval_seconds < before.interval_seconds
    )


def interval_fault(limits: OrganizationLimits, after: Scheduled) -> str | None:
    """Returns the rule that the interval of a faster monitor breaks."""
    least = limits.shortest_interval_seconds
    if after.interval_seconds >= least:
        return None
    return f"must be at least {least} seconds, the shortest interval of the organization"


def interval_field(monitor: Scheduled) -> str:
    """Returns the field that determines the interval."""
    return "schedule" if monitor.schedule else "interval_seconds"


def raised_field(before: Scheduled | None, after: Scheduled) -> str:
    """Returns the field that raises the load of a monitor."""
    if before is None or after.interval_seconds < before.interval_seconds:
        return interval_field(after)
    if after.enabled and not before.enabled:
        return "enabled"
    if after.failure_threshold > before.failure_threshold:
        return "failure_threshold"
    return "confirm_interval_seconds"


def use_fault(
    limits: OrganizationLimits, after: OrganizationUse, more: OrganizationUse, field: str
) -> tuple[str, str] | None:
    """Returns the field and the rule of a limit that a change would exceed.

    Args:
        after: use with the change.
        more: difference that the change makes.
        field: field that raises the load.
    """
    before = after - more
    if more.monitors > 0 and after.monitors > limits.monitors:
        rule = f"would be {after.monitors} in the organization, whose limit is {limits.monitors}"
        return "monitors", f"{rule} (now {before.monitors})"
    if more.load > 0 and after.load > limits.runs_per_minute * RUN_LOAD:
        rule = (
            f"would make {after.runs_per_minute:.12g} runs per minute in the organization with "
            f"confirming runs, and its limit is {limits.runs_per_minute}"
        )
        return field, f"{rule} (now {before.runs_per_minute:.12g})"
    return None
