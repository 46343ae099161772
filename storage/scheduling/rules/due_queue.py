"""Queue of the windows that are due next, without a scan of all monitors.

It returns the same windows as `run_schedule.windows` for each monitor over the same range. A heap
contains the next due instant of each monitor. Entries that an edit made stale are skipped when they
reach the top.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from ...core.instant import Instant
from .run_schedule import RunWindow, ScheduleTerm, next_window, windows


class Timetable:
    """Schedule of one shard after `after`, without windows of terms in other shards.

    The cursor is the end of the last `take`. Keys are the numbers of the monitors.
    """

    def __init__(
        self, shard: int, after: Instant, terms: Mapping[int, Sequence[ScheduleTerm]] | None = None
    ) -> None:
        self._shard = shard
        self._cursor = after
        self._terms: dict[int, Sequence[ScheduleTerm]] = dict(terms or {})
        self._next: dict[int, Instant] = {}
        self._heap: list[tuple[Instant, int]] = []
        self._rebuild()

    @property
    def reserved_through(self) -> Instant:
        return self._cursor

    @property
    def next_due(self) -> Instant | None:
        """Returns an instant that is not later than the next window, None without a window."""
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._terms)

    def take(self, through: Instant) -> list[tuple[int, RunWindow]]:
        """Returns windows due in (cursor, through] by due instant and key, and moves the cursor."""
        taken: list[tuple[int, RunWindow]] = []
        while self._heap and self._heap[0][0] <= through:
            due, key = heappop(self._heap)
            if self._next.get(key) != due:
                continue
            terms = self._terms[key]
            for window in windows(terms, self._cursor, through):
                if window.term.shard == self._shard:
                    taken.append((key, window))
            self._push(key, through)
        self._cursor = max(self._cursor, through)
        taken.sort(key=_order)
        return taken

    def put(self, key: int, terms: Sequence[ScheduleTerm]) -> None:
        """Adds a monitor or replaces its terms. Windows before the cursor remain taken."""
        self._terms[key] = terms
        self._push(key, self._cursor)

    def drop(self, key: int) -> None:
        self._terms.pop(key, None)
        self._next.pop(key, None)

    def seek(self, to: Instant) -> None:
        """Moves the cursor: forward if another scheduler reserved, back after a failed commit."""
        if to >= self._cursor:
            self.take(to)
        else:
            self._cursor = to
            self._rebuild()

    def _push(self, key: int, after: Instant) -> None:
        window = next_window(self._terms[key], after)
        if window is None:
            self._next.pop(key, None)
        elif self._next.get(key) != window.due:
            self._next[key] = window.due
            heappush(self._heap, (window.due, key))
            if len(self._heap) > 2 * len(self._terms) + 64:
                self._rebuild_heap()

    def _rebuild(self) -> None:
        self._next = {}
        for key, terms in self._terms.items():
            window = next_window(terms, self._cursor)
            if window is not None:
                self._next[key] = window.due
        self._rebuild_heap()

    def _rebuild_heap(self) -> None:
        self._heap = [(due, key) for key, due in self._next.items()]
        heapify(self._heap)


def _order(item: tuple[int, RunWindow]) -> tuple[Instant, int]:
    return item[1].due, item[0]
