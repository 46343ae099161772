"""Reading of JSON documents along a path, with a bounded number of created objects.

Pure. A megabyte of JSON can contain half a million empty lists, and creating them blocks the
interpreter in any thread. Therefore a long document is not parsed as a whole: values outside the
path are skipped.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec

Path = tuple[str | int, ...]

# Up to this size a document is parsed whole, once for all paths. The worst case takes about 5 ms.
WHOLE_CHARACTERS_MOST = 64 * 1024
# Limit of lists and objects created from a longer document, at 150 ns each.
PARTS_MOST = 40_000
# A path with a larger index is walked in the whole document.
INDEX_MOST = 255


class _Missing:
    """Absence of a value. It differs from null, which is a value."""


MISSING: Final = _Missing()


class TooLarge(Exception):
    """Raised if the value or the document to parse has more than `PARTS_MOST` parts."""


def read_whole(text: str) -> object:
    """Returns the parsed document, or MISSING if the text is not JSON."""
    return _decoded(text, Any)


def is_json(text: str) -> bool:
    """Returns whether the text is a JSON document of any length. Creates no objects."""
    return _decoded(text, msgspec.Raw) is not MISSING


def walk(value: object, path: Path) -> object:
    """Returns the value at the end of the path, or MISSING."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return MISSING
            value = value[step]
    return value


def read_along(text: str, path: Path) -> object:
    """Returns the value that `walk` finds, without parsing the whole document.

    Raises: `TooLarge` if the value, or the document of an unsupported path, has too many parts.
    """
    shape = _shape(path)
    if shape is None:
        return walk(_bounded(text), path)
    value = _decoded(text, shape)
    for _ in path:
        if value is MISSING:
            return MISSING
        value = value.there
    return value if value is MISSING else _bounded(bytes(value).decode())


def _bounded(text: str) -> object:
    if text.count("[") + text.count("{") > PARTS_MOST:
        raise TooLarge
    return read_whole(text)


@lru_cache(maxsize=256)
def _shape(path: Path) -> Any:
    """Returns a type whose nested `there` is the value, or None for unsupported paths."""
    shape: Any = msgspec.Raw
    for step in reversed(path):
        try:
            if isinstance(step, str):
                shape = msgspec.defstruct("_Key", [("there", shape)], rename={"there": step})
            elif step <= INDEX_MOST:
                before = [(f"before{n}", msgspec.Raw) for n in range(step)]
                shape = msgspec.defstruct("_Index", [*before, ("there", shape)], array_like=True)
            else:
                return None
        except ValueError:
            # The key contains a quote, a backslash or a control character.
            return None
    return shape


def _decoded(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return MISSING
