"""Instants, whole microseconds since 1970-01-01T00:00:00Z, and durations in microseconds.

Everything between the database and the wire counts in these, so that every sum is exact. RFC 3339
text exists only at the edges, and is made and read here.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType
from zoneinfo import available_timezones, reset_tzpath

Instant = NewType("Instant", int)

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

# Every zone is read from the package tzdata. The zones of a host would come first, and the
# processes of one installation could then disagree about a name or an offset.
reset_tzpath(to=())

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Range of RFC 3339: years 1 to 9999.
EARLIEST = Instant((datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1))
LATEST = Instant((datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1))


def from_datetime(value: datetime) -> Instant:
    """Returns the instant of an aware datetime. Raises: ValueError for a naive one."""
    if value.tzinfo is None:
        raise ValueError("a datetime without an offset names no instant")
    return Instant((value - _EPOCH) // timedelta(microseconds=1))


def to_datetime(value: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def to_text(value: Instant) -> str:
    """Formats as RFC 3339 in UTC with milliseconds and Z, as on the wire."""
    # A response contains thousands of these; strftime takes six times as long. The offset is cut.
    return to_datetime(value).isoformat(timespec="milliseconds")[:-6] + "Z"


def from_text(text: str) -> Instant:
    """Parses RFC 3339. Raises: ValueError for other text or a missing offset."""
    if len(text) < 20 or text[10] not in "Tt ":
        raise ValueError("not an RFC 3339 instant")
    return from_datetime(datetime.fromisoformat(text))


def is_timezone(name: str) -> bool:
    """Returns whether the name is in the IANA database of the package tzdata."""
    return name in zone_names()


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Returns the names in the IANA database of the package tzdata."""
    return frozenset(available_timezones()) - {"Factory"}
