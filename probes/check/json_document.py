"""A JSON document read where a path leads, with a bounded amount of it made into objects.

Pure. A megabyte may be half a million empty lists, and making them holds the interpreter, whichever
thread does it. So a long document is not read whole: what lies beside the path is only skipped.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec

Path = tuple[str | int, ...]

# Up to here a document is read whole, once for all paths: its worst takes some 5 ms.
WHOLE_CHARACTERS_MOST = 64 * 1024
# Lists and objects that are made of a longer one, at 150 ns.
PARTS_MOST = 40_000
# An element further behind is not skipped to.
INDEX_MOST = 255


class _Missing:
    """No value: not the same as null, which is one."""


MISSING: Final = _Missing()


class TooLarge(Exception):
    """What stands at the end of the path has more parts than are made."""


def read_whole(text: str) -> object:
    """MISSING where it is no JSON."""
    return _decoded(text, Any)


def is_json(text: str) -> bool:
    """Whether it is a document at all, of any length; nothing of it is made."""
    return _decoded(text, msgspec.Raw) is not MISSING


def walk(value: object, path: Path) -> object:
    """What stands in a document at the end of the path; MISSING where that is nothing."""
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
    """Returns what `walk` finds, without the whole document. Raises TooLarge otherwise."""
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
    """A type whose `there`, as often as there are steps, is the value; None where there is none."""
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
            # A key with a quote, a backslash or a control character in it.
            return None
    return shape


def _decoded(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return MISSING
