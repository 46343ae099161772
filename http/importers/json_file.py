"""JSON of other tools, for a server that reads it from a user."""

import json
from typing import Any, Final

from .yaml_file import DEPTH_MOST

# Kuma writes up to a hundred values for each monitor.
VALUES_MOST: Final = 500_000


class BadJson(ValueError):
    """The text is no JSON, or exceeds a limit that the message names."""


_NO_JSON: Final = "is no JSON"


def read_json(data: bytes | str) -> Any:
    """Raises BadJson."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise BadJson(f"is nested deeper than {DEPTH_MOST}") from None
    except ValueError as error:
        raise BadJson(_NO_JSON) from error
    _expect_bounded(document)
    return document


def _expect_bounded(document: Any) -> None:
    """Checks the depth and the number of values; each can become an object with rules."""
    level, depth, count = [document], 0, 1
    while level:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict | list):
                count += len(one)
                if count > VALUES_MOST:
                    raise BadJson(f"has more than {VALUES_MOST} values")
                inner += one.values() if isinstance(one, dict) else one
        level, depth = inner, depth + 1
        if depth > DEPTH_MOST:
            raise BadJson(f"is nested deeper than {DEPTH_MOST}")
