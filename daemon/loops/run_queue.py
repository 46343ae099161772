"""Queue of windows that wait for their due instant, and then for a permit.

Permits are divided between organizations: one that has many slow runs cannot take the last permits,
so that the due window of another organization finds a free one. One with costly runs starts few at
a time: the event loop, which all share, could not finish more of them. After a costly run it rests,
so that the cores are not busy with it alone.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from ...storage.core.instant import Instant
from ...storage.core.key import MonitorKey

# An organization with runs starts another one only if it has fewer than this multiple of the free
# permits beside the last one. One gets three quarters of the permits, two get three sevenths each.
RUNS_PER_FREE_PERMIT: Final = 3
# Windows of this process that wait for their due instant or for a permit. Above this limit the
# ticker waits, and the ledger records the reason.
WINDOWS_WAITING: Final = 5_000
# An organization with this many due windows has a backlog. Beside others it has at most an equal
# part of WINDOWS_WAITING, and one part stays free. Further windows of it are not accepted: another
# process can lease them, or they are missed.
BACKLOG: Final = 500
RETRY_SECONDS: Final = 0.1
# One batch is leased for each 25 free permits. A permit can serve many short runs until the next
# lease: a process that started more runs since the last one leases by their number, up to the
# second value.
PERMITS_A_BATCH: Final = 25
BATCHES_A_LEASE: Final = 20
# Expected CPU of the runs in progress of one of several organizations, µs. From it on none starts.
# Three runs that use the whole budget reach it, and a few hundred usual ones do not.
ORG_CPU_US: Final = 1_000_000
# The expected CPU of a run is the mean of the latest runs of its organization; this many of them
# weigh most. A mean and runs below the second value, µs, are not kept: they limit nothing.
MEAN_OVER_RUNS: Final = 16
MEAN_US_LEAST: Final = 1_000
# Beside others, an organization rests after a run: this many times the CPU beyond that of a usual
# run, µs. Its costly runs then use a quarter of a core of the process. No rest is longer than the
# third value.
USUAL_RUN_US: Final = 20_000
RESTS_PER_CPU: Final = 9
REST_US_MOST: Final = 20_000_000
# A resting organization can run one job if its rest ends so soon, µs: its windows begin at the end
# of a rest, and would leave no time for jobs.
JOB_REST_US: Final = 1_500_000
# Starts share a wake-up: a window begins at the end of the interval of this length that it is due
# in.
START_GRID_US: Final = 10_000


@dataclass(eq=False, slots=True)
class ActiveBatch:
    """Run batch in progress. It can be deleted when every window has its row in the ledger."""

    key: int
    shard: int
    outstanding: int
    is_clean: bool = True


@dataclass(order=True, slots=True)
class QueuedRun:
    """Window that waits for its run, ordered by its due instant."""

    due: Instant
    number: int
    batch: ActiveBatch = field(compare=False)
    key: MonitorKey = field(compare=False)
    claim_until: Instant = field(compare=False)

    @property
    def org(self) -> int:
        return self.key[0]


class RunQueue:
    """Windows of one process, and the number of runs of each organization.

    Invariants: if there are several organizations, only one without runs gets the last free
    permit. Windows of an organization start in the order of their due instants. One without runs
    that does not rest may start one, whatever its runs cost.
    """

    def __init__(self) -> None:
        self._later: list[QueuedRun] = []
        self._due: dict[int, deque[QueuedRun]] = {}
        self._due_count = 0
        self._backlogged: set[int] = set()
        self._running: dict[int, int] = {}
        # Of these, the runs without a window.
        self._beside: dict[int, int] = {}
        # Mean CPU of a run of the organizations with costly runs, µs.
        self._mean_us: dict[int, float] = {}
        # Instants at which the rest of an organization ends. One that has passed is no rest.
        self._rests: dict[int, Instant] = {}
        self._orgs: set[int] = set()

    def __len__(self) -> int:
        return len(self._later) + self._due_count

    @property
    def runs(self) -> int:
        """Returns the number of runs in progress, with those without a window."""
        return sum(self._running.values())

    @property
    def has_due(self) -> bool:
        """Returns whether a due window waits for a permit."""
        return bool(self._due)

    def push(self, item: QueuedRun) -> None:
        self._orgs.add(item.org)
        heappush(self._later, item)

    def is_full(self) -> bool:
        """Returns whether no window is accepted. A backlog counts up to the part of its owner."""
        part = self._part()
        beyond = sum(max(len(self._due[org]) - part, 0) for org in self._backlogged)
        return len(self) - beyond >= WINDOWS_WAITING

    def is_full_for(self, org: int) -> bool:
        """Returns whether the organization has its part of the queue, and others need the rest."""
        is_alone = len(self._orgs) == 1
        return not is_alone and org in self._backlogged and len(self._due[org]) >= self._part()

    def _part(self) -> int:
        if len(self._orgs) == 1:
            return WINDOWS_WAITING
        return max(WINDOWS_WAITING // (max(len(self._backlogged), 1) + 1), BACKLOG)

    def startable(self, now: Instant, free: int) -> int:
        """Returns how many due windows may start, if `free` permits are free."""
        self._sort(now)
        return sum(len(due) for org, due in self._due.items() if self._may_start(org, now, free))

    def batches_wanted(self, now: Instant, free: int, started: int) -> int:
        """Returns how many batches to lease, if `started` runs started since the last lease."""
        if free <= 0:
            return 0
        wanted = max(free, started) - self.startable(now, free)
        # Rounded up, so that a process with few permits also leases a batch.
        return max(0, min(-(-wanted // PERMITS_A_BATCH), BATCHES_A_LEASE))

    def servable(self, now: Instant, free: int) -> int:
        """Returns how many windows `free` permits serve next: those not due, and `startable`.

        Windows of an organization that has its share of the permits are no reason to lease less.
        """
        return self.startable(now, free) + len(self._later)

    def start(self, now: Instant, free: int) -> QueuedRun | None:
        """Removes and returns the next window to run, None if none may start.

        The organization with the fewest runs comes first. Call `end` when the run has ended.
        """
        self._sort(now)
        orgs = [org for org in self._due if self._may_start(org, now, free)]
        if not orgs:
            return None
        org = min(orgs, key=lambda one: (self._running.get(one, 0), self._due[one][0]))
        item = self._due[org].popleft()
        self._settle(org)
        self._begin(org)
        return item

    def begin_beside(self, org: int) -> None:
        """Records a run without a window. Call `end_beside` when it has ended."""
        self._begin(org)
        self._beside[org] = self._beside.get(org, 0) + 1

    def end_beside(self, org: int) -> None:
        self.end(org)
        left = self._beside.pop(org) - 1
        if left:
            self._beside[org] = left

    def _begin(self, org: int) -> None:
        self._orgs.add(org)
        self._running[org] = self._running.get(org, 0) + 1

    def end(self, org: int) -> None:
        left = self._running.pop(org) - 1
        if left:
            self._running[org] = left

    def record_cpu(self, org: int, us: int, now: Instant) -> None:
        """Records the CPU that a run has used, and lets the organization rest for it."""
        if us > USUAL_RUN_US:
            rest_us = self._rest_us(org, now) + RESTS_PER_CPU * (us - USUAL_RUN_US)
            self._rests[org] = Instant(now + min(rest_us, REST_US_MOST))
        mean = self._mean_us.pop(org, 0.0)
        mean += (us - mean) / MEAN_OVER_RUNS
        if max(mean, us) >= MEAN_US_LEAST:
            self._mean_us[org] = mean

    def job_limits(self, now: Instant, free: int, most: int) -> dict[int, int]:
        """Returns how many more jobs the organizations may run that have a limit.

        The windows of one that has its share of the permits take each permit that it frees, so up
        to `most` jobs of it run beyond the share. One with costly runs has fewer jobs at a time.
        """
        found = {}
        for org in self._running.keys() | self._rests.keys() | self._mean_us.keys():
            allowed = self._job_limit(org, now, free, most)
            if allowed is not None:
                found[org] = max(0, allowed - self._beside.get(org, 0))
        return found

    def _job_limit(self, org: int, now: Instant, free: int, most: int) -> int | None:
        rest_us = self._rest_us(org, now)
        if rest_us:
            return 1 if rest_us <= JOB_REST_US else 0
        mean_us = self._mean_us.get(org, 0.0)
        if mean_us >= USUAL_RUN_US and len(self._orgs) > 1:
            return max(1, min(int(ORG_CPU_US / mean_us), most))
        return None if self._may_start(org, now, free) else most

    def _rest_us(self, org: int, now: Instant) -> int:
        """Returns how long the organization still rests; 0 for one that is alone."""
        if org not in self._rests or len(self._orgs) == 1:
            return 0
        # The clock can be set back.
        self._rests[org] = until = min(self._rests[org], Instant(now + REST_US_MOST))
        if until <= now:
            del self._rests[org]
        return max(until - now, 0)

    def remove_expired(self, now: Instant) -> list[QueuedRun]:
        """Removes and returns the due windows that wait for a permit and can start no more."""
        expired = []
        for org, due in list(self._due.items()):
            while due and due[0].claim_until <= now:
                expired.append(due.popleft())
                self._settle(org)
        return expired

    def seconds_to_next(self, now: Instant, most: float) -> float:
        """Returns how long to wait for the next window to become due, at most `most`.

        The wait ends on the grid of START_GRID_US, with all windows that are due by then.
        Runs outside the queue use permits too, and do not report their end. A window that waits
        for a permit is therefore tried again after RETRY_SECONDS.
        """
        if self._due:
            most = min(most, RETRY_SECONDS)
        if self._later:
            at = -(-self._later[0].due // START_GRID_US) * START_GRID_US
            most = min(most, (at - now) / 1e6)
        return max(most, 0.0)

    def _sort(self, now: Instant) -> None:
        while self._later and self._later[0].due <= now:
            item = heappop(self._later)
            due = self._due.setdefault(item.org, deque())
            due.append(item)
            self._due_count += 1
            if len(due) >= BACKLOG:
                self._backlogged.add(item.org)

    def _settle(self, org: int) -> None:
        self._due_count -= 1
        if len(self._due[org]) < BACKLOG:
            self._backlogged.discard(org)
        if not self._due[org]:
            del self._due[org]

    def _may_start(self, org: int, now: Instant, free: int) -> bool:
        if free <= 0 or self._rest_us(org, now):
            return False
        runs = self._running.get(org, 0)
        if len(self._orgs) == 1 or runs == 0:
            return True
        is_costly = runs * self._mean_us.get(org, 0.0) >= ORG_CPU_US
        return not is_costly and runs < RUNS_PER_FREE_PERMIT * (free - 1)
