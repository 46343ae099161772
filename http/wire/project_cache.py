"""Cache of one object per project, bounded by the number of projects and by their weight.

The cache does not judge whether an object is current; its owner does.
"""

from collections import OrderedDict
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PROJECTS_MOST: Final = 64
# A monitor weighs 1 and uses 1.4 to 2 KB, so a full cache uses at most 40 MB.
WEIGHT_MOST: Final = 20_000


class ProjectCache(Generic[T]):
    def __init__(self) -> None:
        # Ordered by last use; the most recent entry is last.
        self._entries: OrderedDict[tuple[int, int], tuple[T, int]] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        return self._weight

    def get(self, organization: int, project: int) -> T | None:
        entry = self._entries.get((organization, project))
        if entry is None:
            return None
        self._entries.move_to_end((organization, project))
        return entry[0]

    def drop(self, organization: int, project: int) -> None:
        _, weight = self._entries.pop((organization, project), (None, 0))
        self._weight -= weight

    def put(self, organization: int, project: int, value: T, weight: int) -> None:
        """Replaces the object of the project. The least recently used ones make room.

        An object heavier than WEIGHT_MOST is not kept.
        """
        self.drop(organization, project)
        if weight > WEIGHT_MOST:
            return
        self._entries[organization, project] = (value, weight)
        self._weight += weight
        while self._weight > WEIGHT_MOST or len(self._entries) > PROJECTS_MOST:
            _, (_, least) = self._entries.popitem(last=False)
            self._weight -= least
