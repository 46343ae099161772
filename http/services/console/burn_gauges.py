"""Burn gauges: each rule with its two windows, whether it fires, and which window decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from ....storage.core.availability import Withheld
from ....storage.core.instant import SECOND, Instant
from ....storage.objectives.rows import BurnRuleRow
from ....storage.objectives.rules import BurnRule, BurnSeverity, BurnState, decide_burn, is_stale
from ....storage.services.rules.service_report import BurnWindow
from ...ui.formatting import NOTHING, Moment, coverage, duration, moment, setting
from ...ui.plots.burn_gauge import gauge, spelt_rate
from ...ui.reliability_text import why
from .service_data import ServiceFacts

_FIRES = {BurnSeverity.PAGE: ("down", "f-down"), BurnSeverity.TICKET: ("degraded", "f-degraded")}


@dataclass(frozen=True, slots=True)
class Range:
    name: str
    drawn: Markup
    text: str


@dataclass(frozen=True, slots=True)
class Gauge:
    title: str
    mark: str
    word: str
    ranges: list[Range]
    note: str
    since: Moment | None


def gauges(facts: ServiceFacts) -> list[Gauge]:
    longest = max((member.timeout_seconds for member in facts.members), default=0)
    stale = is_stale(facts.row.sealed_through, longest * SECOND, facts.now)
    rows: Sequence[BurnRuleRow | None] = facts.burn_rows or [None] * len(facts.burn_rules)
    return [
        _gauge(facts, rule, rows[n], (facts.burns[2 * n], facts.burns[2 * n + 1]), stale=stale)
        for n, rule in enumerate(facts.burn_rules)
    ]


def _gauge(
    facts: ServiceFacts,
    rule: BurnRule,
    row: BurnRuleRow | None,
    burns: tuple[BurnWindow, BurnWindow],
    *,
    stale: bool,
) -> Gauge:
    rates = [None if stale else burn.rate for burn in burns]
    verdict = decide_burn(rule, rates[0], rates[1])
    mark, fill = _FIRES[rule.severity]
    fires = verdict is BurnState.FIRING
    since = row.firing_since if row is not None and row.firing and fires else None
    return Gauge(
        rule.severity.value.capitalize(),
        *_state(verdict, mark),
        [
            _range(burn, rate, rule.threshold, fill if fires else "f-data")
            for burn, rate in zip(burns, rates, strict=True)
        ],
        _note(facts, rule, row, burns, verdict, stale=stale),
        None if since is None else moment(since, facts.now),
    )


def _state(verdict: BurnState, mark: str) -> tuple[str, str]:
    match verdict:
        case BurnState.FIRING:
            return mark, "Firing"
        case BurnState.CLEAR:
            return "up", "Not firing"
        case BurnState.UNEVALUATED:
            return "unknown", "Not enough data"


def _range(burn: BurnWindow, rate: Fraction | None, threshold: Fraction, fill: str) -> Range:
    name = setting(burn.window_us // SECOND)
    text = NOTHING if rate is None else spelt_rate(rate)
    said = f"{name}: {'no data' if rate is None else text}, threshold {spelt_rate(threshold)}"
    return Range(name, gauge(rate, threshold, fill, said), text)


def _note(
    facts: ServiceFacts,
    rule: BurnRule,
    row: BurnRuleRow | None,
    burns: tuple[BurnWindow, BurnWindow],
    verdict: BurnState,
    *,
    stale: bool,
) -> str:
    threshold = spelt_rate(rule.threshold)
    match verdict:
        case BurnState.FIRING:
            return f"Both ranges are at or above {threshold}"
        case BurnState.CLEAR:
            below = [burn for burn in burns if burn.rate is not None and burn.rate < rule.threshold]
            if len(below) == 2:
                return f"Both ranges are below {threshold}."
            return f"The range of {setting(below[0].window_us // SECOND)} is below {threshold}."
        case BurnState.UNEVALUATED:
            fired = row is not None and row.firing
            before = " It was firing at the last evaluation." if fired else ""
            return f"{_undecided(facts, burns, stale=stale)}{before}"


def _undecided(facts: ServiceFacts, burns: tuple[BurnWindow, BurnWindow], *, stale: bool) -> str:
    sealed = facts.row.sealed_through
    if stale and sealed is not None:
        return f"Sealed data is {duration(facts.now - sealed)} old."
    missing = next((burn for burn in burns if burn.rate is None), burns[0])
    name = setting(missing.window_us // SECOND)
    if missing.reason is Withheld.DECIDABLE_COVERAGE_BELOW_MIN:
        return f"Of the last {name}, {coverage(missing.coverage)} was measured, 50% required."
    return f"Of the last {name}, {why(missing.reason)}."


def burn_note(facts: ServiceFacts, now: Instant) -> str:
    """Returns who is notified when a burn rule fires, and the last evaluation."""
    target = facts.targets.get(facts.shown)
    if target is None:
        return ""
    if not target.burn_enabled:
        return "Burn alerts are off: rules send no notifications."
    if not facts.burn_rows:
        return "Burn alerts are on but no rule is defined."
    looked = max((row.evaluated_at for row in facts.burn_rows if row.evaluated_at), default=None)
    if looked is None:
        return "Firing rules send notifications. No rule was evaluated yet."
    return f"Firing rules send notifications. Rules were last evaluated {_ago(looked, now)}."


def _ago(at: Instant, now: Instant) -> str:
    return f"{duration(now - at)} ago"
