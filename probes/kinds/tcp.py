"""TCP probe: without conditions a connection is up. Conditions can read the response to a text."""

import trio

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.failure import TargetFailure
from ..check.monitor_spec import BODY_LONGEST, Field, FieldType, MonitorType, Spec, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import read_host_port
from ..net.egress import Egress
from ..net.resolver import Family
from .condition_worker import evaluate_conditions

RECEIVED_BYTES_MOST = 64 * 1024
# A peer that has sent data and then pauses for this long has finished.
QUIET_SECONDS = 1.0
# Conditions are evaluated after each piece. This limit bounds the work for a slow peer.
TRIES_MOST = 64

SPEC = Spec(
    type=MonitorType.TCP,
    help="Connects; can send a text and evaluate the conditions on the response.",
    target=TargetForm.HOST_PORT,
    fields=(
        Field(
            name="send",
            type=FieldType.TEXT,
            help="Text sent after connecting, unchanged.",
            multiline=True,
            longest=BODY_LONGEST,
        ),
        Field(
            name="ip_family",
            type=FieldType.CHOICE,
            help="Address family to connect to.",
            default=Family.ANY.value,
            choices=tuple(Family),
        ),
    ),
    placeholders=frozenset({"CONNECTED", "RESPONSE_TIME", "IP", "BODY"}),
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    host, port = read_host_port(check.target)
    family = Family(check.text("ip_family") or Family.ANY)
    connection = await reach.dial(host, port, watch, family)
    facts = ProbeValues(connected=True, ip=connection.address)
    try:
        send = check.text("send")
        if send:
            await connection.stream.send_all(send.encode())
        if check.wants("BODY"):
            facts.body = await _listen(connection.stream, check, facts, watch, reach)
    except trio.BrokenResourceError as error:
        raise TargetFailure(FailureClass.CONNECT_ERROR) from error
    finally:
        connection.stream.socket.close()
    return Observation(facts)


async def _listen(
    stream: trio.SocketStream, check: Check, facts: ProbeValues, watch: Stopwatch, reach: Egress
) -> str:
    """Returns the text received until the conditions were true, or the peer closed or paused."""
    received = b""
    tries = 0
    watch.begin(ProbePhase.FIRST_BYTE)
    while True:
        patience = QUIET_SECONDS if received else float("inf")
        with trio.move_on_after(patience) as quiet:
            piece = await stream.receive_some(RECEIVED_BYTES_MOST)
        watch.done()
        if quiet.cancelled_caught or not piece:
            break
        received += piece
        if len(received) > RECEIVED_BYTES_MOST:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
        tries += 1
        if tries <= TRIES_MOST and await _hold(check, facts, received, watch, reach):
            break
    return received.decode("utf-8", "replace")


async def _hold(
    check: Check, facts: ProbeValues, received: bytes, watch: Stopwatch, reach: Egress
) -> bool:
    tried = ProbeValues(
        connected=True,
        ip=facts.ip,
        response_time_ms=watch.elapsed_ms(),
        body=received.decode("utf-8", "replace"),
    )
    return await evaluate_conditions(check.conditions, tried, reach)
