"""Label matchers in the syntax of Alertmanager: `severity="page", team=~"shop|pay"`.

Invariants: an absent label has the value "". A label of several values, such as the tags of a
monitor, matches = and =~ if one value does, and != and !~ if none does. A regular expression is
anchored at both ends and evaluated in linear time. The text of parsed matchers parses to the same
matchers.

Source: Alertmanager, matcher/parse (UTF-8 matchers).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import re2

from ....probes.check.condition import PATTERN_SIZE_MOST, compiled_pattern

MATCHERS_MOST: Final = 20
TEXT_LONGEST: Final = 2_000
_BARE: Final = r"[^\s{}!=~,\\\"'`]+"
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_MATCHER: Final = re.compile(
    rf"\s*(?P<name>{_BARE}|{_QUOTED})\s*(?P<op>=~|!~|!=|=)\s*(?P<value>{_QUOTED}|{_BARE})\s*"
)
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_ESCAPES: Final = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}

# Values of each label.
Labels = Mapping[str, Collection[str]]


class BadMatcher(ValueError):
    """Raised for a text that is not a list of matchers. The message states the fault."""


class MatchOperator(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    MATCHES = "=~"
    MATCHES_NOT = "!~"


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    name: str
    operator: MatchOperator
    value: str

    def matches(self, labels: Labels) -> bool:
        values = labels.get(self.name) or ("",)
        match self.operator:
            case MatchOperator.EQUAL:
                return self.value in values
            case MatchOperator.NOT_EQUAL:
                return self.value not in values
            case MatchOperator.MATCHES:
                return any(self._is_found(value) for value in values)
            case MatchOperator.MATCHES_NOT:
                return not any(self._is_found(value) for value in values)

    def _is_found(self, value: str) -> bool:
        return compiled_pattern(self.value).fullmatch(value) is not None

    def __str__(self) -> str:
        name = self.name if _PLAIN_NAME.fullmatch(self.name) else _quoted(self.name)
        return f"{name}{self.operator}{_quoted(self.value)}"


def parse_matchers(text: str) -> tuple[LabelMatcher, ...]:
    """Returns the matchers of a comma-separated list, with or without braces, possibly empty.

    Raises: BadMatcher.
    """
    if len(text) > TEXT_LONGEST:
        raise BadMatcher(f"must be at most {TEXT_LONGEST} characters")
    rest = text.strip()
    if rest.startswith("{") != rest.endswith("}"):
        raise BadMatcher("has one brace of two")
    if rest.startswith("{"):
        rest = rest[1:-1].strip()
    found: list[LabelMatcher] = []
    while rest:
        read = _MATCHER.match(rest)
        if read is None:
            raise BadMatcher(_expected(len(found)))
        found.append(_matcher(read, len(found)))
        rest = rest[read.end() :]
        if rest and not rest.startswith(","):
            raise BadMatcher(_expected(len(found)))
        rest = rest[1:].strip()
        if len(found) > MATCHERS_MOST:
            raise BadMatcher(f"must have at most {MATCHERS_MOST} matchers")
    return tuple(found)


def matchers_text(matchers: Sequence[LabelMatcher]) -> str:
    """Returns the normal form of a list of matchers."""
    return ", ".join(str(one) for one in matchers)


def match_all(matchers: Sequence[LabelMatcher], labels: Labels) -> bool:
    """Returns whether every matcher matches. An empty list matches everything."""
    return all(one.matches(labels) for one in matchers)


def match_nothing_alone(matchers: Sequence[LabelMatcher]) -> bool:
    """Returns whether the list requires a label, so that it cannot match every object."""
    return any(not one.matches({}) for one in matchers)


def plain_labels(labels: Mapping[str, str]) -> Labels:
    """Returns labels that have one value each. An empty value is that of an absent label."""
    return {name: (value,) for name, value in labels.items()}


def _expected(place: int) -> str:
    return f'has no name="value" as matcher {place + 1}; the operators are =, !=, =~ and !~'


def _matcher(read: re.Match[str], place: int) -> LabelMatcher:
    name, value = _unquoted(read["name"], place), _unquoted(read["value"], place)
    if not name:
        raise BadMatcher(f"has no label name in matcher {place + 1}")
    operator = MatchOperator(read["op"])
    if operator in (MatchOperator.MATCHES, MatchOperator.MATCHES_NOT):
        try:
            pattern = compiled_pattern(value)
        except re2.error:
            raise BadMatcher(f"has an invalid regular expression in matcher {place + 1}") from None
        if pattern.programsize > PATTERN_SIZE_MOST:
            raise BadMatcher(f"has a regular expression that is too large in matcher {place + 1}")
    return LabelMatcher(name, operator, value)


def _unquoted(text: str, place: int) -> str:
    if any(char < " " or char == "\x7f" for char in text):
        raise BadMatcher(f"has a control character in matcher {place + 1}")
    if not text.startswith('"'):
        return text

    def plain(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise BadMatcher(f"has an unknown escape in matcher {place + 1}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", plain, text[1:-1])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
