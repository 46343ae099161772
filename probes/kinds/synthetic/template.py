"""Templates with `{{var}}` and `{{secret:binding}}`, filled without injection.

Pure. Values are percent-encoded in URLs, escaped in JSON and encoded in forms. A value that is not
allowed at its place is refused, and never sent altered.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import quote, quote_plus

from ...check.monitor_spec import BINDING

_PLACEHOLDER = re.compile(rf"\{{\{{(secret:)?({BINDING})\}}\}}")
_BARE_JSON = re.compile(
    r"true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?"
)


class BadTemplate(ValueError):
    """Raised if a `{{` does not begin a placeholder. The text repeats no input."""


class CannotFill(ValueError):
    """Raised if a value is not allowed at its place. `is_secret` is true for a secret."""

    def __init__(self, *, is_secret: bool) -> None:
        super().__init__("the value is not allowed here")
        self.is_secret = is_secret


class Context(Enum):
    """Syntax of the text that a template is filled into."""

    URL = "url"
    HEADER = "header"
    JSON = "json"
    FORM = "form"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    is_secret: bool


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[str | Placeholder, ...] = field(repr=False)

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    @property
    def is_one_secret(self) -> bool:
        """Returns whether the template is exactly one `{{secret:…}}`."""
        return len(self.parts) == 1 and len(self.placeholders) == len(self.bindings) == 1

    @property
    def bindings(self) -> frozenset[str]:
        return frozenset(p.name for p in self.placeholders if p.is_secret)

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(p.name for p in self.placeholders if not p.is_secret)


@dataclass(frozen=True, slots=True)
class Values:
    """Values of placeholders: extracted variables, and the secrets of bindings."""

    variables: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)

    def of(self, placeholder: Placeholder) -> str:
        found = self.secrets if placeholder.is_secret else self.variables
        return found[placeholder.name]


def read_template(text: str) -> Template:
    """Parses a template.

    Raises: `BadTemplate` if a `{{` does not begin a placeholder.
    """
    parts: list[str | Placeholder] = []
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        parts += [text[at : found.start()], Placeholder(found[2], found[1] is not None)]
        at = found.end()
    parts.append(text[at:])
    if any("{{" in part for part in parts if isinstance(part, str)):
        raise BadTemplate
    return Template(tuple(part for part in parts if part != ""))


def fill(template: Template, values: Values, context: Context) -> str:
    """Returns the text with its values.

    Raises: `CannotFill` if a value is not allowed at its place.
    """
    if context is Context.JSON:
        return _fill_json(template, values)
    filled: list[str] = []
    for part in template.parts:
        if isinstance(part, str):
            filled.append(part)
        else:
            filled.append(_encoded(values.of(part), context, part))
    text = "".join(filled)
    if context is Context.HEADER:
        _demand_no_space_at_the_ends(text, template)
    return text


def _demand_no_space_at_the_ends(text: str, template: Template) -> None:
    """Refuses spaces at the ends of a header, which are not part of it (RFC 9110, 5.5)."""
    if text != text.strip(" ") and template.placeholders:
        edge = 0 if text.startswith(" ") else -1
        raise CannotFill(is_secret=template.placeholders[edge].is_secret)


def _encoded(value: str, context: Context, placeholder: Placeholder) -> str:
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise CannotFill(is_secret=placeholder.is_secret)
    match context:
        case Context.URL:
            # As a path segment these would leave the directory. Servers decode them even if
            # encoded.
            if value in ("", ".", ".."):
                raise CannotFill(is_secret=placeholder.is_secret)
            return quote(value, safe="")
        case Context.FORM:
            return quote_plus(value)
        case Context.HEADER:
            if any(c < " " or c == "\x7f" for c in value):
                raise CannotFill(is_secret=placeholder.is_secret)
            return value
        case _:
            return value


def _fill_json(template: Template, values: Values) -> str:
    """Fills JSON. In a string a value is escaped; elsewhere it is a number, boolean or null."""
    filled: list[str] = []
    inside = False
    for part in template.parts:
        if isinstance(part, str):
            inside = _ends_inside(part, inside)
            filled.append(part)
            continue
        value = values.of(part)
        if inside:
            filled.append(json.dumps(value)[1:-1])
        elif _BARE_JSON.fullmatch(value):
            filled.append(value)
        else:
            raise CannotFill(is_secret=part.is_secret)
    return "".join(filled)


def _ends_inside(text: str, inside: bool) -> bool:
    """Returns whether JSON text ends inside a string, given whether it begins inside one."""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif inside and character == "\\":
            escaped = True
        elif character == '"':
            inside = not inside
    return inside
