"""Instants in bodies and queries. The error of an invalid instant names the field."""

from ...storage.core.instant import Instant, from_text
from ...storage.core.time_span import TimeSpan
from .errors import Problem


def instant_given(field: str, text: str) -> Instant:
    try:
        return from_text(text)
    except (ValueError, OverflowError):
        raise Problem(f"{field}: must be an RFC 3339 instant") from None


def instant_if_given(field: str, text: str | None) -> Instant | None:
    return None if text is None else instant_given(field, text)


def range_given(from_: str | None, to: str | None, most_us: int) -> TimeSpan:
    """Returns [from, to) of a list, at most `most_us` long.

    Raises: Problem range_required, range_invalid or range_too_wide.
    """
    if from_ is None or to is None:
        raise Problem("range_required")
    try:
        within = TimeSpan(from_text(from_), from_text(to))
    except (ValueError, OverflowError):
        raise Problem("range_invalid") from None
    if within.length_us <= 0:
        raise Problem("range_invalid")
    if within.length_us > most_us:
        raise Problem("range_too_wide")
    return within
