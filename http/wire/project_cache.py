"""Cache of objects of projects, bounded by their number and by their weight.

The cache does not judge whether an object is current; its owner does.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PROJECTS_MOST: Final = 64
# A monitor weighs 1 and uses 1.4 to 2 KB, so a full cache uses at most 40 MB.
WEIGHT_MOST: Final = 20_000


class ProjectCache(Generic[T]):
    """With a `variant` a project has several objects."""

    def __init__(self, weight_most: int = WEIGHT_MOST) -> None:
        # Ordered by last use; the most recent entry is last.
        self._entries: OrderedDict[tuple[int, int, Hashable], tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._weight_most: Final = weight_most

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        return self._weight

    def get(self, organization: int, project: int, variant: Hashable = None) -> T | None:
        key = (organization, project, variant)
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def drop(self, organization: int, project: int, variant: Hashable = None) -> None:
        _, weight = self._entries.pop((organization, project, variant), (None, 0))
        self._weight -= weight

    def put(
        self, organization: int, project: int, value: T, weight: int, variant: Hashable = None
    ) -> None:
        """Replaces the object. The least recently used ones make room.

        An object heavier than the bound is not kept.
        """
        self.drop(organization, project, variant)
        if weight > self._weight_most:
            return
        self._entries[organization, project, variant] = (value, weight)
        self._weight += weight
        while self._weight > self._weight_most or len(self._entries) > PROJECTS_MOST:
            _, (_, least) = self._entries.popitem(last=False)
            self._weight -= least
