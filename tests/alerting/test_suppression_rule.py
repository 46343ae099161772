"""Suppression of outages, compared with the guarantees of alerting over random histories."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.suppression import (
    TELL,
    Judgement,
    MonitorCondition,
    Suppression,
    SuppressionReason,
    Upstream,
    decide_suppression,
)
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import MonitorKey

ME, CAUSE, MEMBER = MonitorKey((1, 1)), MonitorKey((1, 2)), MonitorKey((1, 3))
T = Instant(1_000 * SECOND)


def own(**given: object) -> MonitorCondition:
    usual = MonitorCondition(
        key=ME,
        enabled=True,
        in_maintenance=False,
        is_down=True,
        probed=True,
        last_at=T,
        timeout_us=10 * SECOND,
    )
    return replace(usual, **given)  # type: ignore[arg-type]


def cause(**given: object) -> Upstream:
    usual = Upstream(
        key=CAUSE,
        counts=True,
        failing=False,
        in_maintenance=False,
        probed=True,
        last_at=Instant(T + SECOND),
        timeout_us=20 * SECOND,
    )
    return replace(usual, **given)  # type: ignore[arg-type]


def test_an_outage_without_dependencies_is_announced_immediately() -> None:
    assert decide_suppression(own(), [], None, T) == TELL


def test_a_dependency_that_is_up_after_the_failure_is_no_cause() -> None:
    assert decide_suppression(own(), [cause()], None, T) == TELL


@pytest.mark.parametrize(
    ("facts", "by"),
    [
        ({"enabled": False}, SuppressionReason.PAUSED),
        ({"in_maintenance": True}, SuppressionReason.MAINTENANCE),
        ({"is_down": False}, SuppressionReason.UNKNOWN),
    ],
)
def test_only_a_monitor_known_to_be_down_is_announced(
    facts: dict[str, object], by: SuppressionReason
) -> None:
    assert decide_suppression(own(**facts), [], None, T) == Judgement(Suppression(by))


@pytest.mark.parametrize("facts", [{"failing": True}, {"in_maintenance": True}])
def test_a_cause_suppresses(facts: dict[str, object]) -> None:
    assert decide_suppression(own(), [cause(**facts)], None, T) == Judgement(
        Suppression(SuppressionReason.DEPENDENCY)
    )


def test_a_child_of_a_composite_suppresses_only_through_it() -> None:
    failing = cause(key=MEMBER, counts=False, failing=True)
    composite = cause(probed=False, last_at=None)
    assert decide_suppression(own(), [composite, failing], None, T) == TELL


def test_a_dependency_that_is_not_probed_suppresses_nothing() -> None:
    assert decide_suppression(own(), [cause(probed=False, last_at=None)], None, T) == TELL


def test_an_onset_awaits_a_recheck_for_its_timeout_plus_5_seconds() -> None:
    found = decide_suppression(own(), [cause(last_at=Instant(T - 1))], None, T)
    until = Instant(T + 25 * SECOND)
    assert found == Judgement(Suppression(SuppressionReason.WAITING, T, until), (CAUSE,))
    still = decide_suppression(own(), [cause(last_at=None)], found.hold, Instant(until - 1))
    assert still == Judgement(found.hold)
    assert decide_suppression(own(), [cause(last_at=None)], found.hold, until) == TELL


def test_further_failures_do_not_extend_the_wait() -> None:
    hold = Suppression(SuppressionReason.WAITING, T, Instant(T + 25 * SECOND))
    later = own(last_at=Instant(T + 9 * SECOND))
    assert (
        decide_suppression(later, [cause(last_at=Instant(T + SECOND))], hold, Instant(T + SECOND))
        == TELL
    )


def test_an_unsettled_composite_is_awaited() -> None:
    composite = cause(probed=False, last_at=T, unsettled=True)
    found = decide_suppression(own(), [composite], None, T)
    assert found == Judgement(Suppression(SuppressionReason.WAITING, T, Instant(T + 5 * SECOND)))
    assert decide_suppression(own(), [replace(composite, unsettled=False)], found.hold, T) == TELL


def test_after_suppression_the_monitor_is_rechecked_first() -> None:
    silent = Suppression(SuppressionReason.DEPENDENCY)
    found = decide_suppression(own(), [cause()], silent, T)
    assert found == Judgement(
        Suppression(SuppressionReason.RECHECKING, T, Instant(T + 15 * SECOND)), (ME,)
    )
    older = own(last_at=Instant(T - 1))
    assert decide_suppression(older, [cause()], found.hold, Instant(T + SECOND)) == Judgement(
        found.hold
    )
    assert decide_suppression(own(last_at=T), [cause()], found.hold, Instant(T + SECOND)) == TELL
    assert decide_suppression(older, [cause()], found.hold, Instant(T + 15 * SECOND)) == TELL


@dataclass
class World:
    """Two monitors at one-second steps; one depends on the other, and a check takes no time."""

    me_down: bool = True
    cause_down: bool = False
    cause_paused: bool = False
    in_maintenance: bool = False
    me_at: Instant = T
    cause_at: Instant | None = None
    cause_failed: bool = False
    now: Instant = T


_STEPS = st.lists(
    st.sampled_from(
        ["tick", "tick", "tick", "cause", "cause_fails", "cause_well", "pause", "maintain", "me"]
    ),
    min_size=10,
    max_size=80,
)


@given(_STEPS, st.booleans(), st.integers(1, 8), st.integers(1, 8))
def test_no_announcement_beside_a_cause_and_one_in_the_end(
    steps: list[str], answers: bool, mine: int, its: int
) -> None:
    world, hold = World(), None
    asked_at: dict[MonitorKey, Instant] = {}
    silent_since_told = False
    quiet_since: Instant | None = None
    for step in [*steps, *["tick"] * 40]:
        _go(world, step)
        for key, at in list(asked_at.items()):
            # A requested check is answered after two seconds, or never.
            if answers and world.now >= at + 2 * SECOND:
                _evaluate(world, key)
                del asked_at[key]
        upstream = _cause_of(world, its)
        found = decide_suppression(_me_of(world, mine), [upstream], hold, world.now)
        explained = upstream.failing or upstream.in_maintenance
        if explained:
            quiet_since, silent_since_told = None, True
            assert found.hold is not None
            assert found.hold.by is SuppressionReason.DEPENDENCY
        else:
            quiet_since = quiet_since if quiet_since is not None else world.now
        for key in found.ask:
            asked_at.setdefault(key, world.now)
        if found.hold is None:
            assert not explained
            since = quiet_since if quiet_since is not None else world.now
            waited = world.now - since
            if not answers and silent_since_told:
                assert world.me_at >= since or waited >= (min(mine, its) + 5) * SECOND
            break
        hold = found.hold
    else:
        assert explained


def _go(world: World, step: str) -> None:
    match step:
        case "tick":
            world.now = Instant(world.now + SECOND)
        case "cause":
            _evaluate(world, CAUSE)
        case "cause_fails":
            world.cause_down = True
            _evaluate(world, CAUSE)
        case "cause_well":
            world.cause_down = False
            _evaluate(world, CAUSE)
        case "pause":
            world.cause_paused = not world.cause_paused
        case "maintain":
            world.in_maintenance = not world.in_maintenance
        case "me":
            _evaluate(world, ME)


def _evaluate(world: World, key: MonitorKey) -> None:
    if key == ME:
        world.me_at = world.now
    elif not world.cause_paused:
        world.cause_at, world.cause_failed = world.now, world.cause_down


def _me_of(world: World, seconds: int) -> MonitorCondition:
    return own(last_at=world.me_at, timeout_us=seconds * SECOND)


def _cause_of(world: World, seconds: int) -> Upstream:
    known = not world.cause_paused
    return cause(
        failing=known and world.cause_failed,
        in_maintenance=world.in_maintenance,
        probed=known and not world.in_maintenance,
        last_at=world.cause_at,
        timeout_us=seconds * SECOND,
    )
