"""Conditions of the form as rows of field, operator and value, or as text with one per line.

Both modes submit the same conditions: rows are turned into text before the form is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ....probes.check.condition import BadCondition, Operator, parse, unparse
from .form_fields import Typed, form_value

MODE: Final = "cond.mode"
TEXT: Final = "text"
ROWS: Final = "rows"
ADD: Final = "add-condition"
DROP: Final = "drop-condition."
ROWS_MOST: Final = 100
OPERATORS: Final = {
    Operator.EQUAL: "is",
    Operator.UNEQUAL: "is not",
    Operator.LESS: "is below",
    Operator.AT_MOST: "is at most",
    Operator.MORE: "is above",
    Operator.AT_LEAST: "is at least",
    Operator.CONTAINS: "contains",
    Operator.MATCHES: "matches",
    Operator.EXISTS: "exists",
}
PLACES: Final = {
    "STATUS": ("[STATUS]", "Status code"),
    "RESPONSE_TIME": ("[RESPONSE_TIME]", "Response time in ms"),
    "CONNECTED": ("[CONNECTED]", "Connected, true or false"),
    "CERT_EXPIRY": ("[CERT_EXPIRY]", "Time until the certificate expires"),
    "DOMAIN_EXPIRY": ("[DOMAIN_EXPIRY]", "Time until the domain expires"),
    "BODY": ("[BODY]", "Body, or a part such as [BODY].status"),
    "HEADER": ("[HEADER].content-type", "Header by name"),
    "RESULT": ("[RESULT]", "Result of the query"),
    "IP": ("[IP]", "Resolved address"),
}


@dataclass(frozen=True, slots=True)
class ConditionRow:
    place: str = ""
    operator: str = Operator.EQUAL.value
    value: str = ""

    @property
    def text(self) -> str:
        """Returns the condition, empty for an empty row."""
        if not self.place.strip() and not self.value.strip():
            return ""
        value = "" if self.operator == Operator.EXISTS else self.value.strip()
        return f"{self.place.strip()} {self.operator} {value}".strip()


@dataclass(frozen=True, slots=True)
class ConditionEditor:
    """`rows` is None in the text mode, and if rows cannot show the text (`has_rows` is false)."""

    rows: Sequence[ConditionRow] | None
    has_rows: bool
    operators: Mapping[str, str]
    # (text to insert, meaning) of each placeholder of the type.
    places: Sequence[tuple[str, str]]


def with_text(typed: Typed) -> dict[str, list[str]]:
    """Returns the form with the conditions as text, and the rows as the button changes them."""
    found = dict(typed)
    act = form_value(typed, "act")
    if form_value(typed, MODE) == ROWS:
        rows = _submitted(typed)
        if act.startswith(DROP):
            at = act.removeprefix(DROP)
            rows = [row for n, row in enumerate(rows) if str(n) != at]
        found["conditions"] = ["\n".join(row.text for row in rows if row.text)]
        found = {name: value for name, value in found.items() if not name.startswith("cond.")}
        if act == ADD:
            rows = [*rows, ConditionRow()]
        found |= _spelt(rows[:ROWS_MOST])
        found[MODE] = [ROWS]
    if act in (TEXT, ROWS):
        found = {name: value for name, value in found.items() if not name.startswith("cond.")}
        found[MODE] = [act]
    return found


def is_edit(act: str) -> bool:
    """Returns whether the button changes only how the conditions are shown."""
    return act in (TEXT, ROWS, ADD) or act.startswith(DROP)


def editor(typed: Typed, placeholders: frozenset[str]) -> ConditionEditor:
    mode = form_value(typed, MODE)
    known = _parsed(form_value(typed, "conditions"))
    rows: Sequence[ConditionRow] | None = known
    if mode == ROWS and any(name.startswith("cond.0.") for name in typed):
        rows = _submitted(typed)
    elif mode == TEXT:
        rows = None
    return ConditionEditor(
        (rows or [ConditionRow()]) if rows is not None else None,
        known is not None,
        {operator.value: words for operator, words in OPERATORS.items()},
        [place for name, place in PLACES.items() if name in placeholders],
    )


def _submitted(typed: Typed) -> list[ConditionRow]:
    found = []
    for n in range(ROWS_MOST):
        if f"cond.{n}.op" not in typed:
            break
        parts = [form_value(typed, f"cond.{n}.{part}") for part in ("place", "op", "value")]
        found.append(ConditionRow(*parts))
    return found


def _spelt(rows: Sequence[ConditionRow]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for n, row in enumerate(rows):
        found[f"cond.{n}.place"] = [row.place]
        found[f"cond.{n}.op"] = [row.operator]
        found[f"cond.{n}.value"] = [row.value]
    return found


def _parsed(text: str) -> list[ConditionRow] | None:
    """Returns a row per line, None if a line is no condition, so that only text can show it."""
    try:
        return [_row(line.strip()) for line in text.splitlines() if line.strip()]
    except BadCondition:
        return None


def _row(line: str) -> ConditionRow:
    condition = parse(line)
    spelt = unparse(condition)
    steps = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in condition.place.path)
    place = f"[{condition.place.name}]{steps}"
    value = spelt.removeprefix(f"{place} {condition.operator}").strip()
    return ConditionRow(place, condition.operator.value, value)
