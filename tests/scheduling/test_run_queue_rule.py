"""Permits are divided between organizations, and each window starts once or expires."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.daemon.loops.run_queue import (
    ALONE_AFTER_US,
    BACKLOG,
    BATCHES_A_LEASE,
    COSTLY_CPU_US,
    COSTLY_FOR_RUNS,
    COSTLY_WAITING,
    JOB_REST_US,
    MEAN_OVER_RUNS,
    MEAN_US_LEAST,
    ORG_CPU_US,
    PERMITS_A_BATCH,
    REST_OF_ALL_US,
    REST_US_MOST,
    RESTS_PER_CPU,
    RETRY_SECONDS,
    RUNS_PER_FREE_PERMIT,
    START_GRID_US,
    USUAL_RUN_US,
    WINDOWS_WAITING,
    ActiveBatch,
    Lane,
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
    """The rule, by a search over all windows and runs."""

    permits: int
    # Windows that are not due, and due ones with whether they are costly.
    later: list[QueuedRun] = field(default_factory=list)
    due: list[tuple[QueuedRun, bool]] = field(default_factory=list)
    # (organization, whether it began as a costly one) of the runs, and of those without a window.
    running: list[Lane] = field(default_factory=list)
    beside: list[Lane] = field(default_factory=list)
    orgs: set[int] = field(default_factory=set)
    # (monitor, CPU, end) of the runs, and the most of a rest to which each can add.
    used: list[tuple[MonitorKey, int, int]] = field(default_factory=list)
    rests_most: list[int] = field(default_factory=list)
    # Organizations, for each costly job or window that started.
    costly_starts: list[tuple[int, bool]] = field(default_factory=list)

    @property
    def free(self) -> int:
        return self.permits - len(self.running)

    def sort(self, now: int) -> None:
        for item in [item for item in self.later if item.due <= now]:
            self.later.remove(item)
            self.due.append((item, self.is_costly(item.key)))

    def is_costly(self, key: MonitorKey) -> bool:
        of_org = [run for run in self.used if run[0][0] == key[0]]
        if not any(cpu_us > USUAL_RUN_US for _, cpu_us, _ in of_org):
            return False
        first = next(n for n, run in enumerate(of_org) if run[1] > USUAL_RUN_US)
        mine = [cpu_us for monitor, cpu_us, _ in of_org[first:] if monitor == key]
        if not mine:
            return self.mean_us(key[0]) > USUAL_RUN_US
        return max(mine[-COSTLY_FOR_RUNS:]) > USUAL_RUN_US

    def startable(self, now: int) -> list[QueuedRun]:
        return [item for item, is_costly in self.due if self.may_start(item.org, is_costly, now)]

    def may_start(self, org: int, is_costly: bool, now: int) -> bool:
        runs = self.runs_of(org)
        if self.free <= 0:
            return False
        if len(self.orgs) == 1:
            return True
        if self.rest_us(org, now) > (0 if is_costly else REST_OF_ALL_US):
            return False
        costly_runs = self.running.count(Lane(org, True))
        if is_costly and costly_runs and costly_runs * self.costly_mean_us(org) >= COSTLY_CPU_US:
            return False
        is_full = runs * self.mean_us(org) >= ORG_CPU_US
        return not runs or (not is_full and runs < RUNS_PER_FREE_PERMIT * (self.free - 1))

    def runs_of(self, org: int) -> int:
        return sum(lane.org == org for lane in self.running)

    def end(self, key: MonitorKey, cpu_us: int, now: int, began_costly: bool) -> None:
        most = REST_OF_ALL_US if began_costly else REST_US_MOST
        self.rests_most.append(0 if len(self.orgs) == 1 else most)
        self.used.append((key, cpu_us, now))

    def rest_us(self, org: int, now: int) -> int:
        """The rest that is left. It was made at the end of each run, and passes with time."""
        rest, before = 0, 0
        for (key, cpu_us, ended), most in zip(self.used, self.rests_most, strict=True):
            if key[0] == org:
                rest = max(0, rest - (ended - before))
                before = ended
                added = rest + RESTS_PER_CPU * max(0, cpu_us - USUAL_RUN_US)
                rest = min(added, max(rest, most))
        rest = max(0, rest - (now - before))
        return rest if len(self.orgs) > 1 else 0

    def costly_mean_us(self, org: int) -> float:
        mean = 0.0
        for key, cpu_us, _ in self.used:
            if key[0] == org and cpu_us > USUAL_RUN_US:
                mean = mean + (cpu_us - mean) / MEAN_OVER_RUNS if mean else cpu_us
        return mean

    def room(self, org: int, is_costly: bool, now: int, most: int) -> int:
        """How many jobs the lane may have more; `most` without a limit."""
        in_use = self.beside.count(Lane(org, is_costly))
        limit = most
        if len(self.orgs) == 1:
            if self.may_start(org, is_costly, now):
                return most
        elif is_costly:
            starts = [is_job for of_org, is_job in self.costly_starts if of_org == org]
            windows = [item for item, costly in self.due if costly and item.org == org]
            is_turn_of_window = bool(starts and starts[-1] and windows)
            limit = int(not is_turn_of_window and self.rest_us(org, now) <= JOB_REST_US)
        elif self.rest_us(org, now) > REST_OF_ALL_US:
            limit = 0
        elif self.mean_us(org) > USUAL_RUN_US:
            limit = max(1, min(most, int(ORG_CPU_US / self.mean_us(org))))
        elif self.may_start(org, False, now):
            return most
        return max(0, limit - in_use)

    def mean_us(self, org: int) -> float:
        mean = 0.0
        for monitor, cpu_us, _ in self.used:
            if monitor[0] == org:
                mean += (cpu_us - mean) / MEAN_OVER_RUNS
                mean = mean if max(mean, cpu_us) >= MEAN_US_LEAST else 0.0
        return mean


def keyed(run: QueuedRun | MonitorKey) -> MonitorKey:
    return run.key if isinstance(run, QueuedRun) else run


ACTIONS = ("push", "push", "start", "start", "end", "end", "later", "expire", "beside")
CPU_US = (0, 900, 39_000, 60_000, 600_000, 2_000_000)


@given(st.data(), st.integers(1, 9), st.sampled_from([1, 2, 3]))
@settings(max_examples=300)
def test_the_queue_agrees_with_a_search(data: st.DataObject, permits: int, orgs: int) -> None:
    queue, model, now = RunQueue(), Model(permits), 0
    in_progress: list[tuple[QueuedRun | MonitorKey, Lane]] = []
    keys = [MonitorKey((org, number)) for org in range(1, orgs + 1) for number in range(3)]
    for number in range(data.draw(st.integers(0, 80))):
        step = data.draw(st.sampled_from(ACTIONS))
        amount = data.draw(st.integers(0, 40))
        key = data.draw(st.sampled_from(keys))
        if step == "push":
            due = Instant(now + amount - 20)
            item = QueuedRun(due, number, BATCH, key, Instant(due + amount + 1))
            queue.push(item)
            model.later.append(item)
            model.orgs.add(key[0])
        elif step == "start":
            startable = model.startable(now)
            assert queue.startable(Instant(now), model.free) == len(startable)
            started = queue.start(Instant(now), model.free)
            if started is None:
                assert not startable
            else:
                fewest = min(model.runs_of(item.org) for item in startable)
                assert model.runs_of(started.org) == fewest
                assert started in startable
                (found,) = [one for one in model.due if one[0] is started]
                model.due.remove(found)
                model.running.append(Lane(started.org, found[1]))
                in_progress.append((started, model.running[-1]))
                if found[1]:
                    model.costly_starts.append((started.org, False))
        elif step == "end" and in_progress:
            run, lane = in_progress.pop(amount % len(in_progress))
            cpu_us = data.draw(st.sampled_from(CPU_US))
            ended = keyed(run)
            queue.record_cpu(ended, cpu_us, Instant(now))
            same = [one for item, one in [*in_progress, (run, lane)] if keyed(item) == ended]
            model.end(ended, cpu_us, now, any(one.is_costly for one in same))
            if isinstance(run, QueuedRun):
                queue.end(run)
            else:
                queue.end_beside(run)
                model.beside.remove(lane)
            model.running.remove(lane)
        elif step == "later":
            now += amount if amount % 2 else amount * 50_000
        elif step == "expire":
            for item in queue.remove_expired(Instant(now)):
                assert item.claim_until <= now
                model.due = [one for one in model.due if one[0] is not item]
        elif step == "beside" and all(run != key for run, _ in in_progress):
            model.orgs.add(key[0])
            lane = Lane(key[0], model.is_costly(key))
            if lane.is_costly:
                model.costly_starts.append((key[0], True))
            queue.begin_beside(key)
            model.beside.append(lane)
            model.running.append(lane)
            in_progress.append((key, lane))
        # The queue sorts with each question.
        queue.startable(Instant(now), model.free)
        model.sort(now)
        assert len(queue) == len(model.later) + len(model.due)
        limits = queue.job_limits(Instant(now), model.free, 2)
        for org in model.orgs:
            for is_costly in (False, True):
                if is_costly and not any(model.is_costly(key) for key in keys if key[0] == org):
                    continue
                found_room = limits.rooms.get((org, is_costly), 2)
                assert found_room == model.room(org, is_costly, now, 2), (org, is_costly)
        for key in keys:
            costly = (key[0] in limits.costly_orgs) is not (key in limits.exceptions)
            assert costly is model.is_costly(key)
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
    for org in orgs:
        for n in range(permits):
            queue.push(window(org, n, 100))
    for org, cpu_us in orgs.items():
        for n in range(64):
            queue.record_cpu(MonitorKey((org, n)), cpu_us, Instant(n))
    return queue


def costly_run(org: int) -> QueuedRun:
    run = window(org, 0, 0)
    run.is_costly = True
    return run


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
    assert running[costly] == 1
    assert min(running[usual], running[tls]) > 60
    # Its runs become cheap again: so does the next one, after enough of them.
    for n in range(64 * COSTLY_FOR_RUNS):
        queue.record_cpu(MonitorKey((costly, n % 64)), 400, RESTED)
    queue.end(costly_run(costly))
    assert queue.start(RESTED, 50) is not None
    assert queue.startable(RESTED, 50) > 0


def test_costly_monitors_that_rest_delay_no_other_monitor() -> None:
    queue = _made({2: 400}, 40)
    now = Instant(100)
    for n in range(20):
        queue.record_cpu(MonitorKey((1, n)), 50_000, now)
        queue.push(window(1, n, 100))
    assert set(_start_all(queue, now, 40)) == {2}
    assert queue.job_limits(now, 30, 10).rooms[Lane(1, True)] == 0
    # A monitor of the same organization whose latest run was a usual one.
    queue.record_cpu(MonitorKey((1, 900)), 400, now)
    queue.push(window(1, 900, 100))
    started = queue.start(now, 1)
    assert started is not None
    assert started.key == (1, 900)
    assert queue.job_limits(now, 30, 10).rooms.get(Lane(1, False), 10) > 0


def test_windows_and_jobs_of_costly_monitors_take_turns() -> None:
    """Jobs are leased in passes, before the end of a rest, and windows at its end."""
    queue, now = RunQueue(), 0
    queue.push(window(2, 0, 10**12))
    queue.record_cpu(MonitorKey((1, 0)), 500_000, Instant(0))
    for number in range(400):
        queue.push(window(1, 0, number, 10**12))
    started = {True: 0, False: 0}
    running: list[tuple[int, bool]] = []
    while now < 400 * SECOND:
        for run in [run for run in running if run[0] <= now]:
            running.remove(run)
            (queue.end_beside(MonitorKey((1, 0))) if run[1] else queue.end(costly_run(1)))
            queue.record_cpu(MonitorKey((1, 0)), 500_000, Instant(now))
        is_job = bool(
            now % SECOND == 0 and queue.job_limits(Instant(now), 50, 10).rooms[Lane(1, True)]
        )
        if is_job:
            queue.begin_beside(MonitorKey((1, 0)))
        if is_job or queue.start(Instant(now), 50) is not None:
            running.append((now + SECOND // 2, is_job))
            started[is_job] += 1
        now += SECOND // 10
    assert min(started.values()) > 20


@given(st.lists(st.integers(0, 500_000), min_size=20, max_size=80), st.integers(1, 12))
def test_costly_runs_of_one_organization_use_a_part_of_the_core(
    costs: list[int], at_once: int
) -> None:
    """It starts runs whenever it may, up to `at_once`, on a core of their own. Each is the first
    of its monitor, or that of one whose runs are sometimes costly."""
    queue, now, used_us = RunQueue(), 0, 0
    queue.push(window(2, 0, 10**12))
    for number in range(len(costs)):
        queue.push(window(1, number % 37, 0, 10**12))
    left = list(costs)
    while left:
        group: list[tuple[QueuedRun, int]] = []
        while left and len(group) < at_once:
            item = queue.start(Instant(now), 50)
            if item is None:
                break
            group.append((item, left.pop(0)))
        for item, cpu_us in group:
            now += cpu_us
            queue.record_cpu(item.key, cpu_us, Instant(now))
            queue.end(item)
            used_us += max(0, cpu_us - USUAL_RUN_US)
        now += 10_000
    # Before all of its monitors rest, and what runs at once then.
    burst_us = REST_OF_ALL_US // RESTS_PER_CPU + at_once * 500_000
    assert used_us <= now / (RESTS_PER_CPU + 1) + burst_us


def test_monitors_that_seem_usual_for_some_runs_rest_in_the_end() -> None:
    """Each of 500 monitors makes a costly run, then as many usual ones as make it a usual one."""
    queue, now, used_us, runs = RunQueue(), 0, 0, 0
    made: Counter[MonitorKey] = Counter()
    queue.push(window(2, 0, 10**12))
    while now < 600 * SECOND:
        for _ in range(83):
            queue.push(window(1, runs % 500, now, 60 * SECOND))
            runs += 1
        queue.remove_expired(Instant(now))
        until = now + SECOND
        while now < until and (item := queue.start(Instant(now), 50)) is not None:
            is_costly = made[item.key] % (COSTLY_FOR_RUNS + 1) == 0
            made[item.key] += 1
            cpu_us = 500_000 if is_costly else 400
            now += cpu_us
            used_us += cpu_us if is_costly else 0
            queue.record_cpu(item.key, cpu_us, Instant(now))
            queue.end(item)
        now = max(now, until)
    assert used_us <= 0.13 * now


@given(st.integers(2, 400), st.sampled_from([60_000, 200_000, 500_000]))
@settings(max_examples=30)
def test_many_costly_monitors_do_not_stop_the_usual_ones(costly: int, cpu_us: int) -> None:
    """The usual runs hide the costly ones in the mean, and all costly windows wait for a rest."""
    queue, now, used_us, late = RunQueue(), 0, 0, 0
    queue.push(window(2, 0, 10**12))
    for n in range(costly):
        queue.record_cpu(MonitorKey((1, n)), cpu_us, Instant(0))
    for n in range(200):
        queue.record_cpu(MonitorKey((1, 1_000 + n)), 400, Instant(0))
    now = REST_US_MOST
    for second in range(200):
        for n in range(costly):
            if not queue.is_full_for(MonitorKey((1, n))):
                queue.push(window(1, n, now, 60 * SECOND))
        queue.push(window(1, 1_000 + second, now, 60 * SECOND))
        queue.remove_expired(Instant(now))
        started: list[QueuedRun] = []
        while (item := queue.start(Instant(now), 150 - len(started))) is not None:
            started.append(item)
        late += all(item.key[1] != 1_000 + second for item in started)
        # They run at once and use the core in turns.
        for item in started:
            spent = cpu_us if item.key[1] < 1_000 else 400
            used_us += spent if spent > 400 else 0
            queue.record_cpu(item.key, spent, Instant(now + SECOND // 2))
        for item in started:
            queue.end(item)
        now += SECOND
    assert late == 0
    assert used_us <= 0.2 * (now - REST_US_MOST) + 2 * COSTLY_CPU_US


def test_one_that_was_alone_does_not_rest_for_that_time() -> None:
    queue = RunQueue()
    queue.push(window(1, 0, 0))
    for n in range(100):
        queue.record_cpu(MonitorKey((1, n)), 500_000, Instant(n))
    queue.push(window(2, 0, 10**9))
    assert queue.startable(Instant(200), 50) == 1


def test_a_clock_that_is_set_back_does_not_make_a_rest_longer() -> None:
    queue = RunQueue()
    queue.push(window(2, 0, 10**12))
    queue.push(window(1, 0, 0))
    queue.record_cpu(MonitorKey((1, 0)), 500_000, Instant(3_600 * SECOND))
    assert not queue.startable(Instant(10), 50)
    assert queue.startable(Instant(10 + REST_US_MOST), 50)


def test_an_organization_is_alone_when_others_have_gone() -> None:
    queue = _made({1: 500_000}, 4)
    queue.push(window(2, 0, 200))
    queue.record_cpu(MonitorKey((1, 0)), 500_000, Instant(200))
    started = queue.start(Instant(200), 9)
    assert started is not None
    assert started.org == 2
    queue.end(started)
    assert not queue.startable(Instant(200), 9)
    later = Instant(300 + ALONE_AFTER_US)
    queue.push(window(1, 0, later - 200))
    assert queue.startable(later, 9) == 5


@given(st.integers(1, 60), st.integers(1, 4_000))
@settings(max_examples=20)
def test_waiting_windows_of_costly_monitors_leave_the_queue_to_others(orgs: int, each: int) -> None:
    queue = _made(dict.fromkeys(range(1, orgs + 1), 500_000) | {99: 400}, 1)
    for org in range(1, orgs + 1):
        for number in range(min(each, 10_000 // orgs)):
            if not queue.is_full_for(MonitorKey((org, number % 64))):
                queue.push(window(org, number % 64, 0))
                queue.startable(Instant(1), 0)
    assert not queue.is_full()
    assert len(queue) <= orgs * (COSTLY_WAITING + 1) + 1


@given(st.integers(MEAN_US_LEAST, 600_000))
def test_the_mean_of_equal_runs_is_their_cpu(cpu_us: int) -> None:
    queue = RunQueue()
    for _ in range(200):
        queue.record_cpu(MonitorKey((1, 0)), cpu_us, Instant(0))
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
        if queue.is_full() or queue.is_full_for(MonitorKey((org, number))):
            continue
        queue.push(window(org, 100_000 * org + number, 0))
        queue.startable(Instant(1), 0)
        accepted += 1
    return accepted


def test_an_organization_has_a_part_of_the_queue_only_if_others_need_the_rest() -> None:
    queue = RunQueue()
    assert _backlog(queue, 1, WINDOWS_WAITING - 100) == WINDOWS_WAITING - 100
    assert not queue.is_full_for(MonitorKey((1, 0)))
    queue.push(window(2, 0, 0))
    assert queue.is_full_for(MonitorKey((1, 0)))
    assert not queue.is_full_for(MonitorKey((2, 0)))
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
    assert not queue.is_full_for(MonitorKey((99, 0)))
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
        queue.end(window(1, 0, 0))
    later = sorted(due for due in dues if due > now)
    assert not queue.has_due
    if later:
        wakes_at = now + round(queue.seconds_to_next(Instant(now), 1.0) * 1e6)
        assert later[0] <= wakes_at < later[0] + START_GRID_US
        assert wakes_at % START_GRID_US == 0
        together = []
        while (item := queue.start(Instant(wakes_at), 1)) is not None:
            queue.end(window(1, 0, 0))
            together.append(item.due)
        assert together == [due for due in later if due <= wakes_at]
