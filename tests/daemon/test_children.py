"""The declared children of the daemon and of the agent: one list each, in one order."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leadline.daemon.agent import agent_main
from leadline.daemon.config.roles import PARTS, DaemonPart, ProcessRole
from leadline.daemon.process import children
from leadline.daemon.process.loop_runner import run_loop
from leadline.daemon.runtime.supervisor import Child
from leadline.daemon.runtime.wake_event import WakeEvent

LISTS: list[Any] = [
    pytest.param(children.CHILDREN, children.STOP_ORDER, id="daemon"),
    pytest.param(agent_main.CHILDREN, agent_main.STOP_ORDER, id="agent"),
]


@pytest.mark.parametrize(("declared", "stop_order"), LISTS)
def test_children_stop_in_the_reverse_order_of_their_start(
    declared: tuple[Child[Any], ...], stop_order: tuple[Any, ...]
) -> None:
    ranks = [stop_order.index(child.phase) for child in declared]
    assert ranks == sorted(ranks, reverse=True)
    assert set(ranks) == set(range(len(stop_order)))


@pytest.mark.parametrize(("declared", "stop_order"), LISTS)
def test_names_are_unique_and_only_phases_with_a_bound_wait(
    declared: tuple[Child[Any], ...], stop_order: tuple[Any, ...]
) -> None:
    names = [child.name for child in declared]
    assert len(set(names)) == len(names)
    for child in declared:
        assert (child.close is not None) == (child.phase.seconds > 0), child.name


def test_every_part_of_a_role_has_a_child() -> None:
    parts = {child.part for child in children.CHILDREN if child.part}
    assert parts == set(DaemonPart) == set().union(*PARTS.values())


def test_the_http_app_ticker_leaser_dispatcher_and_puller_have_a_limiter() -> None:
    limited = {child.part for child in children.CHILDREN if child.limiter is not None}
    assert limited == {
        DaemonPart.HTTP,
        DaemonPart.OPS,
        DaemonPart.TICKER,
        DaemonPart.LEASER,
        DaemonPart.DISPATCHER,
        DaemonPart.PROBER,
    }
    assert {child.name for child in agent_main.CHILDREN if child.limiter} == {
        "runs",
        "claim",
        "tests",
    }


def test_a_worker_runs_probes_and_keeps_no_schedule() -> None:
    parts = PARTS[ProcessRole.WORKER]
    names = [one.name for one in children.CHILDREN if not one.part or one.part in parts]
    assert names == [
        "postgres",
        "lag",
        "notices",
        "attendance",
        "recorder",
        "runs",
        "canaries",
        "prober",
        "dispatcher",
        "key_checker",
        "due_work",
        "watchdog",
        "ops",
    ]


async def test_a_pass_of_a_loop_holds_a_token_of_its_limiter(autojump_clock: MockClock) -> None:
    limiter, held = trio.CapacityLimiter(1), []

    async def pass_once() -> None:
        held.append(limiter.borrowed_tokens)

    with trio.move_on_after(2.5):
        await run_loop("loop", pass_once, 1.0, lambda _: None, wake=WakeEvent(), limiter=limiter)
    assert held == [1, 1, 1]
    assert limiter.borrowed_tokens == 0
