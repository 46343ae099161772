"""ICMP probe: the share of lost echoes is the verdict, the mean time the latency.

Echoes without a reply shortly before the deadline are lost. The verdict counts them, so that a
tolerated loss is up although some replies never arrive.
"""

from dataclasses import dataclass, field
from time import perf_counter_ns

import trio

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.failure import TargetFailure
from ..check.monitor_spec import Field, FieldType, MonitorType, Spec, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..net.egress import Egress
from ..net.icmp_echo import Echo

COUNT_MOST = 20
LOSS_PERCENT_MOST = 99
# Delay between two echoes. It is shorter if the deadline is near: half of the time is for replies.
PACE_SECONDS = 0.2
SENDING_SHARE = 0.5
# After the first reply, an echo is lost if it is slower than this time and this factor.
LINGER_SECONDS = 1.0
LINGER_TIMES = 3
# The verdict is computed this long before the deadline.
DECIDE_SECONDS = 0.05

SPEC = Spec(
    type=MonitorType.ICMP,
    help="Sends echoes. Without conditions no more than max_loss of them lost is up.",
    target=TargetForm.HOST,
    fields=(
        Field(
            name="count",
            type=FieldType.INTEGER,
            help="Number of echo requests, at most 0.2 s apart.",
            default=1,
            least=1,
            most=COUNT_MOST,
        ),
        Field(
            name="max_loss",
            type=FieldType.INTEGER,
            help="The percentage of echoes that may be lost.",
            default=0,
            least=0,
            most=LOSS_PERCENT_MOST,
        ),
    ),
    placeholders=frozenset({"RESULT", "CONNECTED", "RESPONSE_TIME", "IP"}),
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    count, max_loss = _number(check, "count") or 1, _number(check, "max_loss")
    with await reach.dial_echo(check.host, watch) as echo:
        watch.begin(ProbePhase.FIRST_BYTE)
        tally = await _converse(echo, count, watch)
    lost = count - len(tally.round_trips_us)
    failure = None
    if 100 * lost > max_loss * count:
        failure = FailureClass.CONNECT_ERROR if tally.refused else FailureClass.TIMEOUT
    # A condition on the loss may expect a loss that is a failure otherwise.
    if failure and not (check.wants("RESULT") or check.wants("CONNECTED")):
        raise TargetFailure(failure)
    facts = ProbeValues(connected=lost < count, ip=echo.address, result=100 * lost / count)
    return Observation(facts, failure=failure, took_us=tally.mean_us())


@dataclass(slots=True)
class _Tally:
    """Echoes by number. Each is sent once, and counts as answered or refused at most once."""

    sent_ns: list[int] = field(default_factory=list)
    round_trips_us: dict[int, int] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)

    def note(self, answers: list[int], refused: list[int], now_ns: int) -> None:
        for number in answers:
            if number < len(self.sent_ns):
                took_us = (now_ns - self.sent_ns[number]) // 1_000
                self.round_trips_us.setdefault(number, took_us)
                self.refused.discard(number)
        known = range(len(self.sent_ns))
        self.refused.update(n for n in refused if n in known and n not in self.round_trips_us)

    @property
    def settled(self) -> int:
        return len(self.round_trips_us) + len(self.refused)

    def mean_us(self) -> int | None:
        trips = self.round_trips_us.values()
        return sum(trips) // len(trips) if trips else None


async def _converse(echo: Echo, count: int, watch: Stopwatch) -> _Tally:
    tally = _Tally()
    decide_at = trio.current_effective_deadline() - DECIDE_SECONDS
    left = decide_at - trio.current_time()
    pace = max(0.0, min(PACE_SECONDS, left * SENDING_SHARE / count))
    turn_at = trio.current_time()
    while tally.settled < count:
        now = trio.current_time()
        if len(tally.sent_ns) < count:
            if now >= turn_at:
                tally.sent_ns.append(perf_counter_ns())
                echo.send(len(tally.sent_ns) - 1)
                turn_at = now + pace
            wake_at = turn_at
        else:
            wake_at = min(decide_at, turn_at + _patience_seconds(tally))
        if now >= decide_at or (len(tally.sent_ns) == count and now >= wake_at):
            break
        try:
            with trio.move_on_at(min(wake_at, decide_at)):
                answers, refused = await echo.hear()
                tally.note(answers, refused, perf_counter_ns())
        except trio.Cancelled:  # noqa: ASYNC103
            # The event loop was late, and the deadline of the run has passed too. The loss is
            # known; a cancellation from outside is raised by the next checkpoint.
            break  # noqa: ASYNC104
        if tally.round_trips_us:
            watch.done()
    # Read replies that arrived while other tasks ran. This does not add to their time.
    tally.note(*echo.read(), perf_counter_ns())
    return tally


def _patience_seconds(tally: _Tally) -> float:
    """Returns how long to wait for replies after the last echo."""
    if not tally.round_trips_us:
        return float("inf")
    slowest_seconds = max(tally.round_trips_us.values()) / 1_000_000
    return max(LINGER_SECONDS, LINGER_TIMES * slowest_seconds)


def _number(check: Check, key: str) -> int:
    value = check.config.get(key)
    return value if isinstance(value, int) else 0
