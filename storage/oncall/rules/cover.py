"""Cover requests: who may accept one, and the overrides that follow.

A request asks for a span of duty of one person. In a swap that person takes a span of the other one
in return. A span that has begun is covered from now on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ...core.instant import Instant
from .oncall_schedule import Duty, OnCallOverride, OnCallSchedule, duties

NOTE_LONGEST: Final = 500
OPEN_MOST: Final = 50
# Each duty of the span is computed while the schedule is locked.
DUTIES_MOST: Final = 2_000


@dataclass(frozen=True, slots=True)
class CoverSpan:
    starts_at: Instant
    ends_at: Instant

    def rest(self, now: Instant) -> "CoverSpan":
        """Returns the part that is not over."""
        return CoverSpan(max(self.starts_at, now), self.ends_at)


@dataclass(frozen=True, slots=True)
class Cover:
    """Request. `wanted` is the person who is asked, None for everybody."""

    channel: int
    wanted: int | None
    span: CoverSpan
    in_return: CoverSpan | None = None


@dataclass(frozen=True, slots=True)
class CoverOverride:
    channel: int
    span: CoverSpan


def duties_within(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], span: CoverSpan, now: Instant
) -> Iterator[Duty]:
    """Yields the duties of the part of a span that is not over, and at most one too many."""
    rest = span.rest(now)
    return islice(duties(roster, overrides, rest.starts_at, rest.ends_at), DUTIES_MOST + 1)


def request_fault(
    cover: Cover, held: Sequence[Duty], returned: Sequence[Duty], now: Instant
) -> tuple[str, str] | None:
    """Returns the invalid field of a request and its rule.

    Args:
        held: `duties_within` the span.
        returned: `duties_within` the span in return, empty without one.
    """
    if cover.span.ends_at <= now:
        return "ends_at", "must be in the future"
    if cover.wanted == cover.channel:
        return "wanted_id", "must be another person"
    for field, found in (("ends_at", held), ("return_ends_at", returned)):
        if len(found) > DUTIES_MOST:
            return field, f"the span must have at most {DUTIES_MOST} shifts"
    if not _hold(held, cover.channel):
        return "starts_at", "the person must be on call in the whole span"
    if cover.in_return is not None and cover.in_return.ends_at <= now:
        return "return_ends_at", "must be in the future"
    if cover.in_return is not None and _overlap(cover.in_return, cover.span):
        return "return_starts_at", "must not overlap the span of the request"
    return None


def accepted(
    cover: Cover, held: Sequence[Duty], returned: Sequence[Duty], by: int, now: Instant
) -> list[CoverOverride] | None:
    """Returns the overrides of an acceptance, None if the duties have changed since the request.

    `held` and `returned` are those of `request_fault`.
    """
    if cover.span.ends_at <= now or not _hold(held, cover.channel):
        return None
    found = [CoverOverride(by, cover.span.rest(now))]
    if cover.in_return is not None:
        if cover.in_return.ends_at <= now or not _hold(returned, by):
            return None
        found.append(CoverOverride(cover.channel, cover.in_return.rest(now)))
    return found


def _hold(held: Sequence[Duty], channel: int) -> bool:
    return len(held) <= DUTIES_MOST and all(duty.channel == channel for duty in held)


def _overlap(one: CoverSpan, other: CoverSpan) -> bool:
    return one.starts_at < other.ends_at and other.starts_at < one.ends_at
