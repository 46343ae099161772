"""A path in a long JSON document is read like in a short one, and values outside of the path are
not built.
"""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.condition import parse
from leadline.probes.check.condition_evaluation import ProbeValues, evaluate
from leadline.probes.check.json_document import (
    INDEX_MOST,
    MISSING,
    PARTS_MOST,
    WHOLE_CHARACTERS_MOST,
    TooLarge,
    read_along,
    read_whole,
    walk,
)

KEYS = st.sampled_from(["a", "b", "", "é", 'q"', "\\", "there", "before0"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    LEAVES,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(KEYS, inside, max_size=4),
)
PATHS = st.lists(KEYS | st.integers(0, 3) | st.just(INDEX_MOST + 1), max_size=4).map(tuple)
DEEP = "[" * 100_000
MANY = "[" + ",".join(["[]"] * (3 * PARTS_MOST)) + "]"


@given(VALUES, PATHS, st.booleans())
def test_a_path_gives_the_value_of_the_whole_document(
    value: object, path: tuple[str | int, ...], ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    whole = walk(read_whole(text), path)
    along = read_along(text, path)
    assert along is whole or along == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1',
        '{"a":1} x',
        '{"a":1,"b":tru}',
        '{"a":1,"b":[1,]}',
        '{"a":1,"b":"\\x"}',
        "[" * 100000,
    ],
)
def test_invalid_json_has_no_values(text: str) -> None:
    assert read_along(text, ("a",)) is MISSING


def test_the_last_of_duplicate_keys_is_used() -> None:
    text = '{"a": 1, "a": 2}'
    assert read_along(text, ("a",)) == walk(read_whole(text), ("a",)) == 2


def test_values_outside_the_path_are_not_built() -> None:
    text = f'{{"many": {MANY}, "status": "UP"}}'
    assert len(text) > WHOLE_CHARACTERS_MOST
    read_along(text, ("status",))
    tracemalloc.start()
    try:
        found = [read_along(text, path) for path in (("status",), ("many", 7))]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == ["UP", []]
    # The same number of lists would need twenty times this memory.
    assert peak < 2 * len(text)


@pytest.mark.parametrize("path", [(), ("many",), ("many", INDEX_MOST + 1), ('"', 1)])
def test_a_value_with_too_many_parts_is_too_large(path: tuple[str | int, ...]) -> None:
    with pytest.raises(TooLarge):
        read_along(f'{{"many": {MANY}, "status": "UP"}}', path)


def test_a_condition_on_too_many_parts_is_not_evaluated() -> None:
    body = f'{{"many": {MANY}, "status": "UP"}}'
    beside, of_them = ProbeValues(body=body), ProbeValues(body=body)
    assert evaluate(parse("[BODY].status == UP"), beside)
    assert not beside.exhausted
    assert not evaluate(parse("[BODY].many contains 1"), of_them)
    assert of_them.exhausted
