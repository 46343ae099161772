"""Queue of windows that wait for their due instant, and then for a permit.

Permits are divided between organizations: one that has many slow runs cannot take the last permits,
so that the due window of another organization finds a free one. One with costly runs starts few at
a time: the event loop, which all share, could not finish more of them. Its costly monitors rest
after a costly run, so that the cores are not busy with them alone. Its other monitors go on.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeVar

from ...storage.core.instant import Instant
from ...storage.core.key import MonitorKey
from ...storage.scheduling.rows import JobLimits

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
# Beside others, an organization starts no run while its runs are expected to use this CPU, µs.
# Three runs that use the whole budget reach it, and a few hundred usual ones do not.
ORG_CPU_US: Final = 1_000_000
# The expected CPU of a run is the mean of the latest runs of its organization; this many of them
# weigh most. A mean and runs below the second value, µs, are not kept: they limit nothing.
MEAN_OVER_RUNS: Final = 16
MEAN_US_LEAST: Final = 1_000
# A usual run uses at most this CPU, µs. Below twice EXACT_FROM_NS of the meter, other programs can
# have used it.
USUAL_RUN_US: Final = 40_000
# A monitor is costly for this many runs after one that used more.
COSTLY_FOR_RUNS: Final = 16
# Beside others, costly monitors rest after a run for this multiple of its CPU beyond a usual run.
RESTS_PER_CPU: Final = 9
# Costly monitors of an organization start no run while theirs are expected to use this, µs.
COSTLY_CPU_US: Final = 500_000
# All monitors of an organization rest if costly runs of the others add this to the rest, µs.
REST_OF_ALL_US: Final = 60_000_000
REST_US_MOST: Final = 90_000_000
# Due windows of costly monitors of an organization. Further ones are not accepted.
COSTLY_WAITING: Final = 3_000
# One costly job can start this long before the end of a rest, µs, if a window started before it:
# windows begin at the end of a rest, and would leave no time for jobs.
JOB_REST_US: Final = 1_500_000
# An organization is alone if no other one had a window or a run for this time, µs.
ALONE_AFTER_US: Final = 600_000_000
# Limits of the monitors with a known cost, and of those that are sent with a lease of jobs.
COSTS_MOST: Final = 200_000
EXCEPTIONS_MOST: Final = 5_000
# Starts share a wake-up: a window begins at the end of the interval of this length that it is due
# in.
START_GRID_US: Final = 10_000


T = TypeVar("T")


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
    # True if the run started in the lane of costly monitors.
    is_costly: bool = field(default=False, compare=False)

    @property
    def org(self) -> int:
        return self.key[0]


class Lane(NamedTuple):
    """The costly monitors of an organization, or its other ones."""

    org: int
    is_costly: bool


class RunQueue:
    """Windows of one process, and the number of runs of each organization.

    Invariants: if there are several organizations, only one without runs gets the last free
    permit. Windows of a lane start in the order of their due instants. An organization without runs
    may start one, whatever its runs cost, unless its lane rests.
    """

    def __init__(self) -> None:
        self._later: list[QueuedRun] = []
        self._due: dict[Lane, deque[QueuedRun]] = {}
        self._due_count = 0
        self._backlogged: set[Lane] = set()
        self._running: dict[int, int] = {}
        # Of these, the runs without a window, by lane.
        self._beside: dict[Lane, list[MonitorKey]] = {}
        # Of all runs, those of the costly lane, by organization, and their mean CPU, µs.
        self._costly_runs: dict[int, list[MonitorKey]] = {}
        self._costly_mean_us: dict[int, float] = {}
        # Mean CPU of a run of the organizations with costly runs, µs.
        self._mean_us: dict[int, float] = {}
        # Usual runs until a monitor is no longer costly, of organizations that had a costly run.
        self._costly: dict[int, dict[MonitorKey, int]] = {}
        # Instants at which the rests of organizations end. Some have passed.
        self._rests: dict[int, Instant] = {}
        # Organizations whose last costly run to start was a job.
        self._job_was_last: set[int] = set()
        # The latest window or run of each organization.
        self._orgs: dict[int, Instant] = {}
        self._now = Instant(0)
        self._forgot_at = Instant(0)

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
        self._see(item.org, item.due)
        heappush(self._later, item)

    def is_full(self) -> bool:
        """Returns whether no window is accepted.

        A backlog counts up to the part of its owner, and windows of costly monitors do not count.
        """
        if self._is_alone():
            return len(self) >= WINDOWS_WAITING
        part = self._part()
        uncounted = sum(
            len(due) if lane.is_costly else max(len(due) - part, 0)
            for lane, due in self._due.items()
            if lane.is_costly or lane in self._backlogged
        )
        return len(self) - uncounted >= WINDOWS_WAITING

    def is_full_for(self, key: MonitorKey) -> bool:
        """Returns whether the lane of the monitor has its part, and others need the rest."""
        if self._is_alone():
            return False
        lane = self._lane_of(key)
        due = self._due.get(lane, ())
        if lane.is_costly:
            return len(due) >= COSTLY_WAITING
        return lane in self._backlogged and len(due) >= self._part()

    def _part(self) -> int:
        if self._is_alone():
            return WINDOWS_WAITING
        return max(WINDOWS_WAITING // (max(len(self._backlogged), 1) + 1), BACKLOG)

    def _is_alone(self) -> bool:
        return len(self._orgs) <= 1

    def _see(self, org: int, at: Instant) -> None:
        self._orgs[org] = max(at, self._orgs.get(org, at))

    def _lane_of(self, key: MonitorKey) -> Lane:
        """Returns the lane of a monitor. One without a known cost is like the mean of the runs."""
        costly = self._costly.get(key[0])
        if costly is None:
            return Lane(key[0], False)
        left = costly.get(key)
        return Lane(key[0], self._is_costly_on_average(key[0]) if left is None else left > 0)

    def startable(self, now: Instant, free: int) -> int:
        """Returns how many due windows may start, if `free` permits are free."""
        self._sort(now)
        return sum(len(due) for lane, due in self._due.items() if self._may_start(lane, now, free))

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
        lanes = [lane for lane in self._due if self._may_start(lane, now, free)]
        if not lanes:
            return None
        lane = min(lanes, key=lambda one: (self._running.get(one.org, 0), self._due[one][0]))
        item = self._due[lane].popleft()
        self._settle(lane)
        self._begin(lane, item.key)
        item.is_costly = lane.is_costly
        if lane.is_costly:
            self._job_was_last.discard(lane.org)
        return item

    def begin_beside(self, key: MonitorKey) -> None:
        """Records a run without a window. Call `end_beside` when it has ended."""
        lane = self._lane_of(key)
        self._begin(lane, key)
        _add(self._beside, lane, key)
        if lane.is_costly:
            self._job_was_last.add(key[0])

    def end_beside(self, key: MonitorKey) -> None:
        # The lane of its begin.
        lane = Lane(key[0], key in self._beside.get(Lane(key[0], True), ()))
        self._end(lane, key)
        _remove(self._beside, lane, key)

    def end(self, item: QueuedRun) -> None:
        self._end(Lane(item.org, item.is_costly), item.key)

    def _begin(self, lane: Lane, key: MonitorKey) -> None:
        self._see(lane.org, self._now)
        self._running[lane.org] = self._running.get(lane.org, 0) + 1
        if lane.is_costly:
            _add(self._costly_runs, lane.org, key)

    def _end(self, lane: Lane, key: MonitorKey) -> None:
        left = self._running.pop(lane.org) - 1
        if left:
            self._running[lane.org] = left
        if lane.is_costly:
            _remove(self._costly_runs, lane.org, key)

    def record_cpu(self, key: MonitorKey, us: int, now: Instant) -> None:
        """Records the CPU that a run has used, before its end. After a costly run monitors rest."""
        org, is_costly = key[0], us > USUAL_RUN_US
        mean = self._mean_us.pop(org, 0.0)
        mean += (us - mean) / MEAN_OVER_RUNS
        if max(mean, us) >= MEAN_US_LEAST:
            self._mean_us[org] = mean
        if is_costly:
            self._rest_for(Lane(org, key in self._costly_runs.get(org, ())), us, now)
        if is_costly or org in self._costly:
            is_new = key not in self._costly.get(org, ())
            if is_new and sum(map(len, self._costly.values())) >= COSTS_MOST:
                del self._costly[max(self._costly, key=lambda one: len(self._costly[one]))]
            known = self._costly.setdefault(org, {})
            known[key] = COSTLY_FOR_RUNS if is_costly else max(0, known.get(key, 0) - 1)

    def _rest_for(self, lane: Lane, us: int, now: Instant) -> None:
        mean = self._costly_mean_us.get(lane.org, 0.0)
        self._costly_mean_us[lane.org] = mean + (us - mean) / MEAN_OVER_RUNS if mean else us
        if not self._is_alone():
            before_us = self._rest_us(lane.org, now)
            # Runs that began as costly ones never stop the others.
            most_us = max(before_us, REST_OF_ALL_US) if lane.is_costly else REST_US_MOST
            rest_us = before_us + RESTS_PER_CPU * (us - USUAL_RUN_US)
            self._rests[lane.org] = Instant(now + min(rest_us, most_us))

    def job_limits(self, now: Instant, free: int, most: int) -> JobLimits:
        """Returns how many more jobs the lanes may run that have a limit.

        The windows of an organization that has its share of the permits take each permit that it
        frees, so up to `most` jobs of it run beyond the share. One with costly runs has fewer jobs
        at a time, and its costly monitors one.
        """
        rooms: dict[tuple[int, bool], int] = {}
        for org in self._running.keys() | self._mean_us.keys() | self._costly.keys():
            for lane in (Lane(org, False), Lane(org, True)):
                allowed = self._job_limit(lane, now, free, most)
                if allowed is not None:
                    rooms[lane] = max(0, allowed - len(self._beside.get(lane, ())))
        costly = {org for org in self._costly if self._is_costly_on_average(org)}
        exceptions = [
            key
            for org, known in self._costly.items()
            for key, left in known.items()
            if (left > 0) is not (org in costly)
        ]
        return JobLimits(rooms, sorted(costly), exceptions[:EXCEPTIONS_MOST])

    def _is_costly_on_average(self, org: int) -> bool:
        return self._mean_us.get(org, 0.0) > USUAL_RUN_US

    def _job_limit(self, lane: Lane, now: Instant, free: int, most: int) -> int | None:
        if self._is_alone():
            return None if self._may_start(lane, now, free) else most
        if lane.is_costly:
            if lane.org not in self._costly:
                return None
            is_turn_of_window = lane.org in self._job_was_last and lane in self._due
            return int(not is_turn_of_window and self._rest_us(lane.org, now) <= JOB_REST_US)
        if self._rest_us(lane.org, now) > REST_OF_ALL_US:
            return 0
        if self._is_costly_on_average(lane.org):
            return max(1, min(int(ORG_CPU_US / self._mean_us[lane.org]), most))
        return None if self._may_start(lane, now, free) else most

    def _rest_us(self, org: int, now: Instant) -> int:
        """Returns how long costly monitors still rest; 0 if the organization is alone."""
        if org not in self._rests or self._is_alone():
            return 0
        # The clock can be set back.
        self._rests[org] = until = min(self._rests[org], Instant(now + REST_US_MOST))
        if until <= now:
            del self._rests[org]
        return max(until - now, 0)

    def remove_expired(self, now: Instant) -> list[QueuedRun]:
        """Removes and returns the due windows that wait for a permit and can start no more."""
        expired = []
        for lane, due in list(self._due.items()):
            while due and due[0].claim_until <= now:
                expired.append(due.popleft())
                self._settle(lane)
        return expired

    def seconds_to_next(self, now: Instant, most: float) -> float:
        """Returns how long to wait for the next window to become due, at most `most`.

        The wait ends on the grid of START_GRID_US, with all windows that are due by then.
        Runs outside the queue use permits too, and do not report their end. A window that waits
        for a permit is therefore tried again after RETRY_SECONDS.
        """
        if self._due:
            rests = [self._rest_us(lane.org, now) if lane.is_costly else 0 for lane in self._due]
            most = min(most, max(RETRY_SECONDS, min(rests) / 1e6))
        if self._later:
            at = -(-self._later[0].due // START_GRID_US) * START_GRID_US
            most = min(most, (at - now) / 1e6)
        return max(most, 0.0)

    def _sort(self, now: Instant) -> None:
        self._now = now
        if not self._forgot_at <= now < self._forgot_at + ALONE_AFTER_US // 10:
            self._forgot_at = now
            # The clock can be set back.
            self._orgs = {
                org: min(at, now)
                for org, at in self._orgs.items()
                if at > now - ALONE_AFTER_US or org in self._running
            }
        while self._later and self._later[0].due <= now:
            item = heappop(self._later)
            lane = self._lane_of(item.key)
            due = self._due.setdefault(lane, deque())
            due.append(item)
            self._due_count += 1
            if len(due) >= BACKLOG and not lane.is_costly:
                self._backlogged.add(lane)

    def _settle(self, lane: Lane) -> None:
        self._due_count -= 1
        if len(self._due[lane]) < BACKLOG:
            self._backlogged.discard(lane)
        if not self._due[lane]:
            del self._due[lane]

    def _may_start(self, lane: Lane, now: Instant, free: int) -> bool:
        if free <= 0:
            return False
        if self._rest_us(lane.org, now) > (0 if lane.is_costly else REST_OF_ALL_US):
            return False
        runs = self._running.get(lane.org, 0)
        if self._is_alone() or runs == 0:
            return True
        costly_runs = len(self._costly_runs.get(lane.org, ()))
        expected_us = costly_runs * self._costly_mean_us.get(lane.org, 0.0)
        if lane.is_costly and costly_runs and expected_us >= COSTLY_CPU_US:
            return False
        is_costly = runs * self._mean_us.get(lane.org, 0.0) >= ORG_CPU_US
        return not is_costly and runs < RUNS_PER_FREE_PERMIT * (free - 1)


def _add(runs: dict[T, list[MonitorKey]], of: T, key: MonitorKey) -> None:
    runs.setdefault(of, []).append(key)


def _remove(runs: dict[T, list[MonitorKey]], of: T, key: MonitorKey) -> None:
    runs[of].remove(key)
    if not runs[of]:
        del runs[of]
