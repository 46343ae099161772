"""What a project's secret may be called and hold, and which settings of a monitor name one."""

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
    """What it holds is the target's business: line breaks are a key's, and so is a blank."""
    if not value:
        return "must not be empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "holds a character that cannot be sent"
    return None if size <= VALUE_BYTES_MOST else f"must be at most {VALUE_BYTES_MOST} bytes"


def references(config: Mapping[str, object]) -> dict[str, str]:
    """The settings that name a project secret: setting to name, blank ones left out."""
    return {
        key: value
        for key, value in config.items()
        if key.endswith(REFERENCE_SUFFIX) and isinstance(value, str) and value
    }


def referred_key(setting: str) -> str:
    """Under which key a probe finds the value that `setting` refers to."""
    return setting.removesuffix(REFERENCE_SUFFIX)
