"""The instant until which facts are fresh: no fact is stale up to it, and one is right after it."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from leadline.storage.alerting.rules.alert_episode import ServiceCondition
from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.gate.rules.gate import (
    GateClause,
    GateClauseAssignment,
    UnavailableReason,
    UnknownBehavior,
)
from leadline.storage.gate.rules.gate_evidence import (
    FactRevisions,
    GateFacts,
    GoverningRevision,
    RuleFacts,
    SignalFacts,
    WindowFacts,
    findings,
)
from leadline.storage.gate.rules.gate_freshness import fresh_until, looked_at
from leadline.storage.gate.rules.gate_policy import Document, WindowMode
from leadline.storage.objectives.rules import BurnSeverity, BurnState

NOW = Instant(1_790_000_000 * SECOND)
UID = UUID(int=7)
WINDOWS = ("24h", "7d", "30d")
STALE = {UnavailableReason.SEAL_STALE, UnavailableReason.FACTS_STALE}


def ago(most_seconds: int) -> st.SearchStrategy[Instant]:
    return st.integers(0, most_seconds * SECOND).map(lambda us: Instant(NOW - us))


def seen() -> st.SearchStrategy[RuleFacts]:
    return st.builds(
        RuleFacts,
        key=st.just("k"),
        severity=st.sampled_from(BurnSeverity),
        firing=st.just(value=False),
        last_verdict=st.just(BurnState.CLEAR),
        evaluated_at=ago(90),
        lease_until=st.none(),
    )


@st.composite
def all_that_counts(draw: st.DrawFn) -> tuple[Document, GateFacts]:
    """Draws facts that are all fresh now, and a policy that uses some of them."""
    lag = draw(st.integers(300, 3_600))
    mode = draw(st.sampled_from(WindowMode))
    windows = [
        WindowFacts(
            window=name,
            target=UID,
            objective=990_000,
            objective_updated_at=NOW,
            from_at=Instant(NOW - 2 * HOUR),
            to_at=NOW,
            good_us=2 * HOUR,
            bad_us=0,
            unknown_us=0,
            excluded_us=0,
            withheld=None,
            repair_since=draw(st.none() | ago(lag)),
            burn_enabled=draw(st.booleans()),
            rules=draw(st.lists(seen(), max_size=3)),
        )
        for name in WINDOWS[: draw(st.integers(1, 3))]
    ]
    never = SignalFacts(armed=False, reason=None, evaluated_at=None, lease_until=None)
    facts = GateFacts(
        at=NOW,
        governing=GoverningRevision(UID, 1),
        sealed_through=draw(ago(lag)),
        windows=windows,
        fact_revisions=FactRevisions(1, UID, UID, ""),
        live=SignalFacts(armed=True, reason=None, evaluated_at=draw(ago(90)), lease_until=None),
        burn=never,
        open_incidents=[],
        seen=ServiceCondition.HEALTHY,
    )
    document = Document(
        schema_version=2,
        window_mode=mode,
        window=None if mode is WindowMode.ALL else draw(st.sampled_from(WINDOWS)),
        clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
        budget_consumed_percent=80,
        max_seal_lag_seconds=lag,
        unknown_behavior=UnknownBehavior.BLOCK,
    )
    return document, facts


def is_stale(document: Document, facts: GateFacts, at: int) -> bool:
    then = replace(facts, at=Instant(at))
    return any(finding.unavailable in STALE for finding in findings(document, then))


@given(all_that_counts(), st.data())
def test_facts_are_fresh_until_that_instant_and_stale_after_it(
    given_: tuple[Document, GateFacts], data: st.DataObject
) -> None:
    document, facts = given_
    until = fresh_until(document, facts)
    assert until is not None
    assert until >= NOW
    assert not is_stale(document, facts, data.draw(st.integers(NOW, until)))
    assert not is_stale(document, facts, until)
    if looked_at(document, facts):
        assert is_stale(document, facts, until + 1)


@given(all_that_counts())
def test_facts_that_were_never_evaluated_have_no_freshness(
    given_: tuple[Document, GateFacts],
) -> None:
    document, facts = given_
    nothing = replace(facts, sealed_through=None, windows=[], live=facts.burn)
    assert fresh_until(document, nothing) is None


@given(all_that_counts())
def test_the_windows_that_a_policy_uses(
    given_: tuple[Document, GateFacts],
) -> None:
    document, facts = given_
    assert looked_at(None, facts) == facts.windows
    found = [window.window for window in looked_at(document, facts)]
    if document.window_mode is WindowMode.ALL:
        assert found == [window.window for window in facts.windows]
    else:
        assert found == [w.window for w in facts.windows if w.window == document.window]
