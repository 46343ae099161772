"""Conditions as rows and as text are the same conditions."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.monitors.form.condition_rows import ADD, DROP, ROWS, TEXT, editor, with_text
from leadline.http.monitors.form.form_parser import kinds
from leadline.http.monitors.form.kind_cards import cards
from leadline.probes.check.condition import Operator, is_condition, parse

PLACES = st.sampled_from(["[STATUS]", "[BODY].a[0].b", "[HEADER].content-type", "[BODY]"])
VALUES = st.sampled_from(["200", "true", '"a \\"quoted\\" b"', "ok", "^a+$", "1.5", "null"])
CONDITIONS = (
    st.tuples(PLACES, st.sampled_from([o.value for o in Operator]), VALUES)
    .map(lambda parts: f"{parts[0]} {parts[1]} {'' if parts[1] == 'exists' else parts[2]}".strip())
    .filter(is_condition)
)
KNOWN = frozenset({"STATUS", "BODY", "HEADER"})


def rows_of(conditions: list[str]) -> dict[str, list[str]]:
    shown = editor({"conditions": ["\n".join(conditions)]}, KNOWN)
    assert shown.rows is not None
    found = {"cond.mode": [ROWS]}
    for n, row in enumerate(shown.rows):
        found |= {
            f"cond.{n}.place": [row.place],
            f"cond.{n}.op": [row.operator],
            f"cond.{n}.value": [row.value],
        }
    return found


@given(st.lists(CONDITIONS, max_size=6))
def test_rows_give_the_same_conditions(conditions: list[str]) -> None:
    text = with_text(rows_of(conditions))["conditions"][0]
    assert [parse(line) for line in text.splitlines()] == [parse(line) for line in conditions]


@given(st.lists(CONDITIONS, min_size=1, max_size=6), st.data())
def test_a_row_is_added_and_dropped(conditions: list[str], data: st.DataObject) -> None:
    added = editor(with_text({**rows_of(conditions), "act": [ADD]}), KNOWN)
    assert added.rows is not None
    assert len(added.rows) == len(conditions) + 1
    at = data.draw(st.integers(0, len(conditions) - 1))
    left = with_text({**rows_of(conditions), "act": [f"{DROP}{at}"]})["conditions"][0]
    rest = [parse(line) for n, line in enumerate(conditions) if n != at]
    assert [parse(line) for line in left.splitlines()] == rest


def test_text_that_is_no_condition_is_shown_as_text() -> None:
    shown = editor({"conditions": ["[STATUS] = 200"]}, KNOWN)
    assert shown.rows is None
    assert not shown.has_rows


def test_the_mode_changes_without_a_change_of_the_conditions() -> None:
    typed = {**rows_of(["[STATUS] == 200"]), "act": [TEXT]}
    as_text = with_text(typed)
    assert editor(as_text, KNOWN).rows is None
    assert as_text["conditions"] == ["[STATUS] == 200"]
    again = with_text({**as_text, "act": [ROWS]})
    assert editor(again, KNOWN).rows is not None


def test_an_unfinished_row_stays_a_row() -> None:
    typed = {
        "cond.mode": [ROWS],
        "cond.0.place": ["[STATUS]"],
        "cond.0.op": ["=="],
        "cond.0.value": [""],
    }
    shown = editor(with_text(typed), KNOWN)
    assert shown.rows is not None
    assert shown.rows[0].place == "[STATUS]"


def test_every_type_has_a_card() -> None:
    found = cards(kinds())
    assert {card.type for card in found} == {str(spec.type) for spec in kinds()}
    assert len({card.name for card in found}) == len(found)
