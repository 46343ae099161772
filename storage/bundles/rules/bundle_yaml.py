"""YAML parser of bundles that records the position of each value for error messages.

It accepts the JSON-like core of YAML 1.2: a plain scalar is null, true, false, a number or text
(`no` is text). Refused: anchors, aliases, tags, merges, a second document, duplicate keys, keys
that are not text, and depth over 32. JSON is accepted too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from .bundle import BYTES_MOST, DEPTH_MOST

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
# Of limited length, so that each is finite.
_FLOAT: Final = re.compile(
    r"[-+]?(\.[0-9]{1,40}|[0-9]{1,40}(\.[0-9]{0,40})?)([eE][-+]?[0-9]{1,2})?", re.ASCII
)
_WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Position in a text. Line and column begin at 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class BadText(ValueError):
    """The text is not a valid bundle. `place` is the position of the fault."""

    def __init__(self, rule: str, place: SourcePosition) -> None:
        super().__init__(f"{place}: {rule}")
        self.rule = rule
        self.place = place


@dataclass(frozen=True, slots=True)
class Text:
    """Parsed text. The keys of `places` are dotted paths, `monitors.web.config.url`, `sli[1]`."""

    document: Any
    places: dict[str, SourcePosition] = field(repr=False)

    def place_of(self, path: str) -> SourcePosition:
        """Returns the nearest position, which is that of the entry if a field is absent."""
        while path not in self.places:
            cut = max(path.rfind("."), path.rfind("["))
            if cut <= 0:
                return SourcePosition(1, 1)
            path = path[:cut]
        return self.places[path]


def read_text(text: str) -> Text:
    """Parses a text.

    Raises:
        BadText.
    """
    if len(text) > BYTES_MOST or len(text.encode()) > BYTES_MOST:
        raise BadText(f"is larger than {BYTES_MOST} bytes", SourcePosition(1, 1))
    reader = _Reader(_events(text))
    try:
        return Text(reader.document(), reader.places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadText(str(error.problem or error.context), _place(mark)) from None
    except yaml.YAMLError as error:
        raise BadText(str(error).splitlines()[0], SourcePosition(1, 1)) from None


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return iter(yaml.parse(text, Loader=loader))


def _place(mark: Any) -> SourcePosition:
    return SourcePosition(1, 1) if mark is None else SourcePosition(mark.line + 1, mark.column + 1)


class _Reader:
    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self.places: dict[str, SourcePosition] = {}

    def document(self) -> Any:
        next(self._events)
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            raise BadText("is empty", SourcePosition(1, 1))
        found = self._value(next(self._events), "", 0)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise BadText("is a second document", _place(after.start_mark))
        return found

    def _value(self, event: yaml.Event, path: str, depth: int) -> Any:
        place = _place(event.start_mark)
        self.places.setdefault(path, place)
        if isinstance(event, yaml.AliasEvent):
            raise BadText("is an alias, which a bundle must not contain", place)
        if getattr(event, "anchor", None) is not None:
            raise BadText("is an anchor, which a bundle must not contain", place)
        if getattr(event, "tag", None) is not None:
            raise BadText("is a tag, which a bundle must not contain", place)
        if isinstance(event, yaml.ScalarEvent):
            if any("\ud800" <= sign <= "\udfff" for sign in event.value):
                raise BadText("contains an incomplete character", place)
            return _plain(event.value) if event.implicit[0] else event.value
        if depth == DEPTH_MOST:
            raise BadText(f"is nested deeper than {DEPTH_MOST}", place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _sequence(self, path: str, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, f"{path}[{len(found)}]", depth + 1))
        return found

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            name = self._key(event)
            place = _place(event.start_mark)
            if name in found:
                raise BadText(f"{name!r} is given twice", place)
            inner = f"{path}.{name}" if path else name
            self.places[inner] = place
            found[name] = self._value(next(self._events), inner, depth + 1)
        return found

    def _key(self, event: yaml.Event) -> str:
        """Returns a key as text, also if it is a number or a word such as `true`."""
        place = _place(event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            raise BadText("must be a text key", place)
        if event.anchor is not None or event.tag is not None:
            raise BadText("is an anchor or a tag, which a bundle must not contain", place)
        if event.value == "<<" and event.implicit[0]:
            raise BadText("is a merge, which a bundle must not contain", place)
        return str(event.value)


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class _Writer(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def _written(writer: Any, text: str) -> Any:
    """Quotes texts that would be parsed as another type."""
    style = None if isinstance(_plain(text), str) and text != "<<" else "'"
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _written)


def write_text(document: Any) -> str:
    """Returns YAML that is parsed as the same document."""
    found: str = yaml.dump(document, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100)
    return found
