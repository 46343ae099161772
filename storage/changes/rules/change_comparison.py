"""The time before a change beside the time after it: two figures, or why there are none.

It keeps true: the minutes in which a change went on are on neither side; a figure is of one
definition, and of a time of which at least half was decided; both sides are equally long.
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
# Of the time that is not excluded; minutes that are not kept were not decided.
LEAST_COVERAGE: Final = Fraction(1, 2)


class ComparisonWithheld(StrEnum):
    """Why a side has no figure, in the words of the wire."""

    DEFINITION_CHANGED = "definition_changed"
    UNDECIDABLE = "undecidable"
    NO_FACTS = "no_facts"


@dataclass(frozen=True, slots=True)
class SealedSums:
    """What is sealed of a side: how many minutes, and what they add up to."""

    minutes: int
    split: Split


@dataclass(frozen=True, slots=True)
class Begin:
    """From this minute on another revision governs than before it."""

    at: Instant
    revision: int


@dataclass(frozen=True, slots=True)
class Side:
    """A figure, or the reason for having none, or pending: then it may come to have one. `facts` is
    there where the time could be judged at all."""

    span: TimeSpan
    availability: Fraction | None = None
    withheld: ComparisonWithheld | None = None
    detail: str = ""
    is_pending: bool = False
    facts: SealedSums | None = None


@dataclass(frozen=True, slots=True)
class SealedRange:
    """A service's sealed time."""

    start: Instant
    through: Instant


def sides_of(started: Instant | None, ended: Instant, horizon_us: int) -> tuple[TimeSpan, TimeSpan]:
    """What is compared, in whole minutes: up to the minute in which it began, and from the first
    that it was over in."""
    began = ended if started is None else started
    until = Instant(began - began % MINUTE)
    from_ = minute_from(ended)
    return TimeSpan(Instant(until - horizon_us), until), TimeSpan(
        from_, Instant(from_ + horizon_us)
    )


def begins_of(revisions: Sequence[Revision]) -> list[Begin]:
    """Where one revision follows another. Before the first nothing was defined."""
    return [Begin(span.from_, revision.revision) for span, revision in governed(revisions)[1:]]


def before_of(
    span: TimeSpan, sealed: SealedRange | None, begins: Sequence[Begin], facts: SealedSums
) -> Side:
    """The side before a change. A revision that begins with the side governs all of it."""
    return _side(span, sealed, _first_reason(begins, Instant(span.from_ + 1), span.until), facts)


def after_of(
    span: TimeSpan,
    before: TimeSpan,
    sealed: SealedRange | None,
    begins: Sequence[Begin],
    facts: SealedSums,
) -> Side:
    """The side after it, which is to be of the definition that the side before ended with."""
    return _side(span, sealed, _first_reason(begins, before.until, span.until), facts)


def delta_of(before: Side, after: Side) -> Fraction | None:
    """After less before, in percentage points; only where both are figures."""
    if before.availability is None or after.availability is None:
        return None
    return 100 * (after.availability - before.availability)


def _first_reason(begins: Sequence[Begin], from_: Instant, until: Instant) -> Begin | None:
    return next((each for each in begins if from_ <= each.at < until), None)


def _side(
    span: TimeSpan, sealed: SealedRange | None, begin: Begin | None, facts: SealedSums
) -> Side:
    """What will not change comes before what will: nobody waits for a figure that cannot come."""
    if sealed is None or span.until <= sealed.start:
        return Side(span, withheld=ComparisonWithheld.NO_FACTS, detail=_nothing_before(sealed))
    if begin is not None:
        detail = f"revision {begin.revision} governs from {to_text(begin.at)}"
        return Side(span, withheld=ComparisonWithheld.DEFINITION_CHANGED, detail=detail)
    if sealed.through < span.until:
        return Side(span, is_pending=True)
    if not facts.minutes:
        detail = "none of its minutes are kept"
        return Side(span, withheld=ComparisonWithheld.NO_FACTS, detail=detail)
    counted_us = span.length_us - facts.split.excluded_us
    measured_us = facts.split.measured_us
    if not measured_us or measured_us < LEAST_COVERAGE * counted_us:
        detail = f"{measured_us // MINUTE} of {counted_us // MINUTE} minutes could be decided"
        return Side(span, withheld=ComparisonWithheld.UNDECIDABLE, detail=detail, facts=facts)
    return Side(span, availability=facts.split.availability(), facts=facts)


def _nothing_before(sealed: SealedRange | None) -> str:
    if sealed is None:
        return "nothing is declared of the service"
    return f"the service's time begins at {to_text(sealed.start)}"
