"""The condition language: `[STATUS] == 200`, `[BODY].status == UP`, `[CERT_EXPIRY] > 48h`.

Pure. An invalid condition is refused here, with its position, so that a stored condition always
evaluates (in `condition_evaluation`). Patterns use RE2, which searches in linear time, and their
size is bounded.

    condition = place operator [literal]
    place     = "[STATUS]" | "[RESPONSE_TIME]" | "[CONNECTED]" | "[CERT_EXPIRY]" | "[RESULT]"
              | "[IP]" | "[BODY]" {"." key | "[" index "]"} | "[HEADER]" "." name
    operator  = "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "matches" | "exists"
    literal   = the rest of the line, or text in double quotes with \\" \\\\ \\n \\r \\t

A bare literal is a number, a boolean or null if it has that form. A quoted literal is text.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import re2

from .durations import read_duration

# The one bound of the length of a condition, in characters.
CONDITION_LONGEST = 512
PATTERN_SIZE_MOST = 2_500
PATTERN_MEMORY_BYTES = 512 * 1024
PATH_STEPS_MOST = 32
DAY_US = 86_400_000_000


class Operator(StrEnum):
    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    MATCHES = "matches"
    EXISTS = "exists"


ORDERING = frozenset({Operator.LESS, Operator.AT_MOST, Operator.MORE, Operator.AT_LEAST})
EQUALITY = frozenset({Operator.EQUAL, Operator.UNEQUAL})
TEXTUAL = frozenset({Operator.CONTAINS, Operator.MATCHES})
# Operators allowed for each operand. `exists` is allowed for all of them.
_ALLOWED: dict[str, frozenset[Operator]] = {
    "STATUS": ORDERING | EQUALITY | TEXTUAL,
    "RESPONSE_TIME": ORDERING | EQUALITY,
    "CONNECTED": EQUALITY,
    "CERT_EXPIRY": ORDERING | EQUALITY,
    "DOMAIN_EXPIRY": ORDERING | EQUALITY,
    "BODY": ORDERING | EQUALITY | TEXTUAL,
    "RESULT": ORDERING | EQUALITY | TEXTUAL,
    "IP": EQUALITY | TEXTUAL,
    "HEADER": ORDERING | EQUALITY | TEXTUAL,
}
PLACEHOLDERS = frozenset(_ALLOWED)
# Operands that are compared with a duration, and those whose plain numbers are days.
IN_DAYS = frozenset({"CERT_EXPIRY", "DOMAIN_EXPIRY"})
SPANS = IN_DAYS | {"RESPONSE_TIME"}


class BadCondition(ValueError):
    """Fault of a condition.

    `position` counts characters from 1. The text repeats no path and no literal.
    """

    def __init__(self, position: int, fault: str) -> None:
        super().__init__(f"at {position}: {fault}")
        self.position = position
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Operand:
    """Left side of a condition.

    `path` contains the keys and indices of `[BODY]`, or the lower-case name of a `[HEADER]`.
    """

    name: str
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Literal:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """Parsed condition. `text` is the text that was parsed, "" if it was not parsed."""

    place: Operand
    operator: Operator
    literal: Literal | None = None
    text: str = field(default="", compare=False)

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset({self.place.name})


@lru_cache(maxsize=4_096)
def parse(text: str) -> Condition:
    """Parses a condition.

    Raises: `BadCondition` with the position of the fault.
    """
    if len(text) > CONDITION_LONGEST:
        raise BadCondition(CONDITION_LONGEST + 1, f"is longer than {CONDITION_LONGEST} characters")
    for at, character in enumerate(text):
        if character < " " or character == "\x7f" or "\ud800" <= character <= "\udfff":
            raise BadCondition(at + 1, "a control character")
    place, at = _read_place(text, len(text) - len(text.lstrip()))
    operator, at = _read_operator(text, at)
    literal, literal_at = _read_literal(text, at)
    _combine(place, operator, literal, at + 1, literal_at + 1)
    return Condition(place, operator, literal, text)


def is_condition(text: str) -> bool:
    try:
        parse(text)
    except BadCondition:
        return False
    return True


def read_path(text: str) -> tuple[str | int, ...]:
    """Parses a path into a JSON document: `a.b[0]`, with or without a leading `$`."""
    spelt = text.removeprefix("$")
    if spelt and spelt[0] not in ".[":
        spelt = "." + spelt
    path, at = _read_steps(spelt, 0)
    if at < len(spelt) or len(text) > CONDITION_LONGEST:
        raise BadCondition(
            at + 1 + len(text) - len(spelt), "no step of a path, such as .key or [0]"
        )
    if len(path) > PATH_STEPS_MOST:
        raise BadCondition(1, f"more than {PATH_STEPS_MOST} steps")
    return path


def unparse(condition: Condition) -> str:
    """Returns the text that `parse` reads as this condition."""
    place = condition.place
    steps = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place.path)
    text = f"[{place.name}]{steps} {condition.operator}"
    if condition.literal is None:
        return text
    literal = condition.literal.text
    if condition.literal.quoted:
        for character, escape in _ESCAPES.items():
            literal = literal.replace(character, "\\" + escape)
        literal = f'"{literal}"'
    return f"{text} {literal}"


def pattern_size(condition: Condition) -> int:
    """Returns the size of the compiled pattern of a `matches`, 0 for other conditions."""
    if condition.operator is not Operator.MATCHES or condition.literal is None:
        return 0
    return int(compiled_pattern(condition.literal.text).programsize)


# Reading.

_PLACE = re.compile(r"\[([A-Z_]+)\]")
_STEP = re.compile(r"\.([^\s.\[\]=<>!\"]+)|\[([0-9]{1,6})\]")
_HEADER_NAME = re.compile(r"\.([#$%&'*+^_`|~0-9A-Za-z-]{1,128})(?![^\s=<>!])")
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|<|>|(?:contains|matches|exists)(?!\S))")
_ESCAPES = {"\\": "\\", '"': '"', "\n": "n", "\r": "r", "\t": "t"}
_UNESCAPES = {escape: character for character, escape in _ESCAPES.items()}
_FUNCTION = re.compile(r"(any|pat|len|has|age)\(.*\)")
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")


def _read_place(text: str, at: int) -> tuple[Operand, int]:
    found = _PLACE.match(text, at)
    if not found:
        raise BadCondition(at + 1, "must begin with a placeholder, such as [STATUS]")
    name = found[1]
    if name not in PLACEHOLDERS:
        raise BadCondition(at + 2, "no such placeholder")
    at = found.end()
    if name == "HEADER":
        named = _HEADER_NAME.match(text, at)
        if not named:
            raise BadCondition(at + 1, "[HEADER] must be followed by . and a header's name")
        return Operand(name, (named[1].lower(),)), named.end()
    path, at = _read_steps(text, at)
    if path and name != "BODY":
        raise BadCondition(found.end() + 1, f"[{name}] has no parts")
    if len(path) > PATH_STEPS_MOST:
        raise BadCondition(found.end() + 1, f"more than {PATH_STEPS_MOST} steps")
    return Operand(name, path), at


def _read_steps(text: str, at: int) -> tuple[tuple[str | int, ...], int]:
    path: list[str | int] = []
    while step := _STEP.match(text, at):
        path.append(step[1] if step[2] is None else int(step[2]))
        at = step.end()
    return tuple(path), at


def _read_operator(text: str, at: int) -> tuple[Operator, int]:
    found = _OPERATOR.match(text, at)
    # A word operator needs a space before it: `[BODY].aexists` is a key.
    if not found or (found[1][0].isalpha() and found.start(1) == at):
        at += len(text[at:]) - len(text[at:].lstrip())
        raise BadCondition(at + 1, f"an operator is expected: {' '.join(Operator)}")
    return Operator(found[1]), found.end()


def _read_literal(text: str, at: int) -> tuple[Literal | None, int]:
    rest = text[at:].strip()
    at += len(text[at:]) - len(text[at:].lstrip())
    if not rest:
        return None, at
    if rest[0] != '"':
        return Literal(rest), at
    return Literal(_unquote(rest, at), quoted=True), at


def _unquote(rest: str, offset: int) -> str:
    out: list[str] = []
    at = 1
    while at < len(rest):
        character = rest[at]
        if character == '"':
            if at + 1 < len(rest):
                raise BadCondition(offset + at + 2, "something follows the closing quote")
            return "".join(out)
        if character == "\\":
            at += 1
            if rest[at : at + 1] not in _UNESCAPES:
                raise BadCondition(offset + at + 1, 'after \\ one of \\ " n r t is expected')
            character = _UNESCAPES[rest[at]]
        out.append(character)
        at += 1
    raise BadCondition(offset + len(rest) + 1, "the closing quote is missing")


def _combine(
    place: Operand, operator: Operator, literal: Literal | None, at: int, literal_at: int
) -> None:
    """Refuses an operator or a literal that the placeholder cannot have.

    Otherwise a condition with a typing error would be saved and always be false.
    """
    if operator is Operator.EXISTS:
        if literal is not None:
            raise BadCondition(literal_at, "exists takes no value")
        return
    if operator not in _ALLOWED[place.name]:
        raise BadCondition(at, f"[{place.name}] cannot be compared by {operator}")
    if literal is None:
        raise BadCondition(literal_at, "a value is missing")
    fault = _literal_fault(place.name, operator, literal)
    if fault:
        raise BadCondition(literal_at, fault)


def _literal_fault(name: str, operator: Operator, literal: Literal) -> str:
    if not literal.quoted and _FUNCTION.fullmatch(literal.text):
        # Other products have such functions. As text, the condition would always be false.
        return "functions are not supported; use matches, or quote the text to compare it"
    if operator is Operator.MATCHES:
        return _pattern_fault(literal.text)
    if operator is Operator.CONTAINS:
        return ""
    if name == "CONNECTED" and literal.text not in ("true", "false"):
        return "true or false is expected"
    if name in SPANS and read_span_us(name, literal) is None:
        unit = "milliseconds" if name == "RESPONSE_TIME" else "days"
        return f"a duration is expected, such as 48h, or a number of {unit}"
    if name == "STATUS" or (operator in ORDERING and name in ("BODY", "RESULT", "HEADER")):
        return "" if read_number(literal.text) is not None else "a number is expected"
    return ""


@lru_cache(maxsize=128)
def compiled_pattern(pattern: str) -> "re2._Regexp":
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES
    return re2.compile(pattern, options)


def _pattern_fault(pattern: str) -> str:
    try:
        compiled = compiled_pattern(pattern)
    except re2.error as error:
        said = error.args[0] if error.args else b""
        # RE2 quotes the faulty piece after a colon. Messages never repeat the condition.
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return f"the pattern cannot be used ({reason.partition(':')[0]})"
    return "" if compiled.programsize <= PATTERN_SIZE_MOST else "the pattern is too large"


def read_number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text or "e" in text or "E" in text else int(text)


def read_span_us(name: str, literal: Literal) -> int | None:
    """Returns a literal in µs: a duration, or a number.

    A number is milliseconds for [RESPONSE_TIME] and days for the others.
    """
    number = read_number(literal.text)
    if number is None:
        return read_duration(literal.text)
    if number < 0 or number > 1e12:
        return None
    return round(number * (DAY_US if name in IN_DAYS else 1_000))
