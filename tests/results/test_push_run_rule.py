"""Pure rules of push runs: deadlines and their judgement, against a model that samples instants."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.time_span import TimeSpan, merged
from leadline.storage.results.rules.push_request import BadPush, Push, read_push
from leadline.storage.results.rules.push_run import RunJudgement, judge_run, run_deadline
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm
from tests.support.run.effort import examples

START = Instant(1_767_571_200_000_000)


def at(second: int) -> Instant:
    return Instant(START + second * SECOND)


def term(second: int, *, enabled: bool) -> ScheduleTerm:
    return ScheduleTerm(
        from_=at(second),
        anchor=START,
        interval_us=60 * SECOND,
        timeout_us=10 * SECOND,
        grace_us=60 * SECOND,
        enabled=enabled,
    )


def test_a_deadline_is_the_start_and_the_limit() -> None:
    assert run_deadline(START, 0) is None
    assert run_deadline(START, 90) == at(90)


SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20)).map(
        lambda pair: TimeSpan(at(pair[0]), at(pair[0] + pair[1]))
    ),
    max_size=3,
)


@settings(max_examples=examples(500))
@given(
    started=st.integers(5, 50),
    limit=st.integers(1, 20),
    edits=st.lists(st.tuples(st.integers(1, 60), st.booleans()), max_size=4),
    maintenance=SPANS,
    heard=SPANS,
    judged=st.none() | st.integers(0, 90),
)
# A pause that ends when the run starts governs this instant too.
@example(5, 1, [(1, False), (5, True)], [], [], 6)
def test_a_judgement_agrees_with_every_second_of_the_run(
    started: int,
    limit: int,
    edits: list[tuple[int, bool]],
    maintenance: list[TimeSpan],
    heard: list[TimeSpan],
    judged: int | None,
) -> None:
    """The model looks at each half second from the start to the deadline."""
    begun = {0: True} | dict(edits)
    terms = [term(second, enabled=begun[second]) for second in sorted(begun)]
    spans, listening = merged(maintenance), merged(heard)
    through = None if judged is None else at(judged)
    found = judge_run(at(started), at(started + limit), terms, spans, listening, through)
    moments = [START + half * SECOND // 2 for half in range(2 * started, 2 * (started + limit) + 1)]
    governing = [[one for one in terms if one.from_ < now][-1:] or [terms[0]] for now in moments]
    begins = [one for one in terms if one.from_ in moments]
    is_paused = any(not one.enabled for group in [*governing, begins] for one in group)
    in_maintenance = any(span.from_ <= now < span.until for span in spans for now in moments)
    is_heard = any(all(s.from_ <= now <= s.until for now in moments) for s in listening)
    if through is None or through < moments[-1]:
        assert found is None
    elif is_paused:
        assert found is RunJudgement.PAUSED
    elif in_maintenance:
        assert found is RunJudgement.MAINTENANCE
    elif not is_heard:
        assert found is RunJudgement.NOT_LISTENING
    else:
        assert found is RunJudgement.OVERRUN


@pytest.mark.parametrize(
    ("given_run", "run", "warned"),
    [
        ([], "", ()),
        (["5c8e6b2a-1c6f-4f0e-9a55-0f6a0d4f7a11"], "5c8e6b2a-1c6f-4f0e-9a55-0f6a0d4f7a11", ()),
        ([""], "", ()),
        (["a b"], "", ("rid",)),
        (["x" * 65], "", ("rid",)),
        (["ü"], "", ("rid",)),
        (["one", "two"], "one", ("rid",)),
    ],
)
def test_a_run_id_never_refuses_a_push(given_run: list[str], run: str, warned: tuple[str]) -> None:
    found = read_push("", run=given_run)
    assert isinstance(found, Push)
    assert found.run == run
    assert tuple(text.split(":")[0] for text in found.warnings) == warned


@given(st.lists(st.text(), max_size=3), st.sampled_from(["", "start", "log", "fail", "0", "7"]))
def test_any_run_id_is_read(given_run: list[str], suffix: str) -> None:
    assert not isinstance(read_push(suffix, run=given_run), BadPush)
