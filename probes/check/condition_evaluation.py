"""Values of a run, and the evaluation of conditions on them.

Pure, and never raises. A missing value makes every condition false, `!=` too, since an absent value
proves no condition. The searches of one check share a bounded amount of work.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .condition import (
    SPANS,
    Condition,
    Literal,
    Operand,
    Operator,
    compiled_pattern,
    read_number,
    read_span_us,
)
from .json_document import MISSING, WHOLE_CHARACTERS_MOST, TooLarge, read_along, read_whole, walk

__all__ = ["MISSING", "AllOf", "ProbeValues", "evaluate", "failing_value", "is_long"]

# Program size × bytes searched. RE2's slowest engine does about 150 million per second.
SEARCH_WORK_MOST = 128_000_000
# This work blocks the event loop for a few milliseconds. More work belongs in a thread.
SEARCH_WORK_ON_LOOP_MOST = 1_000_000


class AllOf(tuple[object, ...]):
    """Several values. A condition is true if it is true for each; never for an empty tuple."""


_UNREAD: Final = object()


@dataclass(slots=True)
class ProbeValues:
    """Values of a run. None means not measured; for `result` this is MISSING.

    `response_time_ms` is the reported latency, `cert_expiry_us` and `domain_expiry_us` the time
    left. `headers` has
    lower-case names. `result` is text, a number, a boolean, None (null), or `AllOf` of them.
    """

    connected: bool | None = None
    status: int | None = None
    response_time_ms: int | None = None
    cert_expiry_us: int | None = None
    domain_expiry_us: int | None = None
    body: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    ip: str | None = None
    result: object = field(default=MISSING, repr=False)
    # Secrets that only this run knows: no measured value contains them.
    hidden: tuple[str, ...] = field(default=(), repr=False)
    search_work_left: int = SEARCH_WORK_MOST
    _document: object = field(default=_UNREAD, repr=False)

    @property
    def exhausted(self) -> bool:
        """Returns whether the work limit was exceeded. The evaluations are then invalid."""
        return self.search_work_left < 0

    def in_body(self, path: tuple[str | int, ...]) -> object:
        """Returns the value at `path` in the body, read as JSON.

        Returns MISSING if the body is not JSON or has no such value, and if the value has too many
        parts, after which `exhausted` is true.
        """
        if self.body is not None and len(self.body) > WHOLE_CHARACTERS_MOST:
            try:
                return read_along(self.body, path)
            except TooLarge:
                self.search_work_left = -1
                return MISSING
        if self._document is _UNREAD:
            self._document = MISSING if self.body is None else read_whole(self.body)
        return walk(self._document, path)


def is_long(conditions: Iterable[Condition], facts: ProbeValues) -> bool:
    """Returns whether the evaluation of all conditions would block the event loop."""
    if facts.body is not None and len(facts.body) > WHOLE_CHARACTERS_MOST:
        return True
    work = 0
    for condition in conditions:
        if condition.operator is Operator.MATCHES and condition.literal is not None:
            work += compiled_pattern(condition.literal.text).programsize * _length(condition, facts)
    return work > SEARCH_WORK_ON_LOOP_MOST


def _length(condition: Condition, facts: ProbeValues) -> int:
    """Returns an upper bound of the bytes of text that a pattern would search.

    A number and an address are short and count as 0.
    """
    place = condition.place.name
    found: object = facts.body
    if place == "HEADER":
        found = facts.headers.get(str(condition.place.path[0]))
    elif place != "BODY":
        found = facts.result
    values = found if isinstance(found, AllOf) else (found,)
    return sum(_bytes_most(value) for value in values if isinstance(value, str))


def _bytes_most(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


def evaluate(condition: Condition, facts: ProbeValues) -> bool:
    """Returns whether a condition is true. Never raises; check `facts.exhausted` afterwards."""
    value = _value(condition.place, facts)
    if isinstance(value, AllOf):
        return bool(value) and all(_holds(condition, one, facts) for one in value)
    return _holds(condition, value, facts)


def failing_value(condition: Condition, facts: ProbeValues) -> object:
    """Returns the value that makes a false condition false, MISSING if there is none.

    Of several values it is the first that fails.
    """
    value = _value(condition.place, facts)
    if not isinstance(value, AllOf):
        return value
    left = facts.search_work_left
    # The evaluation did these searches within its limit, so that they do not exceed a new one.
    facts.search_work_left = SEARCH_WORK_MOST
    found = next((one for one in value if not _holds(condition, one, facts)), MISSING)
    facts.search_work_left = left
    return found


def _holds(condition: Condition, value: object, facts: ProbeValues) -> bool:
    if value is MISSING:
        return False
    operator, literal = condition.operator, condition.literal
    if operator is Operator.EXISTS or literal is None:
        return True
    if operator is Operator.EQUAL:
        return _equal(condition.place, value, literal)
    if operator is Operator.UNEQUAL:
        return not _equal(condition.place, value, literal)
    if operator is Operator.CONTAINS:
        return _contains(value, literal)
    if operator is Operator.MATCHES:
        return _matches(value, literal, facts)
    return _ordered(condition.place, value, operator, literal)


def _value(place: Operand, facts: ProbeValues) -> object:
    match place.name:
        case "STATUS":
            value: object = facts.status
        case "RESPONSE_TIME":
            value = facts.response_time_ms
        case "CONNECTED":
            value = facts.connected
        case "CERT_EXPIRY":
            value = facts.cert_expiry_us
        case "DOMAIN_EXPIRY":
            value = facts.domain_expiry_us
        case "IP":
            value = facts.ip
        case "HEADER":
            value = facts.headers.get(str(place.path[0]))
        case "RESULT":
            return facts.result
        case _:
            if place.path:
                return facts.in_body(place.path)
            value = facts.body
    return MISSING if value is None else value


def _equal(place: Operand, value: object, literal: Literal) -> bool:
    text = literal.text
    if place.name in SPANS:
        return _in_us(place.name, value) == read_span_us(place.name, literal)
    if isinstance(value, str):
        # The trailing line break of a body is ignored.
        return value == text or (place.name == "BODY" and not place.path and value.strip() == text)
    if literal.quoted and place.name not in ("STATUS", "CONNECTED"):
        return False
    if value is None or isinstance(value, bool):
        return text == _plain(value)
    if isinstance(value, int | float):
        return value == read_number(text)
    return value == read_whole(text)


def _ordered(place: Operand, value: object, operator: Operator, literal: Literal) -> bool:
    left: int | float | None
    right: int | float | None
    if place.name in SPANS:
        left, right = _in_us(place.name, value), read_span_us(place.name, literal)
    else:
        left, right = _numeric(value), read_number(literal.text)
    if left is None or right is None:
        return False
    if operator is Operator.LESS:
        return left < right
    if operator is Operator.AT_MOST:
        return left <= right
    if operator is Operator.MORE:
        return left > right
    return left >= right


def _contains(value: object, literal: Literal) -> bool:
    """Returns whether text contains text, a list an element, or an object a key."""
    if isinstance(value, list):
        return any(_equal(Operand("RESULT"), element, literal) for element in value)
    if isinstance(value, dict):
        return literal.text in value
    return literal.text in _plain(value)


def _matches(value: object, literal: Literal, facts: ProbeValues) -> bool:
    if isinstance(value, list | dict):
        return False
    text = _plain(value).encode("utf-8", "replace")
    pattern = compiled_pattern(literal.text)
    facts.search_work_left -= pattern.programsize * len(text)
    return not facts.exhausted and pattern.search(text) is not None


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _numeric(value: object) -> int | float | None:
    if isinstance(value, str):
        return read_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def _in_us(name: str, value: object) -> int:
    assert isinstance(value, int)
    return value * 1_000 if name == "RESPONSE_TIME" else value
