"""Time zone and clock in which the console shows times to the user of the current request.

The pipeline sets them from the account, in the task of the request. Without a user, times are in
UTC with 24 hours, as on status pages and in messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from ...storage.accounts.rules.access import Principal
from ...storage.core.instant import SECOND, Instant, is_timezone, to_datetime

_GAP: Final = "\u202f"


@dataclass(frozen=True, slots=True)
class ShownTime:
    """`hours` is 12 or 24."""

    zone: ZoneInfo
    hours: int


UTC_24: Final = ShownTime(ZoneInfo("UTC"), 24)
_shown: Final[ContextVar[ShownTime]] = ContextVar("shown_time", default=UTC_24)


def show_times_of(principal: Principal | None) -> None:
    """Sets zone and clock for the rest of the request. An unknown zone is shown as UTC."""
    if principal is None:
        _shown.set(UTC_24)
        return
    _shown.set(ShownTime(_zone(principal.time_zone), principal.hour_clock))


@lru_cache(maxsize=1_024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name if is_timezone(name) else "UTC")


@contextmanager
def times_in_utc() -> Iterator[None]:
    """Shows times as on a status page, for the preview of one."""
    before = _shown.set(UTC_24)
    try:
        yield
    finally:
        _shown.reset(before)


def zone_shown() -> ZoneInfo:
    return _shown.get().zone


def zone_name() -> str:
    return zone_shown().key


def zone_word() -> str:
    """Returns the short name of the zone: UTC, or the city of `America/New_York`."""
    return zone_shown().key.rpartition("/")[2].replace("_", " ")


def hours_shown() -> int:
    return _shown.get().hours


def local(at: Instant) -> datetime:
    """Returns the time of the zone. In the first and last hours of all years it is the limit.

    A certificate of a target can end then.
    """
    moment, zone = to_datetime(at), zone_shown()
    try:
        return moment.astimezone(zone)
    except OverflowError:
        limit = datetime.min if moment.year == 1 else datetime.max  # noqa: DTZ901
        return limit.replace(tzinfo=zone)


def offset_us(at: Instant) -> int:
    """Returns the microseconds that the zone is ahead of UTC at an instant."""
    ahead = local(at).utcoffset()
    assert ahead is not None, "the zone is known"
    return int(ahead.total_seconds()) * SECOND


def time_of_day(moment: datetime, *, seconds: bool) -> str:
    """Returns 14:26:07, or 2:26:07 pm with 12 hours."""
    if hours_shown() == 12:
        return twelve_hours(moment, seconds=seconds)
    return f"{moment:%H:%M:%S}" if seconds else f"{moment:%H:%M}"


def twelve_hours(moment: datetime, *, seconds: bool = False) -> str:
    hour, half = moment.hour % 12 or 12, "am" if moment.hour < 12 else "pm"
    rest = f"{moment:%M:%S}" if seconds else f"{moment:%M}"
    return f"{hour}:{rest}{_GAP}{half}"
