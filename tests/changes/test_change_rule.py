"""The records of a change that are accepted, compared with a judgement of complete histories."""

from dataclasses import replace
from itertools import product
from unicodedata import is_normalized
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.changes.rules.change import (
    AHEAD_MOST_US,
    BACK_MOST_US,
    ChangeDraft,
    ChangeFault,
    ChangeKind,
    ChangePhaseName,
    Code,
    Record,
    RecordedPhase,
    Replay,
    follow,
    kept,
    read,
)
from leadline.storage.core.instant import DAY, MILLISECOND, MINUTE, SECOND, Instant

NOW = Instant(1_767_571_200_000_000)
ONE, TWO = UUID(int=1), UUID(int=2)
TERMINAL = (ChangePhaseName.SUCCEEDED, ChangePhaseName.FAILED, ChangePhaseName.CANCELLED)


def draft(**given_: object) -> ChangeDraft:
    values = {"kind": "deploy", "phase": "started", "source": "ci", "external_id": "1", **given_}
    return ChangeDraft(**values)  # type: ignore[arg-type]


def fault(**given_: object) -> ChangeFault:
    found = read(draft(**given_))
    assert isinstance(found, ChangeFault), found
    return found


def record(phase: ChangePhaseName, **given_: object) -> Record:
    values = {
        "kind": ChangeKind.DEPLOY,
        "phase": phase,
        "source": "ci",
        "external_id": "1",
        **given_,
    }
    return Record(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_", "code", "field"),
    [
        ({"kind": "Deploy"}, "kind_invalid", "kind"),
        ({"kind": ""}, "kind_invalid", "kind"),
        ({"phase": "done"}, "phase_invalid", "phase"),
        ({"source": ""}, "source_invalid", "source"),
        ({"source": "CI"}, "source_invalid", "source"),
        ({"source": "-ci"}, "source_invalid", "source"),
        ({"source": "c i"}, "source_invalid", "source"),
        ({"source": "ci\nx"}, "source_invalid", "source"),
        ({"source": "c\u0661"}, "source_invalid", "source"),
        ({"source": "c" * 65}, "source_invalid", "source"),
        ({"external_id": ""}, "external_id_invalid", "external_id"),
        ({"external_id": " \t"}, "external_id_invalid", "external_id"),
        ({"external_id": "x" * 129}, "external_id_invalid", "external_id"),
        ({"external_id": "a\x00b"}, "external_id_invalid", "external_id"),
        ({"external_id": "a\x9fb"}, "external_id_invalid", "external_id"),
        ({"external_id": "a\ud800"}, "external_id_invalid", "external_id"),
        ({"ref": "x" * 129}, "ref_invalid", "ref"),
        ({"ref": "a\nb"}, "ref_invalid", "ref"),
        ({"url": ""}, "url_invalid", "url"),
        ({"url": "http://ci.example.com/1"}, "url_invalid", "url"),
        ({"url": "javascript:alert(1)"}, "url_invalid", "url"),
        ({"url": "https:"}, "url_invalid", "url"),
        ({"url": "https:///1"}, "url_invalid", "url"),
        ({"url": "https://:443/"}, "url_invalid", "url"),
        ({"url": "https://me@ci.example.com/"}, "url_invalid", "url"),
        ({"url": "https://me:pw@ci.example.com/"}, "url_invalid", "url"),
        ({"url": "https://ci.example.com\\@evil.example/"}, "url_invalid", "url"),
        ({"url": "https://ci.example.com/a b"}, "url_invalid", "url"),
        ({"url": "https://ci.example.com/" + "x" * 490}, "url_invalid", "url"),
        ({"url": "//ci.example.com/"}, "url_invalid", "url"),
        ({"url": "https://ci.example.com:x/"}, "url_invalid", "url"),
    ],
)
def test_an_invalid_record_is_refused_by_its_field(
    given_: dict[str, object], code: str, field: str
) -> None:
    found = fault(**given_)
    assert (found.code, found.field) == (code, field)
    assert found.rule.startswith("must ")


@pytest.mark.parametrize(
    "given_",
    [
        {"source": "c"},
        {"source": "0" * 64},
        {"source": " ci-1\n"},
        {"external_id": "x" * 128},
        {"external_id": "é" * 128},
        {"ref": ""},
        {"ref": "v" * 128},
        {"url": "https://ci.example.com"},
        {"url": "HTTPS://CI.example.com:8443/a?b=c#d"},
        {"url": "https://[2001:db8::1]/"},
        {"url": "https://bücher.example/"},
        {"url": "https://ci.example.com/" + "x" * 489},
    ],
)
def test_a_valid_record_is_accepted(given_: dict[str, object]) -> None:
    assert isinstance(read(draft(**given_)), Record)


def test_texts_are_kept_in_one_spelling() -> None:
    found = read(draft(source=" ci ", external_id="e\u0301 1\n", ref="\u00a0v1\u2003"))
    assert isinstance(found, Record)
    assert (found.source, found.external_id, found.ref) == ("ci", "é 1", "v1")


@given(st.text())
def test_a_stored_text_is_stored_unchanged_again(text: str) -> None:
    once = kept(text)
    assert kept(once) == once == once.strip()
    assert is_normalized("NFC", once)


@given(st.integers(0, 2_000))
def test_instants_are_stored_in_milliseconds(us: int) -> None:
    found = read(draft(occurred_at=Instant(NOW + us)))
    assert isinstance(found, Record)
    assert found.occurred_at == NOW + us - us % MILLISECOND
    taken = follow(None, [], record(ChangePhaseName.STARTED), Instant(NOW + us))
    assert isinstance(taken, RecordedPhase)
    assert taken.occurred_at == found.occurred_at


def stands(history: list[RecordedPhase]) -> bool:
    """True if these phases are a change in any order of arrival: `started` and then one final
    phase, or one of the two alone."""
    phases = [each.phase for each in history]
    if len(set(phases)) != len(phases) or sum(phase in TERMINAL for phase in phases) > 1:
        return False
    if len(history) < 2:
        return True
    return phases[0] is ChangePhaseName.STARTED and history[0].occurred_at <= history[1].occurred_at


def facts_of(known: RecordedPhase) -> dict[str, object]:
    return {
        "occurred_at": known.occurred_at,
        "ref": known.ref,
        "url": known.url,
        "decision": known.decision,
    }


def contradictions(known: RecordedPhase, given_: Record) -> list[str]:
    names = {"decision": "decision_id"}
    return [
        names.get(name, name)
        for name, ours in facts_of(known).items()
        if getattr(given_, name) not in (None, ours)
    ]


_TIMES = [None, NOW - DAY, NOW, NOW + AHEAD_MOST_US, NOW - BACK_MOST_US - 1, NOW + 10 * MINUTE]
_GIVEN = st.builds(
    Record,
    kind=st.sampled_from(
        [ChangeKind.DEPLOY, ChangeKind.DEPLOY, ChangeKind.DEPLOY, ChangeKind.FLAG]
    ),
    phase=st.sampled_from(ChangePhaseName),
    source=st.just("ci"),
    external_id=st.just("1"),
    ref=st.sampled_from([None, "", "v1"]),
    url=st.sampled_from([None, "https://a", "https://b"]),
    occurred_at=st.sampled_from(_TIMES),
    decision=st.sampled_from([None, ONE, TWO]),
)


@given(st.lists(_GIVEN, max_size=8))
def test_every_history_is_a_change_and_every_refusal_has_its_reason(given_: list[Record]) -> None:
    kind: ChangeKind | None = None
    history: list[RecordedPhase] = []
    for one in given_:
        said = follow(kind, history, one, NOW)
        same = [each for each in history if each.phase is one.phase]
        if isinstance(said, RecordedPhase):
            assert kind in (None, one.kind)
            assert said.occurred_at in (one.occurred_at, NOW)
            assert NOW - BACK_MOST_US <= said.occurred_at <= NOW + AHEAD_MOST_US
            kind, history = one.kind, [*history, said]
            assert contradictions(said, one) == []
            assert follow(kind, history, one, Instant(NOW + 99 * DAY)) == Replay()
        elif isinstance(said, Replay):
            assert kind is one.kind
            assert [contradictions(each, one) for each in same] == [[]]
        elif said.code is Code.KIND_MISMATCH:
            assert kind not in (None, one.kind)
        elif said.code is Code.PHASE_EXISTS:
            assert said.field == contradictions(same[0], one)[0]
        elif said.code is Code.OUT_OF_BOUNDS:
            assert one.occurred_at in _TIMES[4:]
            assert not same
        elif said.code is Code.PHASE_ORDER:
            assert not same
            assert any(each.phase in TERMINAL for each in history)
        else:
            assert said.code is Code.BEFORE_START
            assert not same
            assert (one.occurred_at or NOW) < history[0].occurred_at
            assert [each.phase for each in history] == [ChangePhaseName.STARTED]
        assert stands(history)


def test_a_record_is_accepted_if_and_only_if_the_history_is_then_a_change() -> None:
    """All pairs of phases and instants within the limits. The third record is judged against the
    state after the first two."""
    times = [Instant(NOW - SECOND), NOW]
    alphabet = [record(p, occurred_at=t) for p, t in product(ChangePhaseName, times)]
    for first, second, third in product(alphabet, repeat=3):
        history: list[RecordedPhase] = []
        for one in (first, second):
            said = follow(one.kind if history else None, history, one, NOW)
            if isinstance(said, RecordedPhase):
                history.append(said)
        said = follow(ChangeKind.DEPLOY, history, third, NOW)
        assert third.occurred_at is not None
        new = RecordedPhase(
            phase=third.phase, occurred_at=third.occurred_at, ref="", url="", decision=None
        )
        assert isinstance(said, RecordedPhase) == stands([*history, new])


def test_a_retry_that_gives_less_or_the_same_is_replayed_whenever_it_comes() -> None:
    whole = record(
        ChangePhaseName.FAILED,
        ref="v1",
        url="https://a",
        occurred_at=Instant(NOW - DAY),
        decision=ONE,
    )
    taken = follow(None, [], whole, NOW)
    assert isinstance(taken, RecordedPhase)
    for left_out in product([False, True], repeat=4):
        names = ("ref", "url", "occurred_at", "decision")
        gone = {name: None for name, out in zip(names, left_out, strict=True) if out}
        less = replace(whole, **gone)  # type: ignore[arg-type]
        assert follow(ChangeKind.DEPLOY, [taken], less, Instant(NOW + 365 * DAY)) == Replay()
    for field, other in (("ref", ""), ("url", "https://b"), ("decision", TWO)):
        said = follow(ChangeKind.DEPLOY, [taken], replace(whole, **{field: other}), NOW)  # type: ignore[arg-type]
        assert isinstance(said, ChangeFault)
        assert said.code is Code.PHASE_EXISTS
        assert said.field == {"decision": "decision_id"}.get(field, field)


@pytest.mark.parametrize(
    ("off_us", "taken"),
    [
        (AHEAD_MOST_US, True),
        (AHEAD_MOST_US + MILLISECOND, False),
        (-BACK_MOST_US, True),
        (-BACK_MOST_US - MILLISECOND, False),
    ],
)
def test_a_phase_is_accepted_only_within_its_time_limits(off_us: int, taken: bool) -> None:
    said = follow(None, [], record(ChangePhaseName.STARTED, occurred_at=Instant(NOW + off_us)), NOW)
    assert isinstance(said, RecordedPhase) == taken
    if isinstance(said, ChangeFault):
        assert said.code is Code.OUT_OF_BOUNDS
