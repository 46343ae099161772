"""Every window of a known check that falls due during a cut is run once, and the last window before
the cut if it cannot have been run and is not too late. Known checks expire."""

from collections import Counter
from dataclasses import dataclass, replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leadline.daemon.agent.job_parser import SECOND
from leadline.daemon.agent.offline_schedule import (
    CLAIMABLE_US_MOST,
    MONITORS_MOST,
    UNSEEN_US_LEAST,
    KnownCheck,
    OfflineSchedule,
)
from leadline.probes.check.cron_schedule import cron_schedule
from tests.agents.job_samples import T0, definition

# Expressions whose due instants are those of an interval from T0 on.
CRONS = {60: "* * * * *", 120: "*/2 * * * *", 3_600: "0 * * * *"}


@dataclass
class Cut:
    """A cut of the connection from `at` for `span`, the known checks, and the windows that the
    server gave out."""

    at: int
    span: int
    monitors: list[KnownCheck]
    given_ahead: list[bool]
    steps: list[int]


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    monitors = [
        definition(
            draw(st.sampled_from([5, 7, 30, 60, 119, 120, 121, 300, 3_600, 86_400])),
            anchor=T0 + draw(st.integers(-9_000, 9_000)) * SECOND + draw(st.integers(0, 999_999)),
            monitor=UUID(int=n + 1),
        )
        for n in range(draw(st.integers(1, 5)))
    ]
    crons = draw(st.lists(st.sampled_from(sorted(CRONS)), max_size=2))
    monitors += [
        replace(
            definition(seconds, monitor=UUID(int=n + 10)),
            schedule=cron_schedule(CRONS[seconds], ""),
        )
        for n, seconds in enumerate(crons)
    ]
    return Cut(
        at=T0 + draw(st.integers(0, 4_000)) * SECOND,
        span=draw(st.integers(0, 700)) * SECOND,
        monitors=monitors,
        given_ahead=[draw(st.booleans()) for _ in monitors],
        steps=draw(st.lists(st.integers(900_000, 4_900_000), min_size=1, max_size=20)),
    )


def brute_force(cut: Cut) -> Counter[tuple[UUID, int]]:
    """Written instant by instant, without any arithmetic of windows."""
    expected: Counter[tuple[UUID, int]] = Counter()
    end = cut.at + cut.span
    for monitor, is_given in zip(cut.monitors, cut.given_ahead, strict=True):
        instants = []
        at = monitor.anchor
        while at <= end:
            instants.append(at)
            at += monitor.interval
        before = [at for at in instants if at <= cut.at]
        during = [at for at in instants if cut.at < at <= end]
        claimable = min(monitor.interval, CLAIMABLE_US_MOST)
        if before and not is_given and cut.at < before[-1] + claimable:
            expected[monitor.monitor, before[-1]] += 1
        for at in during:
            expected[monitor.monitor, at] += 1
    return expected


@given(cuts())
def test_each_window_of_a_cut_is_run_once(cut: Cut) -> None:
    known, found = OfflineSchedule(), Counter[tuple[UUID, int]]()
    for monitor, is_given in zip(cut.monitors, cut.given_ahead, strict=True):
        known.learn(monitor)
        due = monitor.newest_due(cut.at)
        if is_given and due >= monitor.anchor:
            assert known.take(monitor, due, cut.at)
    at, n = cut.at, 0
    while True:
        found.update((d.monitor, due) for d, due in known.claim_due(at))
        if at == cut.at + cut.span:
            break
        at = min(at + cut.steps[n % len(cut.steps)], cut.at + cut.span)
        n += 1
    assert found == brute_force(cut)


@given(cuts())
def test_no_window_is_due_before_its_instant(cut: Cut) -> None:
    known = OfflineSchedule()
    for monitor in cut.monitors:
        known.learn(monitor)
    known.claim_due(cut.at)
    due = known.next_due(cut.at)
    assert due is not None
    assert due > cut.at
    assert known.claim_due(due - 1) == []
    assert due in {found for _, found in known.claim_due(due)}


def test_a_window_that_was_run_alone_is_not_run_again_when_the_server_gives_it() -> None:
    known, monitor = OfflineSchedule(), definition()
    known.learn(monitor)
    assert known.claim_due(T0) == [(monitor, T0)]
    assert not known.take(monitor, T0, T0 + SECOND)


def test_but_it_is_by_another_definition() -> None:
    known, monitor = OfflineSchedule(), definition(revision=1)
    known.learn(monitor)
    known.claim_due(T0)
    edited = definition(revision=2, monitor=monitor.monitor)
    known.learn(edited)
    assert known.take(edited, T0, T0 + SECOND)


def test_a_window_without_a_result_can_be_taken_again() -> None:
    known, monitor = OfflineSchedule(), definition()
    known.learn(monitor)
    assert known.take(monitor, T0, T0)
    assert not known.take(monitor, T0, T0)
    known.give_back(monitor.monitor, T0)
    assert known.take(monitor, T0, T0)
    known.give_back(monitor.monitor, T0)
    assert known.claim_due(T0 + SECOND) == [], "a failed window is tried again"


def test_an_older_definition_does_not_replace_a_newer_one() -> None:
    known, newer = OfflineSchedule(), definition(revision=3)
    known.learn(newer)
    known.learn(definition(revision=2, monitor=newer.monitor, interval_seconds=5))
    assert known.claim_due(T0) == [(newer, T0)]


def test_a_canary_is_never_run_without_the_server() -> None:
    known, canary = OfflineSchedule(), definition(kind="async_canary")
    known.learn(canary)
    assert len(known) == 0
    assert known.take(canary, T0, T0)
    assert known.next_due(T0) is None


@given(st.integers(5, 86_400), st.integers(1, 400))
def test_a_check_that_the_server_no_longer_gives_out_is_forgotten(
    interval: int, passes: int
) -> None:
    known, monitor = OfflineSchedule(), definition(interval)
    known.learn(monitor)
    longest = max(10 * interval * SECOND, UNSEEN_US_LEAST)
    step = longest // passes
    for _ in range(passes - 1):
        assert known.pass_connected(step) == 0
    assert known.pass_connected(longest - step * (passes - 1)) == 1
    assert len(known) == 0


def test_a_job_renews_it() -> None:
    known, monitor = OfflineSchedule(), definition()
    known.learn(monitor)
    for _ in range(10):
        known.pass_connected(UNSEEN_US_LEAST - 1)
        known.learn(monitor)
    assert len(known) == 1
    assert known.clear() == 1
    assert known.claim_due(T0) == []


def test_the_number_of_known_checks_is_limited() -> None:
    known = OfflineSchedule()
    for _ in range(MONITORS_MOST + 1):
        known.learn(last := definition())
    assert len(known) == MONITORS_MOST
    assert known.take(last, T0, T0)
