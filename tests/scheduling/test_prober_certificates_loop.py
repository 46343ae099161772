"""Certificates that runs saw: recorded by the pass of the prober, apart from results."""

import ssl
from contextlib import suppress
from typing import Any, cast

import pytest
import trio
import trustme
from uuid_utils.compat import uuid7

from leadline.daemon.loops import prober as prober_module
from leadline.probes.check.check import Check
from leadline.probes.check.result import Phases, Result, RunOutcome
from leadline.probes.net.certificate_expiry import end_of
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Pool
from leadline.storage.monitors.queries.certificates import select_certificates
from tests.probes.net.test_seen_certificates import of_version
from tests.scheduling.test_prober_loop import probing, settled
from tests.support.worlds.world import World

PEM = trustme.CA().issue_cert("shop.example").cert_chain_pems[0].bytes().decode()
DER = ssl.PEM_cert_to_DER_cert(PEM)
COUNT = "select count(*) from heartbeats"


async def certified_run(check: Check, _reach: object, clock: Any, _org: int) -> Result:
    await trio.lowlevel.checkpoint()
    der = None if check.target.startswith("http:") else DER
    if "odd" in check.target:
        der = of_version(DER, 1)
    return Result(clock(), RunOutcome.UP, 1, None, "", Phases(), certificate=der)


@pytest.fixture(autouse=True)
def certified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober_module, "run", certified_run)


async def test_a_pass_records_the_certificates_of_runs(world: World) -> None:
    secure = await world.monitor(target="https://shop.example/")
    plain = await world.monitor(target="http://shop.example/")
    ping = await world.monitor(type="icmp", target="shop.example")
    async with probing(world, uuid7()) as prober:
        await prober.pass_once()
        await settled(world, COUNT, [(3,)])
        await prober.pass_once()
    async with world.pool.transaction("look", read_only=True) as tx:
        found = await select_certificates(tx, [row.key for row in (secure, plain, ping)])
    assert {key: (one.is_known, one.ends_at) for key, one in found.items()} == {
        secure.key: (True, end_of(DER)),
        plain.key: (True, None),
    }
    assert found[secure.key].seen_at == world.now


async def test_certificates_wait_while_the_database_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await world.monitor(target="https://shop.example/")
    async with probing(world, uuid7()) as prober:

        async def away(self: Pool, name: str, *given: Any, **more: Any) -> Any:
            if name == "record_certificates":
                raise Unavailable("away")
            return await cast("Any", transact)(self, name, *given, **more)

        transact = Pool.transact
        with monkeypatch.context() as patch:
            patch.setattr(Pool, "transact", away)
            with suppress(Unavailable):
                await prober.pass_once()
            await settled(world, COUNT, [(1,)])
            with pytest.raises(Unavailable):
                await prober.pass_once()
        assert await world.rows("select 1 from monitor_certificates") == []
        await prober.pass_once()
    async with world.pool.transaction("look", read_only=True) as tx:
        assert (await select_certificates(tx, [row.key]))[row.key].ends_at == end_of(DER)


async def test_a_certificate_that_no_parser_reads_stops_no_check(world: World) -> None:
    odd = await world.monitor(target="https://odd.example/")
    await world.monitor(target="https://shop.example/")
    async with probing(world, uuid7()) as prober:
        await prober.pass_once()
        await settled(world, COUNT, [(2,)])
        await prober.pass_once()
    assert await world.rows("select count(*) from monitor_certificates") == [(1,)]
    async with world.pool.transaction("look", read_only=True) as tx:
        assert not (await select_certificates(tx, [odd.key]))[odd.key].is_known
