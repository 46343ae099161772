"""Replay of a gate policy: its state for each minute of a past range, from sealed time.

The rule of the gate decides each minute from facts as they would be with all earlier time sealed:
the windows that end there, the burn rates, open incidents, and whether the condition was known.
Deleted facts count as unknown. Facts that are not recorded, such as evaluator delays, are assumed
good. Present objectives and rules apply.

Between two instants at which a sum changes its rate, every sum is linear in time. Each comparison
of a finding therefore changes at most once between them. It suffices to evaluate both ends, and to
bisect if they differ. Months are thus replayed exactly with a few thousand evaluations.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import structs

from ...alerting.rules.alert_episode import ServiceCondition
from ...alerting.rules.paging_delegation import SignalReason
from ...core.availability import (
    BUDGET_LEAST_COVERAGE,
    BUDGET_LEAST_MEASURED_US,
    BURN_LEAST_COVERAGE,
    WHOLE,
    Withheld,
    burn_rate,
)
from ...core.instant import MINUTE, Instant
from ...core.sli import Split
from ...core.time_span import TimeSpan
from ...objectives.rules import BurnRule
from ...objectives.rules import decide_burn as judge_burn
from ...services.rules.service_report import WINDOWS, whole_minutes
from .gate import GateClause, GateClauseAssignment, GateState
from .gate_evidence import (
    FactRevisions,
    GateFacts,
    GoverningRevision,
    RuleFacts,
    SignalFacts,
    WindowFacts,
    decide_clauses,
)
from .gate_policy import Document, WindowMode

_NOBODY: Final = UUID(int=0)
_BUDGETS: Final = (GateClause.BUDGET_EXHAUSTED, GateClause.BUDGET_CONSUMED)
_BURNS: Final = (GateClause.PAGE_BURN_FIRING, GateClause.TICKET_BURN_FIRING)
# Number of pieces between two yields to other tasks.
LOOKS_AT_ONCE: Final = 5


@dataclass(frozen=True, slots=True)
class MinuteRun:
    """Run of equal sealed minutes. `each` is the split of one minute.

    `is_seen`: the health is not unknown for the whole minute.
    """

    span: TimeSpan
    each: Split
    is_seen: bool = True


@dataclass(frozen=True, slots=True)
class ObjectiveSpan:
    """Objective of a window (× 10⁴) and its burn rules."""

    window: str
    objective: int
    burn_enabled: bool
    rules: Sequence[BurnRule]


@dataclass(frozen=True, slots=True)
class ServicePast:
    """Recorded past of a service.

    Args:
        runs: sealed minutes in order.
        start: start of the service's time.
        governed_from: start of the first governing revision.
        incidents: spans of its open incidents.
        deaf: reason why the service cannot page with the present settings, None if it can.
    """

    runs: Sequence[MinuteRun]
    start: Instant | None
    governed_from: Instant | None
    aims: Sequence[ObjectiveSpan]
    incidents: Sequence[TimeSpan]
    deaf: SignalReason | None = None


class ReplayedSpan(NamedTuple):
    """State of the policy over a span. `reasons` are codes without duplicates."""

    span: TimeSpan
    state: GateState
    reasons: tuple[str, ...]


def replay(
    past: ServicePast, policies: Sequence[tuple[TimeSpan, Document]], within: TimeSpan
) -> Iterator[ReplayedSpan | None]:
    """Yields the states over `within` (whole minutes), with equal neighbours merged.

    The state is `NOT_CONFIGURED` while no policy governs. Policies do not overlap. Yields None
    after each portion of work, so that the caller can let other tasks run.
    """
    judge_at = _Judge(past, policies)
    edges = [*_looks(past, policies, within), within.until]
    pending: ReplayedSpan | None = None
    for looked, (from_, until) in enumerate(pairwise(edges)):
        if looked % LOOKS_AT_ONCE == 0:
            yield None
        for piece in judge_at.pieces(from_, Instant(until - MINUTE)):
            said = judge_at.replay_reason(piece)
            if pending is None:
                pending = said
            elif pending[1:] == said[1:]:
                pending = pending._replace(span=TimeSpan(pending.span.from_, piece.until))
            else:
                yield pending
                pending = said
    if pending is not None:
        yield pending


class _Judge:
    """Evaluation of minutes. `_compared` returns all comparisons that the findings use."""

    def __init__(self, past: ServicePast, policies: Sequence[tuple[TimeSpan, Document]]) -> None:
        self._past = past
        self._policies = policies
        self._sums = Sums(past.runs)
        documents = [document for _, document in policies]
        self._percents = sorted({100, *(each.budget_consumed_percent for each in documents)})
        self._watched = [(aim, *_looked_at(aim, documents)) for aim in past.aims]
        self._asks_incidents = _asks_incidents(documents)
        self._known: dict[object, tuple[GateState, tuple[str, ...]]] = {}

    def pieces(self, first: Instant, last: Instant) -> Iterator[TimeSpan]:
        """Yields the minutes, cut where a comparison changes.

        Each comparison changes at most once between `first` and `last`.
        """
        todo = [(first, self._compared(first), last, self._compared(last))]
        while todo:
            low, at_low, high, at_high = todo.pop()
            if at_low == at_high:
                yield TimeSpan(low, Instant(high + MINUTE))
                continue
            middle = Instant(low + (high - low) // (2 * MINUTE) * MINUTE)
            following = Instant(middle + MINUTE)
            # A stack: the earlier half is evaluated first.
            todo.append((following, self._compared(following), high, at_high))
            todo.append((low, at_low, middle, self._compared(middle)))

    def replay_reason(self, piece: TimeSpan) -> ReplayedSpan:
        at = piece.from_
        policy = next(
            (n for n, (span, _) in enumerate(self._policies) if span.from_ <= at < span.until), None
        )
        if policy is None:
            return ReplayedSpan(piece, GateState.NOT_CONFIGURED, ("not_configured",))
        key = (policy, self._compared(at))
        if key not in self._known:
            self._known[key] = self._decided(self._policies[policy][1], at)
        return ReplayedSpan(piece, *self._known[key])

    def _decided(self, document: Document, at: Instant) -> tuple[GateState, tuple[str, ...]]:
        said = decide_clauses(document, facts_at(self._past, self._sums, at))
        codes = [
            each.code for each in said.reasons if each.assignment is not GateClauseAssignment.IGNORE
        ]
        # Sorted, so that the order of the windows does not separate equal neighbours.
        return said.state, tuple(sorted(set(codes)))

    def _compared(self, at: Instant) -> tuple[bool, ...]:
        past = self._past
        found = [
            past.start is not None and past.start < at,
            past.governed_from is not None and past.governed_from <= at,
            any(span.from_ <= at < span.until for span in past.incidents),
        ]
        if self._asks_incidents:
            found.append(self._sums.is_seen(past, at))
        before: dict[int, tuple[Split, bool]] = {}
        for aim, budget, rules in self._watched:
            if budget:
                split, whole = self._before(at, WINDOWS[aim.window], before)
                found += [whole, *_budget_compared(split, aim.objective, self._percents)]
            for rule in rules:
                for length_us in (rule.long_us, rule.short_us):
                    split, whole = self._before(at, whole_minutes(length_us), before)
                    found += [whole, *_burn_compared(split, aim.objective, rule)]
        return tuple(found)

    def _before(
        self, at: Instant, length_us: int, known: dict[int, tuple[Split, bool]]
    ) -> tuple[Split, bool]:
        """Returns the sum before an instant, cached because rules share ranges."""
        if length_us not in known:
            total, _, whole = _range(self._past, self._sums, length_us, at)
            known[length_us] = total.split, whole
        return known[length_us]


def _budget_compared(split: Split, objective: int, percents: Sequence[int]) -> list[bool]:
    measured_us = split.measured_us
    counted_us = split.range_us - split.excluded_us
    allowed = (WHOLE - objective) * measured_us
    return [
        measured_us > 0,
        measured_us >= BUDGET_LEAST_MEASURED_US,
        _covers(measured_us, counted_us, BUDGET_LEAST_COVERAGE),
        *(100 * WHOLE * split.bad_us >= percent * allowed for percent in percents),
    ]


def _burn_compared(split: Split, objective: int, rule: BurnRule) -> list[bool]:
    measured_us = split.measured_us
    burned, allowed = WHOLE * split.bad_us, (WHOLE - objective) * measured_us
    counted_us = split.range_us - split.excluded_us
    return [
        measured_us > 0,
        _covers(measured_us, counted_us, BURN_LEAST_COVERAGE),
        burned * rule.threshold.denominator >= rule.threshold.numerator * allowed,
    ]


def _covers(measured_us: int, counted_us: int, least: Fraction) -> bool:
    """Compares in integers, because a month needs several 100 000 comparisons."""
    return measured_us * least.denominator >= counted_us * least.numerator


class Sums:
    """Prefix sums: the split of any range of whole minutes in two lookups."""

    def __init__(self, runs: Sequence[MinuteRun]) -> None:
        self._runs = runs
        self._starts = [run.span.from_ for run in runs]
        total = MinuteSum()
        self._before = [total]
        for run in runs:
            total = total.plus(run.each, (run.span.until - run.span.from_) // MINUTE)
            self._before.append(total)

    def of(self, from_: Instant, until: Instant) -> "MinuteSum":
        return self._until(until).minus(self._until(from_))

    def is_seen(self, past: ServicePast, at: Instant) -> bool:
        """Returns whether the condition was known in the minute before an instant."""
        last = Instant(at - MINUTE)
        place = bisect_right(self._starts, last) - 1
        if place < 0 or past.start is None or last < past.start:
            return False
        run = self._runs[place]
        counted = run.each.measured_us + run.each.excluded_us
        return last < run.span.until and run.is_seen and counted > 0

    def _until(self, at: Instant) -> "MinuteSum":
        place = bisect_right(self._starts, at) - 1
        if place < 0:
            return self._before[0]
        run = self._runs[place]
        minutes = (min(at, run.span.until) - run.span.from_) // MINUTE
        return self._before[place].plus(run.each, minutes)


class MinuteSum(NamedTuple):
    minutes: int = 0
    good_us: int = 0
    bad_us: int = 0
    unknown_us: int = 0
    excluded_us: int = 0

    def plus(self, each: Split, minutes: int) -> "MinuteSum":
        return MinuteSum(
            self.minutes + minutes,
            self.good_us + minutes * each.good_us,
            self.bad_us + minutes * each.bad_us,
            self.unknown_us + minutes * each.unknown_us,
            self.excluded_us + minutes * each.excluded_us,
        )

    def minus(self, other: "MinuteSum") -> "MinuteSum":
        return MinuteSum(
            self.minutes - other.minutes,
            self.good_us - other.good_us,
            self.bad_us - other.bad_us,
            self.unknown_us - other.unknown_us,
            self.excluded_us - other.excluded_us,
        )

    @property
    def split(self) -> Split:
        return Split(self.good_us, self.bad_us, self.unknown_us, self.excluded_us)


def facts_at(past: ServicePast, sums: Sums, at: Instant) -> GateFacts:
    """Returns the facts that the gate would have read with all earlier time sealed."""
    is_sealed = past.start is not None and past.start < at
    is_governed = past.governed_from is not None and past.governed_from <= at
    reason = past.deaf
    return GateFacts(
        at=at,
        governing=GoverningRevision(_NOBODY, 0) if is_governed else None,
        sealed_through=at if is_sealed else None,
        windows=[_window(past, sums, aim, at) for aim in past.aims],
        fact_revisions=FactRevisions(0, None, None, ""),
        seen=ServiceCondition.HEALTHY if sums.is_seen(past, at) else ServiceCondition.UNKNOWN,
        live=SignalFacts(armed=reason is None, reason=reason, evaluated_at=at, lease_until=None),
        burn=SignalFacts(armed=True, reason=None, evaluated_at=at, lease_until=None),
        open_incidents=[_NOBODY] if any(s.from_ <= at < s.until for s in past.incidents) else [],
    )


class Hindsight(StrEnum):
    """Why a replayed state differs from the decision that was recorded at its instant.

    `SEAL_LAG`: the decision had no sealed time of the last minutes, which the replay has. `POLICY`:
    the policy changed within the minute. `FACTS`: later results, repairs or maintenance changed
    sealed time, objectives, rules or incidents changed, or the evaluator was late.
    """

    SEAL_LAG = "seal_lag"
    POLICY = "policy"
    FACTS = "facts"


def hindsight(
    past: ServicePast,
    sums: Sums,
    recorded: tuple[Document | None, GateFacts, GateState],
    replayed: tuple[Document | None, Instant],
) -> Hindsight | None:
    """Compares a recorded decision with the replay of its minute; None if both states are equal.

    Args:
        recorded: the policy, the facts and the state of the decision.
        replayed: the policy of the minute, and the minute.
    """
    document, facts, state = recorded
    governing, minute = replayed
    in_hindsight = decide_clauses(governing, facts_at(past, sums, minute)).state
    if state is in_hindsight:
        return None
    if decide_clauses(document, facts_at(past, sums, minute)).state is state:
        return Hindsight.POLICY
    if decide_clauses(document, _lagging(past, sums, facts, minute)).state is state:
        return Hindsight.SEAL_LAG
    return Hindsight.FACTS


def _lagging(past: ServicePast, sums: Sums, facts: GateFacts, minute: Instant) -> GateFacts:
    """Returns the present facts of a decision's minute, up to the seal that the decision had."""
    sealed = facts.sealed_through
    if sealed is None:
        return structs.replace(
            facts_at(past, sums, minute),
            sealed_through=None,
            windows=[],
            seen=ServiceCondition.UNKNOWN,
        )
    found = facts_at(past, sums, sealed)
    return structs.replace(
        found,
        at=facts.at,
        live=structs.replace(found.live, evaluated_at=facts.at),
        burn=structs.replace(found.burn, evaluated_at=facts.at),
        open_incidents=facts_at(past, sums, minute).open_incidents,
    )


def _window(past: ServicePast, sums: Sums, aim: ObjectiveSpan, at: Instant) -> WindowFacts:
    found, from_, whole = _range(past, sums, WINDOWS[aim.window], at)
    withheld = None
    if not whole:
        withheld = Withheld.STORAGE_GAP
    elif not found.split.measured_us:
        withheld = Withheld.NOTHING_MEASURED
    return WindowFacts(
        window=aim.window,
        target=_NOBODY,
        objective=aim.objective,
        objective_updated_at=Instant(0),
        from_at=from_,
        to_at=at,
        good_us=found.good_us,
        bad_us=found.bad_us,
        unknown_us=found.unknown_us,
        excluded_us=found.excluded_us,
        withheld=withheld,
        repair_since=None,
        burn_enabled=aim.burn_enabled,
        rules=[_rule(past, sums, aim, rule, at) for rule in aim.rules],
    )


def _rule(
    past: ServicePast, sums: Sums, aim: ObjectiveSpan, rule: BurnRule, at: Instant
) -> RuleFacts:
    rates = []
    for length_us in (rule.long_us, rule.short_us):
        found, _, whole = _range(past, sums, whole_minutes(length_us), at)
        rates.append(burn_rate(found.split, aim.objective) if whole else None)
    verdict = judge_burn(rule, *rates)
    return RuleFacts(
        key="",
        severity=rule.severity,
        firing=verdict == "firing",
        last_verdict=verdict,
        evaluated_at=at,
        lease_until=None,
    )


def _range(
    past: ServicePast, sums: Sums, length_us: int, at: Instant
) -> tuple[MinuteSum, Instant, bool]:
    """Returns the sum of a length before an instant, its start, and whether it is complete."""
    from_ = Instant(max(at - length_us, past.start or at))
    if from_ >= at:
        return MinuteSum(), at, True
    found = sums.of(from_, at)
    return found, from_, found.minutes == (at - from_) // MINUTE


def _looks(
    past: ServicePast, policies: Sequence[tuple[TimeSpan, Document]], within: TimeSpan
) -> list[Instant]:
    """Returns the first minute and each minute at which a sum can change its rate."""
    documents = [document for _, document in policies]
    lengths = {0, *(length for aim in past.aims for length in _lengths(aim, documents))}
    if _asks_incidents(documents):
        lengths.add(MINUTE)
    edges = {edge for run in past.runs for edge in (run.span.from_, run.span.until)}
    edges |= {each for each in (past.start,) if each is not None}
    found: set[int] = {edge + length for edge in edges for length in lengths}
    for span in [*past.incidents, *(span for span, _ in policies)]:
        found |= {_minute_from(span.from_), _minute_from(span.until)}
    if past.governed_from is not None:
        found.add(_minute_from(past.governed_from))
    if past.start is not None:
        found.add(past.start + MINUTE)
    inside = {Instant(at) for at in found if within.from_ < at < within.until}
    return sorted({within.from_, *inside})


def _lengths(aim: ObjectiveSpan, documents: Sequence[Document]) -> set[int]:
    """Returns the lengths of the ranges that any policy uses."""
    budget, rules = _looked_at(aim, documents)
    wanted = {WINDOWS[aim.window]} if budget else set()
    for rule in rules:
        wanted |= {whole_minutes(rule.long_us), whole_minutes(rule.short_us)}
    return wanted


def _looked_at(
    aim: ObjectiveSpan, documents: Iterable[Document]
) -> tuple[bool, Sequence[BurnRule]]:
    """Returns whether any policy uses the budget of the window, and the rules in use."""
    mine = [
        document
        for document in documents
        if document.window_mode is WindowMode.ALL or document.window == aim.window
    ]
    burns = aim.burn_enabled and any(_counts(document, _BURNS) for document in mine)
    return any(_counts(document, _BUDGETS) for document in mine), aim.rules if burns else ()


def _asks_incidents(documents: Iterable[Document]) -> bool:
    return any(_counts(document, [GateClause.SERVICE_INCIDENT_OPEN]) for document in documents)


def _counts(document: Document, clauses: Iterable[GateClause]) -> bool:
    return any(document.clauses[clause] is not GateClauseAssignment.IGNORE for clause in clauses)


def _minute_from(at: Instant) -> int:
    return at + (-at) % MINUTE
