"""The runner of an agent charges the CPU of each run to the run's monitor."""

from uuid import uuid4

import trio

from leadline.daemon.agent.counters import AgentCounters
from leadline.daemon.agent.job_parser import own_task
from leadline.daemon.agent.job_runner import JobRunner
from leadline.daemon.agent.offline_schedule import OfflineSchedule
from leadline.daemon.agent.server_clock import ServerClock
from leadline.probes.check.cpu_share import CpuShare
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import EgressPolicy
from tests.agents.job_samples import T0, definition


class _Ledger(CpuShare):
    def __init__(self) -> None:
        super().__init__()
        self.charged: set[int] = set()

    def charge(self, org: int, ns: int, assumed_ns: int = 0) -> None:
        self.charged.add(org)
        super().charge(org, ns, assumed_ns)


class _Ring:
    """Waits for a number of results of a runner."""

    def __init__(self, results: int) -> None:
        self._missing = results
        self.is_full = trio.Event()

    def keep(self, record: bytes, lease_until: int) -> None:
        assert record
        assert lease_until == 0
        self._missing -= 1
        if not self._missing:
            self.is_full.set()


async def test_each_monitor_is_charged_for_its_runs(nursery: trio.Nursery) -> None:
    cpu, ring = _Ledger(), _Ring(4)
    reach = make_reach(EgressPolicy(allow_private=True), cpu=cpu)
    clock = ServerClock()
    clock.hear(T0, clock.count(), clock.count())
    runner = JobRunner(
        reach,
        clock,
        trio.CapacityLimiter(4),
        OfflineSchedule(),
        ring,  # type: ignore[arg-type]
        AgentCounters(),
    )
    monitors = [uuid4(), uuid4(), uuid4()]
    nursery.start_soon(reach.lag.watch)
    nursery.start_soon(runner.run)
    for number, monitor in enumerate([*monitors, monitors[0]]):
        runner.put(own_task(definition(monitor=monitor), T0, number))
    with trio.fail_after(30):
        await ring.is_full.wait()
    runner.close()
    assert cpu.charged == {monitor.int for monitor in monitors}
