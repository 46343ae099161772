"""Mapping of an imported file that records which of its keys an importer reads."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})


class Source(Mapping[str, Any]):
    """Mapping that wraps nested mappings, also in lists, when they are read.

    A key counts as read if its value was read, not if it was only tested or listed. The key
    `jsonPath` also finds `json_path`, the name of the same value in a database.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        is_generated: bool = False,
    ) -> None:
        """Wraps a mapping.

        `defaults` are values that the other tool writes if the user sets none. A generated file has
        every key; in it, other keys have the default false or 0.
        """
        self._data = data
        self._is_generated = is_generated
        self._defaults = defaults or {}
        self._read: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._data:
            key = _CAPITAL.sub(r"_\1", key).lower() if isinstance(key, str) else key
        if key not in self._read:
            self._read[key] = _wrapped(self._data[key])
        return self._read[key]

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def unread(self, ignored: Collection[str] = ()) -> list[str]:
        """Returns the dotted paths of the unread keys, each once, in the order of the file.

        A key without a value, or with the default of the other tool, has no effect and is omitted.
        """
        found: dict[str, None] = {}
        for key, value in self._data.items():
            if key in ignored or value in _EMPTY or value == self._defaults.get(key):
                continue
            if self._is_generated and not value and key not in self._defaults:
                continue
            if key not in self._read:
                found[str(key)] = None
                continue
            inner = self._read[key]
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, Source):
                    found |= dict.fromkeys(f"{key}.{path}" for path in one.unread())
        return list(found)


def _wrapped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value if isinstance(value, Source) else Source(value)
    if isinstance(value, list):
        return [_wrapped(one) for one in value]
    return value
