"""Cover requests: who may accept one, and the overrides that follow.

A request asks for a span of duty of one person. In a swap that person takes a span of the other one
in return. A span that has begun is covered from now on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...core.instant import Instant
from .oncall_schedule import OnCallOverride, OnCallSchedule, holds_throughout

NOTE_LONGEST: Final = 500
OPEN_MOST: Final = 50


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


def request_fault(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], cover: Cover, now: Instant
) -> tuple[str, str] | None:
    """Returns the invalid field of a request and its rule."""
    if cover.span.ends_at <= now:
        return "ends_at", "must be in the future"
    if cover.wanted == cover.channel:
        return "wanted_id", "must be another person"
    if not _holds(roster, overrides, cover.channel, cover.span, now):
        return "starts_at", "the person must be on call in the whole span"
    if cover.in_return is not None and cover.in_return.ends_at <= now:
        return "return_ends_at", "must be in the future"
    if cover.in_return is not None and _overlap(cover.in_return, cover.span):
        return "return_starts_at", "must not overlap the span of the request"
    return None


def accepted(
    roster: OnCallSchedule,
    overrides: Sequence[OnCallOverride],
    cover: Cover,
    by: int,
    now: Instant,
) -> list[CoverOverride] | None:
    """Returns the overrides of an acceptance, None if the duties have changed since the request."""
    if cover.span.ends_at <= now or not _holds(roster, overrides, cover.channel, cover.span, now):
        return None
    found = [CoverOverride(by, cover.span.rest(now))]
    if cover.in_return is not None:
        if cover.in_return.ends_at <= now:
            return None
        if not _holds(roster, overrides, by, cover.in_return, now):
            return None
        found.append(CoverOverride(cover.channel, cover.in_return.rest(now)))
    return found


def _holds(
    roster: OnCallSchedule,
    overrides: Sequence[OnCallOverride],
    channel: int,
    span: CoverSpan,
    now: Instant,
) -> bool:
    rest = span.rest(now)
    return holds_throughout(roster, overrides, channel, rest.starts_at, rest.ends_at)


def _overlap(one: CoverSpan, other: CoverSpan) -> bool:
    return one.starts_at < other.ends_at and other.starts_at < one.ends_at
