"""Every monitor type against every misbehaving peer: the run ends in time, with an expected failure
class, and leaves nothing open.

One table has the types and one the peers. The tests of a type cover its particular peers.
"""

import os
import random
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.registry import FILES, spec_of
from leadline.probes.check.result import FailureClass, RunOutcome
from tests.support.peers.kind_forms import (
    BODY,
    CONDITION,
    CONNECT_ERROR,
    FORMS,
    HEAD,
    HOST,
    PROTOCOL,
    TIMEOUT,
    TLS,
    TOO_LARGE,
    Form,
    Peer,
    Stream,
    asked,
    classes_of_an_end,
    judged,
    leaving,
    otherwise,
    playing,
    read_request,
    run_form,
)
from tests.support.peers.leaks import cancelled_often, nothing_left_behind
from tests.support.peers.servers import Prober, answer, gzip_bomb
from tests.support.processes.ports import full_port, refusing_port

# The number of concurrent runs; more would measure the machine instead of the deadline.
AT_ONCE = 8
ENDLESS_AT_ONCE = 2
ASKED_MOST = 3


# One type opens no stream to a target, the other reaches no peer of this network: their own tests
# have peers of another sort.
APART = {"icmp", "async_canary", "domain"}


def test_every_probed_type_has_a_form() -> None:
    probed = {kind for kind in FILES if (spec := spec_of(kind)) is not None and spec.probed}
    assert probed == {form.kind for form in FORMS} | APART


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_each_form_is_a_valid_definition(form: Form) -> None:
    target, config = asked(form, 4_321)
    refs = {f"{key}_ref": "x" for key in form.secrets}
    assert validate(form.kind, target, None, config | refs, form.conditions) == []


# Peers.


async def silent(form: Form, stream: Stream) -> None:
    while await stream.receive_some():
        pass


async def dripping(form: Form, stream: Stream) -> None:
    await stream.send_all(form.opening)
    while True:
        await stream.send_all(form.more)
        await trio.sleep(0.05)


async def endless(form: Form, stream: Stream) -> None:
    await stream.send_all(form.opening)
    piece = form.more * (16_384 // len(form.more))
    while True:
        await stream.send_all(piece)


async def garbage(form: Form, stream: Stream) -> None:
    await stream.send_all(random.Random(7).randbytes(4_096))
    await silent(form, stream)


async def garbage_and_an_end(form: Form, stream: Stream) -> None:
    await read_request(form, stream)
    await stream.send_all(random.Random(7).randbytes(4_096))
    await stream.aclose()


async def http_400(form: Form, stream: Stream) -> None:
    """The peer stays connected after its answer, as some servers do."""
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await silent(form, stream)


async def breaking_off(form: Form, stream: Stream) -> None:
    await read_request(form, stream)
    await stream.send_all(form.opening)


async def resetting(form: Form, stream: Stream) -> None:
    await read_request(form, stream)
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    linger = struct.pack("ii", 1, 0)
    plain.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
    plain.socket.close()


async def bomb(form: Form, stream: Stream) -> None:
    await read_request(form, stream)
    await stream.send_all(answer(gzip_bomb(), "200 OK", "content-encoding: gzip"))
    await silent(form, stream)


# Expected failure classes.


def classes_of_silence(form: Form) -> set[FailureClass]:
    return {TIMEOUT, *form.also}


def classes_of_slow_bytes(form: Form) -> set[FailureClass]:
    return {TIMEOUT, *form.also} | ({TLS} if form.begins_with_tls else set())


def classes_of_an_endless_answer(form: Form) -> set[FailureClass]:
    # The class depends on the first exceeded limit: of a line, of a packet, of the whole answer, or
    # of the CPU for it.
    return {TOO_LARGE, FailureClass.RESPONSE_TOO_EXPENSIVE, TIMEOUT, PROTOCOL, TLS}


def classes_of_garbage(form: Form) -> set[FailureClass]:
    # The bytes can be the beginning of a valid message.
    return otherwise(form, PROTOCOL, TLS, TOO_LARGE, TIMEOUT)


def classes_of_garbage_and_an_end(form: Form) -> set[FailureClass]:
    return otherwise(form, PROTOCOL, TLS, TOO_LARGE) - ({TIMEOUT} if form.kind != "tcp" else set())


def classes_of_http(form: Form) -> set[FailureClass]:
    if form.opening in (HEAD, BODY) or form.kind == "websocket":
        # If there are conditions, only they decide.
        return {CONDITION if form.conditions else FailureClass.HTTP_STATUS}
    return otherwise(form, PROTOCOL, TLS, TOO_LARGE)


def classes_of_an_early_end(form: Form) -> set[FailureClass]:
    # A body without a length ends with the connection: it is incomplete and is no JSON.
    return otherwise(form, PROTOCOL, CONNECT_ERROR, CONDITION)


def classes_of_a_reset(form: Form) -> set[FailureClass]:
    return otherwise(form, CONNECT_ERROR)


PEERS: list[tuple[Peer, Callable[[Form], set[FailureClass]]]] = [
    (silent, classes_of_silence),
    (dripping, classes_of_slow_bytes),
    (endless, classes_of_an_endless_answer),
    (garbage, classes_of_garbage),
    (garbage_and_an_end, classes_of_garbage_and_an_end),
    (http_400, classes_of_http),
    (leaving, classes_of_an_end),
    (breaking_off, classes_of_an_early_end),
    (resetting, classes_of_a_reset),
]


@pytest.mark.parametrize(("peer", "told"), PEERS, ids=[peer.__name__ for peer, _ in PEERS])
async def test_every_type_reports_an_expected_class_in_time(
    prober: Prober,
    authority: trustme.CA,
    peer: Peer,
    told: Callable[[Form], set[FailureClass]],
) -> None:
    places = trio.CapacityLimiter(ENDLESS_AT_ONCE if peer is endless else AT_ONCE)
    doubted: list[Form] = []

    async def judge(form: Form) -> list[str]:
        async with playing(form, peer, authority) as port:
            return await judged(prober, form, port, told(form))

    async def judge_beside_others(form: Form) -> None:
        async with places:
            if await judge(form):
                doubted.append(form)

    async with trio.open_nursery() as nursery:
        for form in FORMS:
            nursery.start_soon(judge_beside_others, form)
    # A shared processor can delay a run by more than a second: a doubtful run is repeated alone,
    # and a real error occurs each time.
    wrong: list[str] = []
    for _ in range(ASKED_MOST):
        judged_alone = [(form, await judge(form)) for form in doubted]
        wrong = [line for _, lines in judged_alone for line in lines]
        doubted = [form for form, lines in judged_alone if lines]
    assert not wrong, "\n".join(wrong)


async def test_a_compression_bomb_is_too_large(prober: Prober, authority: trustme.CA) -> None:
    wrong: list[str] = []
    for form in FORMS:
        if form.reads_bodies:
            async with playing(form, bomb, authority) as port:
                wrong += await judged(prober, form, port, {TOO_LARGE})
    assert not wrong, "\n".join(wrong)


async def test_every_type_reports_a_closed_port(prober: Prober) -> None:
    wrong: list[str] = []
    with refusing_port(HOST) as port:
        for form in FORMS:
            wrong += await judged(prober, form, port, {FailureClass.CONNECT_REFUSED})
    assert not wrong, "\n".join(wrong)


async def test_every_type_reports_a_connect_timeout(prober: Prober) -> None:
    wrong: list[str] = []

    async def judge(form: Form, port: int) -> None:
        wrong.extend(await judged(prober, form, port, {FailureClass.CONNECT_TIMEOUT}))

    with full_port(HOST) as port:
        async with trio.open_nursery() as nursery:
            for form in FORMS:
                nursery.start_soon(judge, form, port)
    assert not wrong, "\n".join(wrong)


KNOW_CONNECTED = [
    replace(form, conditions=("[CONNECTED] == false",))
    for form in FORMS
    if (spec := spec_of(form.kind)) is not None and "CONNECTED" in spec.placeholders
]


async def test_a_condition_on_no_connection_is_up_without_one(
    prober: Prober, authority: trustme.CA
) -> None:
    assert len(KNOW_CONNECTED) > len(FORMS) / 2
    wrong: list[str] = []

    async def judge(form: Form, closed: int, hole: int) -> None:
        for port in (closed, hole):
            result = await run_form(prober, form, port)
            if result.outcome is not RunOutcome.UP:
                wrong.append(f"{form}: {result.outcome} {result.msg}")
        # A peer that answers, even with a reset, is connected.
        async with playing(form, resetting, authority) as port:
            result = await run_form(prober, form, port)
            if result.outcome is not RunOutcome.DOWN:
                wrong.append(f"{form}: {result.outcome} though there was one")

    with refusing_port(HOST) as closed, full_port(HOST) as hole:
        async with trio.open_nursery() as nursery:
            for form in KNOW_CONNECTED:
                nursery.start_soon(judge, form, closed, hole)
    assert not wrong, "\n".join(wrong)


def in_use() -> tuple[int, int]:
    """Returns the numbers of open descriptors and of living tasks."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    return len(os.listdir("/proc/self/fd")), tasks


async def test_runs_of_every_type_cancelled_at_any_instant_leave_nothing(
    prober: Prober, authority: trustme.CA
) -> None:
    async def cancel_often(form: Form, peer: Peer) -> None:
        async with playing(form, peer, authority) as port:
            await cancelled_often(lambda: run_form(prober, form, port))

    async def all_of(peer: Peer) -> None:
        async with trio.open_nursery() as nursery:
            for form in FORMS:
                nursery.start_soon(cancel_often, form, peer)

    # A first run, so that objects that stay (contexts, the thread of asyncio) exist.
    for form in FORMS:
        async with playing(form, leaving, authority) as port:
            await run_form(prober, form, port)
    with nothing_left_behind():
        before = in_use()
        await all_of(dripping)
        # Peers notice late that their client has disconnected. A leak would stay until the limit.
        with trio.move_on_after(30):
            while in_use() != before:  # noqa: ASYNC110 - a closed connection sets no event
                await trio.sleep(0.01)
