"""Slow warnings against a model that searches the whole history as text."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.slow_warning import MeasuredCheck, SlowState, follow
from leadline.storage.core.instant import SECOND, Instant

ABOVE = 500
IN_ROW = 3
START = Instant(0)

results = st.lists(
    st.one_of(st.none(), st.integers(0, 2 * ABOVE), st.sampled_from([ABOVE, ABOVE + 1])),
    max_size=80,
).map(lambda all_: [MeasuredCheck(Instant((n + 1) * SECOND), one) for n, one in enumerate(all_)])


def changes_of(history: list[MeasuredCheck]) -> list[tuple[Instant, bool]]:
    """Searches the next run of the other kind, from the end of the last one on."""
    known = [one for one in history if one.latency_ms is not None]
    text = "".join("s" if (one.latency_ms or 0) > ABOVE else "f" for one in known)
    found, at, kind = [], 0, "s"
    while (start := text.find(kind * IN_ROW, at)) >= 0:
        at = start + IN_ROW
        found.append((known[at - 1].ts, kind == "s"))
        kind = "f" if kind == "s" else "s"
    return found


@given(results)
def test_changes_are_those_of_the_model(history: list[MeasuredCheck]) -> None:
    state, changes = follow(SlowState(START), history, ABOVE, IN_ROW)
    assert [(one.at, one.is_slow) for one in changes] == changes_of(history)
    last = changes[-1] if changes else None
    assert state.since == (last.at if last is not None and last.is_slow else None)


@given(results, st.lists(st.integers(0, 80), max_size=6))
def test_results_can_be_followed_in_parts(history: list[MeasuredCheck], cuts: list[int]) -> None:
    whole = follow(SlowState(START), history, ABOVE, IN_ROW)
    state, changes, before = SlowState(START), [], 0
    for cut in [*sorted(cuts), len(history)]:
        state, more = follow(state, history[before:cut], ABOVE, IN_ROW)
        changes += more
        before = max(before, cut)
    assert (state, changes) == whole


@given(results, st.data())
def test_missing_measurements_change_nothing(
    history: list[MeasuredCheck], data: st.DataObject
) -> None:
    kept = [one for one in history if one.latency_ms is not None]
    _, changes = follow(SlowState(START), history, ABOVE, IN_ROW)
    assert follow(SlowState(START), kept, ABOVE, IN_ROW)[1] == changes
    failed = data.draw(st.lists(st.just(None), max_size=20))
    last = history[-1].ts if history else START
    later = [MeasuredCheck(Instant(last + n + 1), None) for n, _ in enumerate(failed)]
    state, _ = follow(SlowState(START), history, ABOVE, IN_ROW)
    after, none = follow(state, later, ABOVE, IN_ROW)
    assert (after.since, after.streak, none) == (state.since, state.streak, [])


@given(st.integers(1, 40))
def test_alternating_results_warn_never(pairs: int) -> None:
    history = [
        MeasuredCheck(Instant((n + 1) * SECOND), ABOVE + (1 if n % 2 else 0))
        for n in range(2 * pairs)
    ]
    assert follow(SlowState(START), history, ABOVE, IN_ROW)[1] == []
