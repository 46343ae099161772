"""Targets, processes and presences played through second by second: silence is never invented.

A target sends; processes receive, freeze, are killed or restarted; each renews its presence every
five seconds; every second someone judges by what is known then.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.rules.instant import SECOND, Instant
from leadline.storage.rules.presence import (
    LATE_RENEWAL_US,
    Presence,
    judged_through,
    listened,
)
from leadline.storage.rules.push import Silence, missed_deadlines
from leadline.storage.rules.schedule import Term

NOW = Instant(1_800_000_000 * SECOND)
INTERVAL_S, GRACE_S = 60, 60
PROMISE_S = INTERVAL_S + GRACE_S
TERMS = [Term(Instant(NOW - SECOND), NOW, INTERVAL_S * SECOND, SECOND, GRACE_S * SECOND)]


def at(second: float) -> Instant:
    return Instant(NOW + int(second * SECOND))


@dataclass
class Trouble:
    """From a second on, for so long: stopped in order, killed, or frozen."""

    begin: int
    lasts: int
    how: str

    def is_on(self, second: int) -> bool:
        return self.begin <= second < self.begin + self.lasts


@dataclass
class Process:
    troubles: list[Trouble]
    presences: list[Presence] = field(default_factory=list)

    def runs(self, second: int) -> bool:
        return not any(t.is_on(second) for t in self.troubles)

    def is_left_out(self, second: int) -> bool:
        on = [t for t in self.troubles if t.is_on(second)]
        return any(t.how == "stopped" or second - t.begin > 15 for t in on)

    def is_frozen(self, second: int) -> bool:
        return all(t.how == "frozen" for t in self.troubles if t.is_on(second))

    def live_on(self, second: int) -> None:
        """Renews when due; begins anew after a stop, or when the renewal comes too late."""
        if not self.runs(second):
            stopped = any(t.begin == second and t.how == "stopped" for t in self.troubles)
            if stopped and self.presences:
                last = self.presences[-1]
                # In order: the last renewal is made on the way out.
                through = (
                    at(second) if at(second) - last.through <= LATE_RENEWAL_US else last.through
                )
                self.presences[-1] = Presence(last.from_, through, ended=True)
            return
        restarted = any(t.begin + t.lasts == second and t.how != "frozen" for t in self.troubles)
        last_one = self.presences[-1] if self.presences else None
        if last_one is None or last_one.ended or restarted or not last_one.is_live(at(second)):
            self.presences.append(Presence(at(second), at(second)))
        elif second % 5 == 0:
            self.presences[-1] = Presence(last_one.from_, at(second))


@dataclass
class World:
    processes: list[Process]
    beats: set[int]
    pushed: dict[int, Process] = field(default_factory=dict)
    silence: Silence | None = None
    failures: list[Instant] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def play(self, seconds: int) -> None:
        for second in range(seconds):
            for process in self.processes:
                process.live_on(second)
            self.deliver(second)
            known = [p for process in self.processes for p in process.presences]
            horizon = judged_through(known, at(second))
            self.fold(known, at(second), horizon)
            if not self.waiting and horizon is not None:
                self.judge(known, at(second), min(horizon, at(second)))

    def deliver(self, second: int) -> None:
        """A balancer leaves out a process that stopped in order, or is dead for 15 seconds; what
        it sends to one that just died is lost, and what a frozen one was sent it reads when it
        thaws, if it does so before the sender gives up."""
        asked = [p for p in self.processes if not p.is_left_out(second)]
        if second in self.beats and asked:
            self.pushed[second] = asked[second % len(asked)]
        for beat, process in list(self.pushed.items()):
            if process.runs(second):
                self.waiting.append(second)
                self.received.append(second)
            if process.runs(second) or not process.is_frozen(second) or second - beat > 15:
                del self.pushed[beat]

    def fold(self, known: list[Presence], now: Instant, horizon: Instant | None) -> None:
        """A heartbeat is folded once all deadlines before it can be judged."""
        left: list[int] = []
        for beat in self.waiting:
            first = self.silence is None or at(beat) <= self.silence.since + PROMISE_S * SECOND
            if left or not (first or (horizon is not None and horizon >= at(beat) - 1)):
                left.append(beat)
                continue
            if not first:
                self.judge(known, now, Instant(at(beat) - 1))
            self.silence = Silence(at(beat))
        self.waiting = left

    def judge(self, known: list[Presence], now: Instant, through: Instant) -> None:
        if self.silence is None:
            return
        found = missed_deadlines(self.silence, TERMS, [], listened(known, now), through)
        if found:
            self.failures += found
            self.silence = Silence(self.silence.since, found[-1])


troubles = st.lists(
    st.builds(
        Trouble,
        st.integers(30, 800),
        st.integers(1, 200),
        st.sampled_from(["stopped", "killed", "frozen"]),
    ),
    max_size=2,
)


@given(troubles, st.lists(st.integers(0, 2), min_size=20, max_size=20), st.integers(1, 2))
def test_a_target_that_keeps_its_promise_is_never_called_silent(
    ours: list[Trouble], jitter: list[int], processes: int
) -> None:
    """Whatever one of our processes goes through twice: three stretches between what was lost
    hold less than the two promises of listening after which silence is believed."""
    beats = {10 + number * INTERVAL_S + late for number, late in enumerate(jitter)}
    world = World([Process(ours), *[Process([]) for _ in range(processes - 1)]], beats)
    world.play(1_150)
    assert world.failures == []


@given(troubles, st.integers(1, 2), st.integers(100, 400))
def test_a_target_that_falls_silent_is_called_so_once_two_promises_were_listened_to(
    ours: list[Trouble], processes: int, last: int
) -> None:
    beats = set(range(10, last, INTERVAL_S))
    world = World([Process(ours), *[Process([]) for _ in range(processes - 1)]], beats)
    world.play(2_400)
    assert world.failures
    final = max(world.received)
    known = [p for process in world.processes for p in process.presences]
    heard = listened(known, at(2_400))
    assert world.failures[0] >= at(min(world.received) + PROMISE_S)
    # The first failure after the last heartbeat comes with two promises listened to, at the latest.
    late = next(f for f in world.failures if f > at(final))
    listened_us = sum(
        max(0, min(s.until, late) - max(s.from_, at(final))) for s in heard if s.from_ < late
    )
    assert listened_us <= 2 * PROMISE_S * SECOND
    if not any(t.begin + t.lasts + 15 >= final for t in ours):
        assert late == at(final + PROMISE_S)


@given(troubles, troubles, st.sets(st.integers(10, 900), max_size=12))
def test_what_was_judged_at_the_time_is_what_hindsight_says(
    ours: list[Trouble], theirs: list[Trouble], beats: set[int]
) -> None:
    world = World([Process(ours), Process(theirs)], beats)
    world.play(1_000)
    known = [p for process in world.processes for p in process.presences]
    heard = listened(known, at(1_000))
    horizon = judged_through(known, at(999))
    settled = [beat for beat in world.received if beat not in world.waiting]
    hindsight: list[Instant] = []
    for beat, following in pairwise([*settled, None]):
        assert beat is not None
        # Nobody listens at the end, or heartbeats still wait: then it is told up to what was told.
        through = max(world.failures, default=NOW) if horizon is None else horizon
        if following is not None:
            through = Instant(at(following) - 1)
        elif world.waiting:
            through = max(world.failures, default=NOW)
        hindsight += missed_deadlines(Silence(at(beat)), TERMS, [], heard, through)
    assert world.failures == hindsight
