"""Values of a submitted form."""

from uuid import UUID

from ...storage.core.refusal import Refused
from ..wire.errors import Problem
from ..wire.route import Request

_DIGITS_MOST = 9


def value_of(ask: Request, name: str) -> str:
    """Returns the first value of a field as it was typed; empty if the form lacks the field."""
    return ask.form.get(name, [""])[0]


def stripped(ask: Request, name: str) -> str:
    """Returns the first value of a field without the spaces around it."""
    return value_of(ask, name).strip()


def uuid_in(text: str) -> UUID:
    """Returns the UUID. Raises: Problem not_found if the text is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise Problem("not_found") from None


def uuid_given(text: str) -> UUID:
    """Returns the UUID. Raises: Refused not_found if the text is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise Refused("not_found") from None


def uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def whole_number(field: str, text: str) -> int:
    """Returns the number. Raises: Refused invalid if the text has other than 1 to 9 digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        raise Refused("invalid", field, "must be a whole number")
    return int(text)
