"""Permits are divided between organizations, and each window starts once or expires."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.daemon.loops.run_queue import (
    BACKLOG,
    BATCHES_A_LEASE,
    JOB_REST_US,
    MEAN_OVER_RUNS,
    MEAN_US_LEAST,
    ORG_CPU_US,
    PERMITS_A_BATCH,
    REST_US_MOST,
    RESTS_PER_CPU,
    RETRY_SECONDS,
    RUNS_PER_FREE_PERMIT,
    START_GRID_US,
    USUAL_RUN_US,
    WINDOWS_WAITING,
    ActiveBatch,
    QueuedRun,
    RunQueue,
)
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey

BATCH = ActiveBatch(1, 1, 1)


def window(org: int, number: int, due: int, claimable: int = 1_000) -> QueuedRun:
    key = MonitorKey((org, number))
    return QueuedRun(Instant(due), number, BATCH, key, Instant(due + claimable))


@dataclass
class Model:
    """The rule, by a search over all windows."""

    permits: int
    waiting: list[QueuedRun] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)
    orgs: set[int] = field(default_factory=set)
    # (CPU, end) of the runs of each organization.
    used: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    beside: list[int] = field(default_factory=list)

    @property
    def free(self) -> int:
        return self.permits - sum(self.running.values())

    def startable(self, now: int) -> list[QueuedRun]:
        due = [item for item in self.waiting if item.due <= now]
        return [item for item in due if self._may_start(item.org, now)]

    def _may_start(self, org: int, now: int) -> bool:
        runs = self.running.get(org, 0)
        if self.free <= 0:
            return False
        if len(self.orgs) == 1:
            return True
        if self.rest_us(org, now) > 0:
            return False
        is_costly = runs * self._mean_us(org) >= ORG_CPU_US
        return not runs or (not is_costly and runs < RUNS_PER_FREE_PERMIT * (self.free - 1))

    def rest_us(self, org: int, now: int) -> int:
        """The rest that is left. It was made at the end of each run, and passes with time."""
        rest, before = 0, 0
        for used_us, ended in [*self.used.get(org, ()), (0, now)]:
            rest = max(0, rest - (ended - before))
            before = ended
            rest += RESTS_PER_CPU * max(0, used_us - USUAL_RUN_US)
            rest = min(rest, REST_US_MOST)
        return rest if len(self.orgs) > 1 else 0

    def job_limits(self, now: int, most: int) -> dict[int, int]:
        return {
            org: max(0, limit - self.beside.count(org))
            for org in range(4)
            if (limit := self._job_limit(org, now, most)) is not None
        }

    def _job_limit(self, org: int, now: int, most: int) -> int | None:
        if self.rest_us(org, now) > JOB_REST_US:
            return 0
        if self.rest_us(org, now) > 0:
            return 1
        if len(self.orgs) > 1 and self._mean_us(org) >= USUAL_RUN_US:
            return max(1, min(most, int(ORG_CPU_US / self._mean_us(org))))
        is_full = self.running.get(org, 0) > 0 and not self._may_start(org, now)
        return most if is_full else None

    def _mean_us(self, org: int) -> float:
        mean = 0.0
        for used_us, _ in self.used.get(org, ()):
            mean += (used_us - mean) / MEAN_OVER_RUNS
            mean = mean if max(mean, used_us) >= MEAN_US_LEAST else 0.0
        return mean


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "start", "start", "end", "later", "expire", "beside"]),
        st.integers(1, 3),
        st.integers(0, 40),
    ),
    max_size=120,
)


@given(STEPS, st.integers(1, 9))
@settings(max_examples=300)
def test_the_queue_agrees_with_a_search(steps: list[tuple[str, int, int]], permits: int) -> None:
    queue, model, now = RunQueue(), Model(permits), 0
    for number, (step, org, amount) in enumerate(steps):
        if step == "push":
            item = window(org, number, now + amount - 20, amount + 1)
            queue.push(item)
            model.waiting.append(item)
            model.orgs.add(org)
        elif step == "start":
            startable = model.startable(now)
            assert queue.startable(Instant(now), model.free) == len(startable)
            started = queue.start(Instant(now), model.free)
            if started is None:
                assert not startable
                continue
            fewest = min(model.running.get(item.org, 0) for item in startable)
            assert model.running.get(started.org, 0) == fewest
            assert started in startable
            model.waiting.remove(started)
            model.running[started.org] = model.running.get(started.org, 0) + 1
        elif step == "end" and model.running.get(org):
            cpu_us = (None, 0, 900, 60_000, 600_000, 20_000_000)[amount % 6]
            if org in model.beside:
                queue.end_beside(org)
                model.beside.remove(org)
            else:
                queue.end(org)
            model.running[org] -= 1
            if cpu_us is not None:
                queue.record_cpu(org, cpu_us, Instant(now))
                model.used.setdefault(org, []).append((cpu_us, now))
        elif step == "later":
            now += amount if amount % 2 else amount * 50_000
        elif step == "expire":
            for item in queue.remove_expired(Instant(now)):
                assert item.claim_until <= now
                model.waiting.remove(item)
        elif step == "beside":
            queue.begin_beside(org)
            model.beside.append(org)
            model.orgs.add(org)
            model.running[org] = model.running.get(org, 0) + 1
        assert len(queue) == len(model.waiting)
        assert queue.job_limits(Instant(now), model.free, 2) == model.job_limits(now, 2)
        assert 0 <= queue.seconds_to_next(Instant(now), 1.0) <= 1.0


@given(st.integers(1, 200), st.integers(2, 6))
def test_a_permit_stays_free_for_an_organization_without_runs(permits: int, orgs: int) -> None:
    queue, running = RunQueue(), 0
    queue.push(window(99, 0, 1_000_000_000))
    for org in range(orgs):
        for number in range(permits + 1):
            queue.push(window(org, number, number))
    while queue.start(Instant(10_000), permits - running) is not None:
        running += 1
    free = permits - running
    # The newcomer is late only if there are as many organizations as permits.
    assert free >= 1 or permits <= orgs
    queue.push(window(100, 1, 0))
    assert free == 0 or queue.start(Instant(10_000), free) is not None


RESTED = Instant(REST_US_MOST + 100)


def _made(orgs: dict[int, int], permits: int) -> RunQueue:
    """Returns a queue whose organizations made 64 runs of the given CPU, in µs, and have as many
    due windows as permits."""
    queue = RunQueue()
    for number, (org, cpu_us) in enumerate(orgs.items()):
        for n in range(64):
            queue.record_cpu(org, cpu_us, Instant(n))
        for n in range(permits):
            queue.push(window(org, 1_000 * number + n, 100))
    return queue


def _start_all(queue: RunQueue, now: Instant, permits: int) -> dict[int, int]:
    """Returns how many runs of each organization are in progress when no further one may start."""
    running: dict[int, int] = {}
    while (item := queue.start(now, permits - sum(running.values()))) is not None:
        running[item.org] = running.get(item.org, 0) + 1
    return running


def test_an_organization_with_costly_runs_starts_few_of_them_beside_others() -> None:
    costly, usual, tls = 1, 2, 3
    queue = _made({costly: 500_000, usual: 400, tls: 3_000}, 200)
    running = _start_all(queue, RESTED, 200)
    assert running[costly] == 3
    assert min(running[usual], running[tls]) > 60
    # Its runs become cheap again: so does the next one, after enough of them.
    for _ in range(64):
        queue.end(costly)
        queue.record_cpu(costly, 400, RESTED)
        assert queue.start(RESTED, 50) is not None
    assert queue.startable(RESTED, 50) > 0


def test_an_organization_that_rests_delays_no_other() -> None:
    queue = _made({1: 500_000, 2: 400}, 40)
    now = Instant(100)
    assert set(_start_all(queue, now, 40)) == {2}
    assert queue.job_limits(now, 30, 10)[1] == 0
    queue.push(window(3, 9_000, 100))
    started = queue.start(now, 1)
    assert started is not None
    assert started.org == 3


@given(st.lists(st.integers(0, 500_000), min_size=20, max_size=60), st.integers(0, 3))
def test_costly_runs_of_one_organization_use_a_part_of_the_core(
    costs: list[int], jobs: int
) -> None:
    """It starts a run whenever it may, and its runs have the core to themselves."""
    queue, now, used_us = RunQueue(), 0, 0
    queue.push(window(2, 0, 10**12))
    for number in range(len(costs)):
        queue.push(window(1, number, 0))
    for number, cpu_us in enumerate(costs):
        is_job = number % 4 < jobs
        while not (
            queue.job_limits(Instant(now), 50, 10).get(1, 10)
            if is_job
            else queue.startable(Instant(now), 50)
        ):
            now += 10_000
        if is_job:
            queue.begin_beside(1)
        else:
            assert queue.start(Instant(now), 50) is not None
        now += cpu_us
        used_us += max(0, cpu_us - USUAL_RUN_US)
        (queue.end_beside if is_job else queue.end)(1)
        queue.record_cpu(1, cpu_us, Instant(now))
    # All but the rests of the last two runs has passed.
    assert used_us <= (now + 2 * RESTS_PER_CPU * 500_000) / (RESTS_PER_CPU + 1)


def test_a_clock_that_is_set_back_does_not_make_a_rest_longer() -> None:
    queue = RunQueue()
    queue.push(window(2, 0, 10**12))
    queue.push(window(1, 0, 0))
    queue.record_cpu(1, 500_000, Instant(3_600 * SECOND))
    assert not queue.startable(Instant(10), 50)
    assert queue.startable(Instant(10 + REST_US_MOST), 50)


@given(st.integers(MEAN_US_LEAST, 600_000))
def test_the_mean_of_equal_runs_is_their_cpu(cpu_us: int) -> None:
    queue = RunQueue()
    for _ in range(200):
        queue.record_cpu(1, cpu_us, Instant(0))
    assert abs(queue._mean_us[1] - cpu_us) <= 0.01 * cpu_us


def test_an_organization_alone_starts_any_number_of_costly_runs() -> None:
    assert _start_all(_made({1: 500_000}, 40), Instant(100), 40) == {1: 40}


def test_a_run_that_costs_more_than_all_may_still_starts_alone() -> None:
    assert _start_all(_made({1: 60 * ORG_CPU_US, 2: 400}, 40), RESTED, 40)[1] == 1


@given(st.integers(-2, 300), st.integers(0, 5_000), st.integers(0, 300))
def test_the_lease_follows_the_permits_and_the_runs(free: int, started: int, waiting: int) -> None:
    queue = RunQueue()
    for number in range(waiting):
        queue.push(window(1, number, 0))
    wanted = queue.batches_wanted(Instant(1), free, started)
    assert 0 <= wanted <= BATCHES_A_LEASE
    if free <= 0 or waiting >= max(free, started):
        assert wanted == 0
    else:
        assert wanted > 0
        missing = max(free, started) - waiting
        assert wanted == BATCHES_A_LEASE or 0 <= wanted * PERMITS_A_BATCH - missing < 25


def test_one_organization_uses_all_permits() -> None:
    queue = RunQueue()
    for number in range(30):
        queue.push(window(1, number, 0))
    started = [queue.start(Instant(1), 20 - n) for n in range(21)]
    assert started[19] is not None
    assert started[20] is None


def test_an_organization_starts_its_windows_in_order() -> None:
    queue = RunQueue()
    for number, due in enumerate([30, 10, 20]):
        queue.push(window(1, number, due))
    started = [queue.start(Instant(100), 9) for _ in range(3)]
    assert [item.due for item in started if item] == [10, 20, 30]


def _backlog(queue: RunQueue, org: int, count: int) -> int:
    """Offers windows that are due, and returns how many the queue accepts."""
    accepted = 0
    for number in range(count):
        if queue.is_full() or queue.is_full_for(org):
            continue
        queue.push(window(org, 100_000 * org + number, 0))
        queue.startable(Instant(1), 0)
        accepted += 1
    return accepted


def test_an_organization_has_a_part_of_the_queue_only_if_others_need_the_rest() -> None:
    queue = RunQueue()
    assert _backlog(queue, 1, WINDOWS_WAITING - 100) == WINDOWS_WAITING - 100
    assert not queue.is_full_for(1)
    queue.push(window(2, 0, 0))
    assert queue.is_full_for(1)
    assert not queue.is_full_for(2)
    assert not queue.is_full()


@given(st.lists(st.integers(BACKLOG, 3 * WINDOWS_WAITING), min_size=1, max_size=8))
@settings(max_examples=15)
def test_backlogs_of_several_organizations_leave_room_for_others(counts: list[int]) -> None:
    """Otherwise two tenants with costly or silent targets stop the leases for all others."""
    queue = RunQueue()
    queue.push(window(99, 1, 1_000_000))
    for org, count in enumerate(counts):
        accepted = _backlog(queue, org, count)
        assert accepted >= min(count, BACKLOG)
    assert not queue.is_full()
    assert not queue.is_full_for(99)
    assert _backlog(queue, 99, BACKLOG // 2) == BACKLOG // 2
    assert len(queue) <= 4 * WINDOWS_WAITING


def test_windows_that_have_no_permit_coming_are_not_servable() -> None:
    """Otherwise a tenant with slow targets would stop the leases for all others."""
    queue = RunQueue()
    for number in range(300):
        queue.push(window(1, number, 0))
    queue.push(window(2, 0, 0))
    queue.push(window(2, 1, 500))
    running = 0
    while queue.start(Instant(1), 100 - running) is not None:
        running += 1
    free = 100 - running
    assert free > 0
    assert len(queue) > 200
    assert queue.servable(Instant(1), free) == 1
    assert queue.servable(Instant(501), free) == queue.startable(Instant(501), free) == 1


def test_a_window_that_waits_for_a_permit_is_tried_again_soon() -> None:
    queue = RunQueue()
    queue.push(window(1, 1, 0, 10 * SECOND))
    assert queue.start(Instant(1), 0) is None
    assert queue.seconds_to_next(Instant(1), 1.0) == RETRY_SECONDS


@given(st.lists(st.integers(1, 60_000), min_size=1), st.integers(0, 60_000))
def test_windows_that_are_due_together_share_a_wake_up(dues: list[int], now: int) -> None:
    queue = RunQueue()
    for number, due in enumerate(dues):
        queue.push(window(1, number, due))
    while queue.start(Instant(now), 1) is not None:
        queue.end(1)
    later = sorted(due for due in dues if due > now)
    assert not queue.has_due
    if later:
        wakes_at = now + round(queue.seconds_to_next(Instant(now), 1.0) * 1e6)
        assert later[0] <= wakes_at < later[0] + START_GRID_US
        assert wakes_at % START_GRID_US == 0
        together = []
        while (item := queue.start(Instant(wakes_at), 1)) is not None:
            queue.end(1)
            together.append(item.due)
        assert together == [due for due in later if due <= wakes_at]
