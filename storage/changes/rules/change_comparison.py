"""Comparison of the time before and after a change: two figures, or reasons.

Invariants: minutes within the change belong to neither side. A figure covers one definition, and at
least half of its time is decided. Both sides have the same length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from ...core.instant import HOUR, MINUTE, Instant, to_text
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...services.rules.epoch import Revision, governed, minute_from

HORIZONS: Final = {"15m": 15 * MINUTE, "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR}
# Share of the time that is not excluded; missing minutes count as not decided.
LEAST_COVERAGE: Final = Fraction(1, 2)


class ComparisonWithheld(StrEnum):
    """Reason why a side has no figure; the value is the API code."""

    DEFINITION_CHANGED = "definition_changed"
    UNDECIDABLE = "undecidable"
    NO_FACTS = "no_facts"


@dataclass(frozen=True, slots=True)
class SealedSums:
    """Sealed time of a side: number of minutes and their sum."""

    minutes: int
    split: Split


@dataclass(frozen=True, slots=True)
class Begin:
    """First minute of a revision that replaces another."""

    at: Instant
    revision: int


@dataclass(frozen=True, slots=True)
class Side:
    """Side of a comparison: a figure, a reason to withhold it, or pending.

    `facts` is None if the sealed time was not evaluated.
    """

    span: TimeSpan
    availability: Fraction | None = None
    withheld: ComparisonWithheld | None = None
    detail: str = ""
    is_pending: bool = False
    facts: SealedSums | None = None


@dataclass(frozen=True, slots=True)
class SealedRange:
    """Sealed time of a service."""

    start: Instant
    through: Instant


def sides_of(started: Instant | None, ended: Instant, horizon_us: int) -> tuple[TimeSpan, TimeSpan]:
    """Returns both sides in whole minutes.

    The first ends before the minute of the start; the second begins at the first whole minute at
    or after the end.
    """
    began = ended if started is None else started
    until = Instant(began - began % MINUTE)
    from_ = minute_from(ended)
    return TimeSpan(Instant(until - horizon_us), until), TimeSpan(
        from_, Instant(from_ + horizon_us)
    )


def begins_of(revisions: Sequence[Revision]) -> list[Begin]:
    """Returns the starts of all revisions except the first, which replaces no definition."""
    return [Begin(span.from_, revision.revision) for span, revision in governed(revisions)[1:]]


def before_of(
    span: TimeSpan, sealed: SealedRange | None, begins: Sequence[Begin], facts: SealedSums
) -> Side:
    """Returns the side before a change. A revision that begins with the side covers all of it."""
    return _side(span, sealed, _first_reason(begins, Instant(span.from_ + 1), span.until), facts)


def after_of(
    span: TimeSpan,
    before: TimeSpan,
    sealed: SealedRange | None,
    begins: Sequence[Begin],
    facts: SealedSums,
) -> Side:
    """Returns the side after a change.

    It requires the definition at the end of the side before.
    """
    return _side(span, sealed, _first_reason(begins, before.until, span.until), facts)


def delta_of(before: Side, after: Side) -> Fraction | None:
    """Returns after minus before in percentage points, None unless both are figures."""
    if before.availability is None or after.availability is None:
        return None
    return 100 * (after.availability - before.availability)


def _first_reason(begins: Sequence[Begin], from_: Instant, until: Instant) -> Begin | None:
    return next((each for each in begins if from_ <= each.at < until), None)


def _side(
    span: TimeSpan, sealed: SealedRange | None, begin: Begin | None, facts: SealedSums
) -> Side:
    """Returns a side. Permanent reasons come before pending, as no figure can follow them."""
    if sealed is None or span.until <= sealed.start:
        return Side(span, withheld=ComparisonWithheld.NO_FACTS, detail=_nothing_before(sealed))
    if begin is not None:
        detail = f"revision {begin.revision} governs from {to_text(begin.at)}"
        return Side(span, withheld=ComparisonWithheld.DEFINITION_CHANGED, detail=detail)
    if sealed.through < span.until:
        return Side(span, is_pending=True)
    if not facts.minutes:
        detail = "no sealed minutes are stored"
        return Side(span, withheld=ComparisonWithheld.NO_FACTS, detail=detail)
    counted_us = span.length_us - facts.split.excluded_us
    measured_us = facts.split.measured_us
    if not measured_us or measured_us < LEAST_COVERAGE * counted_us:
        detail = f"{measured_us // MINUTE} of {counted_us // MINUTE} minutes could be decided"
        return Side(span, withheld=ComparisonWithheld.UNDECIDABLE, detail=detail, facts=facts)
    return Side(span, availability=facts.split.availability(), facts=facts)


def _nothing_before(sealed: SealedRange | None) -> str:
    if sealed is None:
        return "the service has no declaration"
    return f"the service's time begins at {to_text(sealed.start)}"
