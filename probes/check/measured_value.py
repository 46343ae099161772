"""Text of the value that made a condition false.

Pure. A value that Leadline measured is always shown: status, response time, connection, time to
expiry, address. So is a numeric result. Content of a response (`[BODY]`, `[HEADER]`, a text
`[RESULT]`) is shown only if the monitor sets `show_values`. A value that contains a secret of the
check is never shown.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote

from .check import Check
from .condition import IN_DAYS, BadCondition, Condition, parse, read_number
from .condition_evaluation import MISSING, ProbeValues, failing_value
from .monitor_spec import FieldType, is_credential_header
from .registry import spec_of

# Longest shown text or number, in characters.
SHOWN_LONGEST: Final = 64
# Longest text of a value: each character of a shown text can need an escape of 12 characters.
MEASURED_LONGEST: Final = 12 * SHOWN_LONGEST + 2
NO_VALUE: Final = "no value"
TOO_LONG: Final = f"longer than {SHOWN_LONGEST} characters"
NOT_SCALAR: Final = "not a single value"
SECRET: Final = "hidden: contains a secret"
_REASONS: Final = frozenset({NO_VALUE, TOO_LONG, NOT_SCALAR, SECRET})
# A shorter value is not searched in the secrets: it would be found in most of them by chance.
_PART_SHORTEST: Final = 4
_CONTENT: Final = frozenset({"BODY", "HEADER", "RESULT"})
_NOT_FINITE: Final = re.compile(r"[+-]?(inf|nan)", re.IGNORECASE)
_FORMS: Final = {
    "STATUS": re.compile(r"-?[0-9]{1,10}"),
    "RESPONSE_TIME": re.compile(r"[0-9]{1,3}( [0-9]{3})* ms"),
    "CONNECTED": re.compile(r"true|false"),
    **dict.fromkeys(
        IN_DAYS,
        re.compile(r"-?[0-9]{1,7} (d [0-9]{1,2} h|h [0-9]{1,2} min|min [0-9]{1,2} s)"),
    ),
}


def measured_value(condition: Condition, facts: ProbeValues, check: Check) -> str | None:
    """Returns the text of the value that made the condition false, None if it is not shown.

    A missing value is `no value`. A value that is too long, is not a single value or contains a
    secret has this reason as its text. Precondition: the condition is false.
    """
    value = failing_value(condition, facts)
    if value is MISSING:
        return NO_VALUE
    name = condition.place.name
    if name == "RESPONSE_TIME":
        assert isinstance(value, int)
        return f"{value:,} ms".replace(",", " ")
    if name in IN_DAYS:
        assert isinstance(value, int)
        return _time_left(value)
    if name not in _CONTENT:
        return "true" if value is True else "false" if value is False else str(value)
    number = _number_of(value) if name == "RESULT" else None
    if number is None and not check.show_values:
        return None
    secrets = [*_secrets(check), *facts.hidden]
    return _content(value, secrets) if number is None else _unless_secret(number, number, secrets)


def is_admissible(condition: str, measured: str, *, show_values: bool) -> bool:
    """Returns whether `measured_value` can return this text for a monitor's condition."""
    try:
        name = parse(condition).place.name
    except BadCondition:
        return False
    if measured in _REASONS:
        return True
    if name == "IP":
        return _is_address(measured)
    if name in _FORMS:
        return _FORMS[name].fullmatch(measured) is not None
    if name == "RESULT" and _number_of(measured) is not None:
        return True
    return show_values and 0 < len(measured) <= MEASURED_LONGEST and measured.isprintable()


def _time_left(us: int) -> str:
    """Returns the two largest units, rounded down: 13 d 4 h."""
    seconds = abs(us) // 1_000_000
    sign = "-" if us < 0 else ""
    if seconds >= 86_400:
        return f"{sign}{seconds // 86_400} d {seconds // 3_600 % 24} h"
    if seconds >= 3_600:
        return f"{sign}{seconds // 3_600} h {seconds // 60 % 60} min"
    return f"{sign}{seconds // 60} min {seconds % 60} s"


def _number_of(value: object) -> str | None:
    """Returns the text of a number, also of one that is text. None if it is not or is too long."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    is_number = read_number(text) is not None or _NOT_FINITE.fullmatch(text) is not None
    return text if is_number and len(text) <= SHOWN_LONGEST else None


def _content(value: object, secrets: Sequence[str]) -> str:
    if isinstance(value, list | dict | tuple):
        return NOT_SCALAR
    if not isinstance(value, str):
        plain = json.dumps(value)
        return TOO_LONG if len(plain) > SHOWN_LONGEST else _unless_secret(plain, plain, secrets)
    if len(value) > SHOWN_LONGEST:
        return TOO_LONG
    return _unless_secret(value, f'"{"".join(map(_escaped, value))}"', secrets)


def _escaped(character: str) -> str:
    if character.isprintable() and character not in '"\\':
        return character
    return json.dumps(character)[1:-1]


def _unless_secret(value: str, shown: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if secret in value or (len(value) >= _PART_SHORTEST and value in secret):
            return SECRET
    return shown


def _secrets(check: Check) -> Iterator[str]:
    """Returns the secrets of the check in the encodings in which a response can repeat them."""
    for secret in _plain_secrets(check):
        if secret:
            yield secret
            yield quote(secret, safe="")
            for pair in (secret, f"{check.text('username')}:{secret}"):
                yield b64encode(pair.encode("utf-8", "replace")).decode()


def _plain_secrets(check: Check) -> Iterator[str]:
    yield from check.secrets.values()
    spec = spec_of(check.type)
    for field in spec.fields if spec else ():
        value = check.config.get(field.name)
        if field.type is FieldType.HEADERS and isinstance(value, dict):
            for name, content in value.items():
                if is_credential_header(name):
                    yield content
                    # Without the scheme: the token of `Bearer token`.
                    yield content.partition(" ")[2]
        elif field.secret and isinstance(value, str):
            yield value


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False
