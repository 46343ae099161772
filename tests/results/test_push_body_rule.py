"""Keywords in the bodies of pushes, against a model."""

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.results.rules.push_body import (
    BODY_KEPT_BYTES,
    NOT_IN_BEGINNING,
    BodyKeywords,
    judge_body,
    kept_part,
    keywords_in,
)
from leadline.storage.results.rules.push_request import MESSAGE_LENGTH, Push, PushKind
from tests.support.run.effort import examples

WORDS = st.lists(st.sampled_from(["ok", "error", "ü", "done it"]), max_size=3)


@settings(max_examples=examples(500))
@given(
    mark=st.sampled_from(PushKind),
    up=st.booleans(),
    message=st.sampled_from(["", "of the sender"]),
    body=st.lists(st.sampled_from(["ok", "error", "OK", "ü", "done it", " "]), max_size=4),
    failure=WORDS,
    success=WORDS,
    is_cut=st.booleans(),
)
def test_a_body_can_only_make_a_result_down(
    mark: PushKind,
    up: bool,
    message: str,
    body: list[str],
    failure: list[str],
    success: list[str],
    is_cut: bool,
) -> None:
    said = Push(mark, up, message)
    text = "".join(body)
    found = judge_body(
        said, text.encode(), BodyKeywords(tuple(failure), tuple(success)), is_cut=is_cut
    )
    has_failure = any(word in text for word in failure)
    lacks_success = bool(success) and not any(word in text for word in success)
    is_judged = mark is PushKind.HEARTBEAT and up
    turns = is_judged and (has_failure or (lacks_success and not is_cut))
    is_unknown = is_judged and not has_failure and lacks_success and is_cut
    assert found.warnings == ((NOT_IN_BEGINNING,) if is_unknown else ())
    assert found.up == (up and not turns)
    assert found.mark is mark
    if not turns or message:
        assert found.message == message
    else:
        assert found.message.startswith("failure keyword found" if has_failure else "no success")


@given(st.binary(max_size=50), st.text(min_size=1, max_size=400))
def test_any_body_and_keyword_can_be_judged(body: bytes, word: str) -> None:
    found = judge_body(Push(PushKind.HEARTBEAT, True), body, BodyKeywords(success=(word,)))
    assert len(found.message) <= MESSAGE_LENGTH


@given(st.text())
def test_keywords_are_lines_without_blank_ones(text: str) -> None:
    words = keywords_in(text)
    assert all(word and word == word.strip() for word in words)
    assert set(words) == {line.strip() for line in text.splitlines()} - {""}


def test_the_beginning_of_a_body_is_kept() -> None:
    assert kept_part(b"x" * (BODY_KEPT_BYTES + 1)) == b"x" * BODY_KEPT_BYTES
    assert kept_part(b"x") == b"x"
