"""The YAML text of a bundle is parsed with line numbers, or refused if it is ambiguous."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.bundles.rules.bundle import BYTES_MOST, DEPTH_MOST
from leadline.storage.bundles.rules.bundle_yaml import (
    BadText,
    SourcePosition,
    read_text,
    write_text,
)

TEXT = """\
format: 1
organization: acme
monitors:
  web:
    name: Web
    tags: [no, "12", 007]
    config:
      url: https://example.org
"""


def refused(text: str) -> str:
    with pytest.raises(BadText) as caught:
        read_text(text)
    return str(caught.value)


def test_everything_has_its_place() -> None:
    read = read_text(TEXT)
    assert read.document["monitors"]["web"]["tags"] == ["no", "12", 7]
    assert read.places["monitors.web.config.url"] == SourcePosition(8, 7)
    assert read.place_of("monitors.web.config.method") == SourcePosition(7, 5)
    assert read.place_of("monitors.web.tags[1]") == SourcePosition(6, 16)
    assert read.place_of("services.x") == SourcePosition(1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "line 2, column 1: 'a' is given twice"),
        ("x:\n  a: 1\n  a: 2\n", "line 3, column 3: 'a' is given twice"),
        ("a: &x 1\n", "line 1, column 4: is an anchor, which a bundle must not contain"),
        ("a: &x {b: 1}\n", "line 1, column 4: is an anchor, which a bundle must not contain"),
        ("&x a: 1\n", "line 1, column 1: is an anchor or a tag, which a bundle must not contain"),
        ("a: !!str 1\n", "line 1, column 4: is a tag, which a bundle must not contain"),
        (
            "a: !!python/object:os.system {}\n",
            "line 1, column 4: is a tag, which a bundle must not contain",
        ),
        ("a: {<<: {b: 1}}\n", "line 1, column 5: is a merge, which a bundle must not contain"),
        ("a: *x\n", "line 1, column 4: is an alias, which a bundle must not contain"),
        ("? [a]\n: 1\n", "line 1, column 3: must be a text key"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: is a second document"),
        ("", "line 1, column 1: is empty"),
        ("# nothing\n", "line 1, column 1: is empty"),
    ],
)
def test_forbidden_yaml_features_are_refused(text: str, said: str) -> None:
    assert refused(text) == said


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c\n", "\ta: 1\n", "a: '", "{a: 1", "a: \x07"])
def test_invalid_yaml_is_refused_with_its_line(text: str) -> None:
    assert refused(text).startswith("line ")


def test_depth_is_bounded_on_the_way_in() -> None:
    inner = "[" * (DEPTH_MOST - 1) + "]" * (DEPTH_MOST - 1)
    assert read_text(f"a: {inner}\n").document
    assert "nested deeper" in refused(f"a: [{inner}]\n")
    # No function recurses, so a very deep text is refused without an overflow.
    assert refused("[" * 100_000)


def test_size_is_bounded() -> None:
    assert "larger" in refused("#" * (BYTES_MOST + 1))
    assert "larger" in refused("é" * (BYTES_MOST // 2 + 1))


def test_plain_words_are_what_json_has() -> None:
    text = (
        "a: no\nb: on\nc: 2026-11-23\nd: 0x10\ne: 1_000\nf: 12:30\ng: .5\nh: true\ni: ~\nj: NaN\n"
    )
    assert read_text(text).document == {
        "a": "no",
        "b": "on",
        "c": "2026-11-23",
        "d": "0x10",
        "e": "1_000",
        "f": "12:30",
        "g": 0.5,
        "h": True,
        "i": None,
        "j": "NaN",
    }


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 3))
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
)
DOCUMENTS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    ),
    max_size=5,
)


@given(DOCUMENTS)
def test_json_is_read_alike(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False)
    assert read_text(text).document == document


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    line = 1
    try:
        read_text(text)
    except BadText as bad:
        line = bad.place.line
    assert line >= 1


@given(DOCUMENTS)
def test_a_written_text_is_read_as_the_same_document(document: dict[str, Any]) -> None:
    assert read_text(write_text(document)).document == document


@pytest.mark.parametrize(
    "word",
    ["no", "1", "1e3", "~", "null", "true", "<<", "", ".5", "- a", "a: b", "#", "é", "\U0001f600"],
)
def test_words_stay_words(word: str) -> None:
    document = {"a": word, "b": [word]}
    assert read_text(write_text(document)).document == document
