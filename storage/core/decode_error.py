"""Conversion of a decoder's error to a field and a message.

The input is not repeated, since it may have been meant for another field.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import inspect

# A name of a field, an index of a list, or the value of any key of a mapping.
_KEY = "key` in `"
_STEP = re.compile(r"\.([^.\[\]]+)|\[(?:\d+|\.\.\.)\]")


def field_fault(text: str, kind: Any = None) -> tuple[str, str]:
    """Splits a message of msgspec: `interval_seconds` and `expected int, got str`.

    The field is its path in the document, such as `steps[0].type`; it is empty if the error
    concerns the whole document. `kind` is the decoded type. With it, the message about an unknown
    value of an enumeration lists the allowed values.
    """
    said, _, place = text.partition(" - at `")
    said = said.replace("`", "")
    is_key, place = place.startswith(_KEY), place.removeprefix(_KEY)
    path = place.rstrip("`").removeprefix("$")
    field = path.lstrip(".")
    missing, unknown = "Object missing required field ", "Object contains unknown field "
    if said.startswith(missing):
        return f"{field}.{said.removeprefix(missing)}".lstrip("."), "is required"
    if said.startswith(unknown):
        return f"{field}.{said.removeprefix(unknown)}".lstrip("."), "is not known here"
    if said.startswith(("Invalid enum value ", "Invalid value ")):
        allowed = [] if kind is None else allowed_values(kind, path, of_keys=is_key)
        known = ", ".join(allowed) or "the known values"
        said = f"must have only keys of {known}" if is_key else f"must be one of {known}"
        if not allowed and not is_key:
            said = "is not one of the known values"
    return field, said[:1].lower() + said[1:]


def allowed_values(kind: Any, path: str, *, of_keys: bool = False) -> list[str]:
    """Returns the values of the enumeration at a path such as `.steps[0].type`, as in JSON.

    Returns [] if there is none. `of_keys` returns those of the keys of the mapping at the path.
    """
    found = list(_plain(_inspected(kind)))
    for step in _STEP.finditer(path):
        found = [inner for one in found for inner in _within(one, step[1])]
    if of_keys:
        maps = [one for one in found if isinstance(one, inspect.DictType)]
        found = [key for one in maps for key in _plain(one.key_type)]
    values: dict[str, None] = {}
    for one in found:
        if isinstance(one, inspect.EnumType):
            values |= dict.fromkeys(str(member.value) for member in one.cls)
        elif isinstance(one, inspect.LiteralType):
            values |= dict.fromkeys(str(value) for value in one.values)
    return list(values)


@cache
def _inspected(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _plain(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yields the types of a union, without their metadata."""
    if isinstance(kind, inspect.Metadata):
        yield from _plain(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _plain(one)
    else:
        yield kind


def _within(kind: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """Yields the types of a field, or of the items or values if `name` is None."""
    if name is None:
        if isinstance(kind, inspect.DictType):
            yield from _plain(kind.value_type)
        elif isinstance(kind, inspect.CollectionType):
            yield from _plain(kind.item_type)
    elif isinstance(kind, inspect.StructType):
        if name == kind.tag_field:
            yield inspect.LiteralType((kind.tag,))
        for field in kind.fields:
            if field.encode_name == name:
                yield from _plain(field.type)
