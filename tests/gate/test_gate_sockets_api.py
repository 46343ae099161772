"""Rate and concurrency limits of the gate with real clients on real sockets, and clients that
disconnect before the answer.
"""

import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import trio

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.admission_control import RateLimits
from leadline.http.wire.app_context import GATE
from tests.support.app.gating import Gated, open_gated
from tests.support.app.serving import NOWHERE, call
from tests.support.app.sockets import HttpAnswer, asked, held, request, served
from tests.support.worlds.blocked import until_blocked

# The rates of the interface, and enough permits for all concurrent requests.
RATES = RateLimits(inflight_process=200, principal_per_minute=10, process_per_minute=60)


@pytest.fixture
async def limited(dsn: str, passwords: Passwords) -> AsyncIterator[Gated]:
    """A gate with the default limits."""
    async with open_gated(dsn, passwords, GATE) as made:
        yield made


@pytest.fixture
async def rated(dsn: str, passwords: Passwords) -> AsyncIterator[Gated]:
    async with open_gated(dsn, passwords, RATES) as made:
        yield made


async def tokens(gated: Gated, count: int) -> list[dict[str, str]]:
    """Returns credentials of several tokens of one user. Each token is its own principal."""
    made = []
    for number in range(count):
        body = {"name": f"t{number}", "role": "viewer"}
        path = f"/organizations/{gated.api.org}/tokens"
        answer = await call(gated.api, "POST", path, body, 201, who="org_admin")
        made.append({"Authorization": f"Bearer {answer['token']}"})
    return made


def gate(path: str, credential: dict[str, str]) -> bytes:
    return request("POST", f"/api/v1{path}/gate", credential, b"{}")


async def together(port: int, sent: list[bytes]) -> list[HttpAnswer]:
    found: list[HttpAnswer] = []

    async def ask(each: bytes) -> None:
        found.append(await asked(port, each))

    async with trio.open_nursery() as nursery:
        for each in sent:
            nursery.start_soon(ask, each)
    return found


def codes(found: list[HttpAnswer]) -> Counter[str]:
    return Counter("decided" if t.status == 200 else t.body["error"] for t in found)


async def test_concurrency_limits_and_refusals_take_no_token(limited: Gated, dsn: str) -> None:
    path = await limited.service()
    people = await tokens(limited, 5)
    inside: list[HttpAnswer] = []

    async def ask(credential: dict[str, str]) -> None:
        inside.append(await asked(port, gate(path, credential)))

    async with served(limited.api.context) as port:
        async with trio.open_nursery() as nursery, held(dsn, "gate_policies") as beside:
            for number, credential in enumerate(people[:4], 1):
                for _ in range(2):
                    nursery.start_soon(ask, credential)
                await until_blocked(beside, 2 * number)
                if number < 4:
                    again = await asked(port, gate(path, credential))
                    assert (again.status, again.body) == (429, {"error": "principal_inflight"})
                    assert again.headers["retry-after"] == "1"
            # All permits are taken, for every principal and also for reads of decisions.
            ledger = f"/api/v1{limited.project}/gate/decisions"
            read = f"{ledger}?from=2026-01-05T00:00:00Z&to=2026-01-06T00:00:00Z"
            one = f"{ledger}/{NOWHERE}"
            sent = [gate(path, people[4]), gate(path, people[0])] * 20
            sent += [request("GET", url, people[4]) for url in (read, one)]
            for found in await together(port, sent):
                assert (found.status, found.body) == (429, {"error": "process_inflight"})
                assert found.headers["retry-after"] == "1"
        # The refused requests took no token: each principal has its ten.
        left = []
        for credential in people:
            for _ in range(11):
                left.append(await asked(port, gate(path, credential)))
    assert [found.status for found in inside] == [200] * 8
    assert codes(left) == {"decided": 4 * 8 + 10, "principal_rate": 13}
    assert await limited.count() == 50


async def test_the_rate_limit_of_a_principal_and_its_retry_after(
    rated: Gated,
) -> None:
    path = await rated.service()
    one, other = await tokens(rated, 2)
    async with served(rated.api.context) as port:
        found = await together(port, [gate(path, one)] * 30)
        assert codes(found) == {"decided": 10, "principal_rate": 20}
        waits = {t.headers["retry-after"] for t in found if t.status == 429}
        assert waits == {"6"}
        assert await rated.count() == 10
        rated.clock.forward(5.5)
        (found_now,) = await together(port, [gate(path, one)])
        assert (found_now.status, found_now.headers["retry-after"]) == (429, "1")
        rated.clock.forward(0.5)
        found = await together(port, [gate(path, one)] * 5)
        assert codes(found) == {"decided": 1, "principal_rate": 4}
        # Another token of the same user is another principal.
        found = await together(port, [gate(path, other)] * 11)
        assert codes(found) == {"decided": 10, "principal_rate": 1}


async def test_the_rate_limit_of_the_process_takes_both_tokens_or_none(rated: Gated) -> None:
    path = await rated.service()
    people = await tokens(rated, 8)
    async with served(rated.api.context) as port:
        found = await together(port, [gate(path, who) for who in people[:6]] * 10)
        assert codes(found) == {"decided": 60}
        late = people[6]
        found = await together(port, [gate(path, late)] * 25)
        assert codes(found) == {"process_rate": 25}
        assert {t.headers["retry-after"] for t in found} == {"1"}
        assert await rated.count() == 60
        rated.clock.forward(10)
        # Its own bucket is still full: it can take every token that the process limit leaves.
        found = await together(port, [gate(path, late)] * 25)
        assert codes(found) == {"decided": 10, "principal_rate": 15}
        found = await together(port, [gate(path, people[7])])
        assert codes(found) == {"process_rate": 1}


async def emptied(gated: Gated) -> None:
    """Waits until no request is active: the server notices a disconnect with a delay."""
    with trio.fail_after(30):
        while True:
            if not gated.api.context.gate._inside:
                return
            await trio.sleep(0.01)


async def test_reading_decisions_takes_a_permit_and_no_token(limited: Gated, dsn: str) -> None:
    path = await limited.service()
    (one,) = await tokens(limited, 1)
    async with served(limited.api.context) as port:
        made = await asked(port, gate(path, one))
        read = f"/api/v1{limited.project}/gate/decisions/{made.body['decision_id']}"
        for _ in range(15):
            assert (await asked(port, request("GET", read, one))).status == 200
        async with held(dsn, "gate_decisions") as beside:
            async with trio.open_nursery() as nursery:
                for number in (1, 2):
                    nursery.start_soon(asked, port, request("GET", read, one))
                    await until_blocked(beside, number)
                for sent in (request("GET", read, one), gate(path, one)):
                    found = await asked(port, sent)
                    assert (found.status, found.body) == (429, {"error": "principal_inflight"})
                    assert found.headers["retry-after"] == "1"
                nursery.cancel_scope.cancel()
            await until_blocked(beside, 0)
        await emptied(limited)
        left = [await asked(port, gate(path, one)) for _ in range(10)]
        assert codes(left) == {"decided": 9, "principal_rate": 1}


@pytest.mark.parametrize("how", ["closed", "reset", "more was sent"])
async def test_a_client_that_disconnects_early_leaves_no_decision(
    gated: Gated, dsn: str, how: str
) -> None:
    path = await gated.service()
    await gated.put(path)
    (one,) = await tokens(gated, 1)
    async with served(gated.api.context) as port:
        async with held(dsn, "gate_policies") as beside:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            await stream.send_all(gate(path, one))
            await until_blocked(beside, 1)
            if how == "more was sent":
                await stream.send_all(gate(path, one))
            if how == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await stream.aclose()
            await until_blocked(beside, 0)
        assert await gated.count() == 0
        await emptied(gated)
        assert (await asked(port, gate(path, one))).status == 200
        assert await gated.count() == 1


async def test_a_waiting_client_gets_the_stored_decision(gated: Gated, dsn: str) -> None:
    path = await gated.service()
    (one,) = await tokens(gated, 1)
    found: list[HttpAnswer] = []

    async def ask() -> None:
        found.append(await asked(port, gate(path, one)))

    async with served(gated.api.context) as port:
        async with trio.open_nursery() as nursery:
            async with held(dsn, "gate_policies") as beside:
                nursery.start_soon(ask)
                await until_blocked(beside, 1)
        ((uid,),) = await gated.api.rows("select uid from gate_decisions")
    assert found[0].body["decision_id"] == str(uid)
