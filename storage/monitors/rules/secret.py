"""Names and values of project secrets, and the settings that refer to them."""

import re
from collections.abc import Mapping

NAME_PATTERN = "^[a-z][a-z0-9-]{0,62}$"
VALUE_BYTES_MOST = 4_096
SECRETS_OF_PROJECT_MOST = 200
REFERENCE_SUFFIX = "_ref"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def secret_name_fault(name: str) -> str | None:
    return None if _NAME.fullmatch(name) else f"must match {NAME_PATTERN}"


def secret_value_fault(value: str) -> str | None:
    """Returns the fault of a value.

    Line breaks and blanks are allowed, since keys contain them.
    """
    if not value:
        return "must not be empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "contains a character that cannot be sent"
    return None if size <= VALUE_BYTES_MOST else f"must be at most {VALUE_BYTES_MOST} bytes"


def references(config: Mapping[str, object]) -> dict[str, str]:
    """Returns the settings that name a project secret as {setting: name}, without blank ones."""
    return {
        key: value
        for key, value in config.items()
        if key.endswith(REFERENCE_SUFFIX) and isinstance(value, str) and value
    }


def referred_key(setting: str) -> str:
    """Returns the key under which a probe finds the value of the reference."""
    return setting.removesuffix(REFERENCE_SUFFIX)
