"""Cache of what credentials and projects were read to be, for at most half a second.

Invariant: a value is used only while its read began less than LARGEST_AGE_SECONDS ago, by the
monotonic clock. So a right that was withdrawn is refused by every process within that time, also if
the notification of the withdrawal is lost. A write in this process, and the notification of a
write in another one, drop all values. Absence is not kept.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import trio

T = TypeVar("T")

LARGEST_AGE_SECONDS: Final = 0.5
# A project or a token uses less than 2 KB.
VALUES_MOST: Final = 2_000


class RightsCache(Generic[T]):
    def __init__(self, is_valid: Callable[[T], bool] = lambda _: True) -> None:
        # Also ends the use of a kept value, such as that of a token that expires.
        self._is_valid = is_valid
        # Each value with the Trio instant at which its read began; the oldest is first.
        self._values: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()
        self._generation = 0

    def __len__(self) -> int:
        return len(self._values)

    def forget(self) -> None:
        """Drops all values. A read that is under way keeps none."""
        self._generation += 1
        self._values.clear()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T | None]]) -> T | None:
        """Returns the value that is kept, or that of `read`."""
        kept = self._values.get(key)
        began = trio.current_time()
        if kept is not None and began - kept[1] < LARGEST_AGE_SECONDS and self._is_valid(kept[0]):
            return kept[0]
        generation = self._generation
        value = await read()
        if value is not None and generation == self._generation:
            self._values[key] = (value, began)
            self._values.move_to_end(key)
            if len(self._values) > VALUES_MOST:
                self._values.popitem(last=False)
        return value
