"""CPU of the event loop, divided between the organizations whose probes use it.

In one pass of the event loop, probes use at most a slice. A step beyond the slice waits for a later
pass, and the organization that has used the least CPU comes first. A target that is costly to read
therefore delays the probes of its own organization.
"""

from collections import deque
from time import perf_counter_ns, thread_time_ns
from typing import Final, Generic, TypeVar

import trio

# CPU of all probes in one pass, ns. If its rest uses more, probes get as much, up to the second
# value.
SLICE_NS: Final = 3_000_000
SLICE_NS_MOST: Final = 100_000_000
# Assumed cost of a step whose run has made none, ns.
STEP_NS: Final = 200_000

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Queue of steps that returns the organization with the least CPU first.

    Within an organization the order is that of arrival. Use counts from the first step that waits:
    while nothing waits, nobody is delayed. An organization that joins later begins with the least
    use of those that wait, so that it cannot hold the loop for the time in which it was idle.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, deque[T]] = {}
        self._used_ns: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, org: int, step: T) -> None:
        if org not in self._waiting:
            least = min((self._used_ns[other] for other in self._waiting), default=0)
            self._used_ns[org] = max(self._used_ns.get(org, 0), least)
            self._waiting[org] = deque()
        self._waiting[org].append(step)
        self._count += 1

    def pop(self) -> T:
        """Returns the next step. Raises: `ValueError` if none waits."""
        org = min(self._waiting, key=lambda waiting: self._used_ns[waiting])
        step = self._waiting[org].popleft()
        self._settle(org)
        return step

    def remove(self, org: int, step: T) -> None:
        """Removes a step that waits. Raises: `ValueError` if it does not."""
        waiting = self._waiting.get(org)
        if waiting is None:
            raise ValueError("the organization has no step that waits")
        waiting.remove(step)
        self._settle(org)

    def charge(self, org: int, ns: int) -> None:
        """Adds CPU that an organization used. Has no effect while nothing waits."""
        if self._count:
            self._used_ns[org] = self._used_ns.get(org, 0) + ns

    def _settle(self, org: int) -> None:
        self._count -= 1
        if not self._waiting[org]:
            del self._waiting[org]
        if not self._count:
            self._used_ns.clear()


class _Turn:
    """Step that waits. `cost_ns` is the cost that is assumed until the step has ended."""

    __slots__ = ("cost_ns", "org", "task")

    def __init__(self, org: int, cost_ns: int) -> None:
        self.org = org
        self.cost_ns = cost_ns
        self.task = trio.lowlevel.current_task()


class CpuShare(trio.abc.Instrument):
    """Shares of one event loop. One value per process.

    Invariants: a step waits only while probes have used the slice of the pass or other steps wait;
    each pass admits at least one step that waits.
    """

    def __init__(self) -> None:
        self._loop: trio.lowlevel.TrioToken | None = None
        self._sampled_ns: int = 0
        self._forget()

    def _forget(self) -> None:
        self._queue: FairQueue[_Turn] = FairQueue()
        self._slice_ns = SLICE_NS
        # CPU of probes in this pass, and the time when it began.
        self._pass_ns = 0
        self._began_ns = perf_counter_ns()
        # CPU of the thread at the end of the last long pass.
        self._cpu_ns = thread_time_ns()

    @property
    def is_full(self) -> bool:
        """Returns whether the next step has to wait, see `turn`."""
        return self._pass_ns >= self._slice_ns or len(self._queue) > 0

    def join(self) -> None:
        """Observes the passes of the running event loop. Call it before the first step of a run."""
        loop = trio.lowlevel.current_trio_token()
        if loop is not self._loop:
            # Nothing of an event loop that has ended is left.
            self._forget()
            self._loop = loop
            trio.lowlevel.add_instrument(self)

    def sample_cpu(self) -> int:
        """Returns the CPU of this thread since the last sample, in ns. Costs a system call."""
        now_ns = thread_time_ns()
        spent_ns = now_ns - self._sampled_ns
        self._sampled_ns = now_ns
        return spent_ns

    def charge(self, org: int, ns: int, assumed_ns: int = 0) -> None:
        """Records a step. `assumed_ns` is the cost that `turn` has charged for it."""
        self._pass_ns += ns
        if self._queue:
            self._queue.charge(org, ns - assumed_ns)

    async def turn(self, org: int, cost_ns: int) -> None:
        """Waits until the organization may make its next step, and charges `cost_ns` for it.

        Raises: only cancellation. Then the step is not charged.
        """
        turn = _Turn(org, cost_ns)
        if not self._queue:
            trio.lowlevel.spawn_system_task(self._admit, name="probe steps")
        self._queue.push(org, turn)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._queue.remove(org, turn)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def _admit(self) -> None:
        """Admits the steps of each pass until none waits."""
        while self._queue:
            left_ns = self._slice_ns
            while self._queue and left_ns > 0:
                turn = self._queue.pop()
                self._queue.charge(turn.org, turn.cost_ns)
                left_ns -= turn.cost_ns
                trio.lowlevel.reschedule(turn.task)
            await trio.lowlevel.cancel_shielded_checkpoint()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        elapsed_ns = perf_counter_ns() - self._began_ns
        if elapsed_ns <= SLICE_NS:
            # The clock of the CPU costs a system call, and most passes are short.
            self._slice_ns = SLICE_NS
            return
        # Elapsed time alone would count what other processes of a busy host use, and so give probes
        # ever longer passes. The CPU is also that of short passes since the last long one.
        cpu_ns = thread_time_ns()
        rest_ns = min(elapsed_ns, cpu_ns - self._cpu_ns) - self._pass_ns
        self._cpu_ns = cpu_ns
        self._slice_ns = max(SLICE_NS, min(rest_ns, SLICE_NS_MOST))

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        self._began_ns = perf_counter_ns()
        self._pass_ns = 0
