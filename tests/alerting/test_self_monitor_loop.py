"""Self-monitoring: incidents about Leadline itself, and the heartbeat to an external URL."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import trio

from leadline.daemon.loops import self_monitor as loop_module
from leadline.daemon.loops.key_checker import KeyChecker
from leadline.daemon.loops.self_monitor import SelfMonitor
from leadline.daemon.process.self_metrics import self_families
from leadline.probes.net.egress import Egress
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from leadline.storage.alerting.rules.self_condition import CLEAR_US
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.keyring import CipherContext, Keyring
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.transactions.edit_incidents import add_update
from leadline.storage.scheduling.tables import presences
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.world import World


class Own(Story):
    """A story with a self-monitor, which passes every 15 s, and a process that can be present."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.beats: list[str] = []
        self.monitor = self.of(world.keyring)
        self.process = uuid4()
        self.from_at = world.now

    def of(
        self,
        keyring: Keyring,
        host: str = "here",
        project: str = "acme/web",
        url: str = "http://watch.example/ping",
    ) -> SelfMonitor:
        reach: Any = None
        return SelfMonitor(
            self.world.pool, lambda: self.world.now, keyring, host, project, reach, url
        )

    async def name_project(self) -> None:
        async with self.world.pool.transaction("name") as tx:
            await tx.execute("update organizations set slug = 'acme'")
            await tx.execute("update projects set slug = 'web'")

    async def appears(self, *regions: str, host: str = "here") -> None:
        self.process, self.from_at = uuid4(), self.world.now
        async with self.world.pool.transaction("appears") as tx:
            await presences.begin_presence(
                tx,
                self.process,
                self.from_at,
                host,
                ["worker"],
                list(regions),
                "0",
                accepts_pushes=False,
            )

    async def passes(self, us: int, *, present: bool = False) -> None:
        until = self.world.now + us
        while self.world.now < until:
            self.world.now = Instant(min(self.world.now + 15 * SECOND, until))
            if present:
                async with self.world.pool.transaction("renew") as tx:
                    at = self.world.now
                    await presences.renew_presence(tx, self.process, self.from_at, at)
            # The schedule, sealing and the leaser keep up, unless the test says otherwise.
            await self.moves()
            await self.monitor.pass_once()
            await self.run_pass()

    async def moves(self) -> None:
        async with self.world.pool.transaction("moves") as tx:
            await tx.execute(
                "update shards set reserved_through = at(%(now)s), settled_through = at(%(now)s)",
                now=self.world.now,
            )
            await tx.execute("update outbox set status = 'delivered' where status = 'pending'")

    async def has_secret(self) -> None:
        uid = uuid4()
        sealed = self.world.keyring.seal(
            b"x", CipherContext("project_secrets", "value_ciphertext", uid)
        )
        async with self.world.pool.transaction("secret") as tx:
            await tx.execute(
                "insert into project_secrets (org, uid, project, name, value_ciphertext,"
                " created_at, updated_at) values (%(org)s, %(uid)s, %(project)s, 'a', %(sealed)s,"
                " now(), now())",
                org=self.world.org,
                uid=uid,
                project=self.world.project,
                sealed=sealed,
            )

    async def told(self) -> list[tuple[Any, ...]]:
        return await self.world.rows(
            "select title, status, self_condition, source from incidents order by id"
        )


@pytest.fixture
async def own(world: World, monkeypatch: pytest.MonkeyPatch) -> Own:
    story = Own(world)
    await story.name_project()

    async def send(_: Egress, url: str) -> None:
        story.beats.append(url)

    monkeypatch.setattr(loop_module, "send_heartbeat", send)
    return story


REGION = "Leadline: region core has no live prober"


async def test_a_region_without_a_prober_opens_one_incident_and_resolves_itself(own: Own) -> None:
    row = await own.world.monitor(name="Shop")
    await own.is_now(row, True)
    ops = await own.channel("ops")
    await own.policy((0, ops), (300, ops))
    await own.passes(3 * MINUTE)
    assert await own.told() == []
    await own.passes(30 * SECOND)
    assert await own.told() == [(REGION, "investigating", "region_without_prober", "auto")]
    assert await own.notifications() == [("ops", "incident.escalated")]
    # The target is not down, and no update is public.
    assert (await own.world.state(row))[0] == "up"
    assert await own.world.rows("select count(*) from outages") == [(0,)]
    assert await own.world.rows("select bool_or(public) from incident_updates") == [(False,)]
    await own.appears("core")
    await own.passes(CLEAR_US + 30 * SECOND, present=True)
    assert [status for _, status, _, _ in await own.told()] == ["resolved"]
    await own.passes(10 * MINUTE, present=True)
    assert len(await own.told()) == 1
    assert await own.world.rows("select count(*) from self_conditions") == [(0,)]


async def test_a_resolution_by_a_person_stays_until_the_condition_has_ended(own: Own) -> None:
    await own.world.monitor(name="Shop")
    await own.passes(4 * MINUTE)
    ((uid,),) = await own.world.rows("select uid from incidents")
    async with own.world.pool.transaction("resolve") as tx:
        await add_update(tx, own.world.editor, uid, IncidentStatus.RESOLVED, "known", False)
    await own.passes(10 * MINUTE)
    assert len(await own.told()) == 1


async def test_push_monitors_and_paused_monitors_need_no_prober(own: Own) -> None:
    await own.world.monitor(type="push", name="job")
    row = await own.world.monitor(name="Shop")
    await own.edit(row, enabled=False)
    await own.passes(5 * MINUTE)
    assert await own.told() == []


async def test_after_a_stop_of_all_processes_the_bound_begins_again(own: Own) -> None:
    await own.world.monitor(name="Shop")
    await own.passes(2 * MINUTE)
    own.world.now = Instant(own.world.now + HOUR)
    await own.monitor.pass_once()
    assert await own.told() == []


async def test_dead_deliveries_open_an_incident_in_the_named_project(own: Own) -> None:
    row = await own.world.monitor(name="Shop", region="eu")
    await own.appears("core", "eu")
    await own.channel("ops", row)
    await own.is_now(row, False)
    await own.run_pass()
    async with own.world.pool.transaction("die") as tx:
        await tx.execute(
            "update outbox set status = 'dead', updated_at = at(%(now)s)", now=own.world.now
        )
    await own.passes(15 * SECOND, present=True)
    assert (await own.told())[-1][0] == "Leadline: deliveries fail"
    async with own.world.pool.transaction("age") as tx:
        await tx.execute(
            "update outbox set updated_at = at(%(at)s) where status = 'dead'",
            at=own.world.now - HOUR,
        )
    await own.passes(CLEAR_US + 30 * SECOND, present=True)
    assert (await own.told())[1:] == [
        ("Leadline: deliveries fail", "resolved", "deliveries_fail", "auto")
    ]


async def test_a_store_that_lags_opens_an_incident_and_stops_the_heartbeat(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own.world.monitor(name="Shop")
    await own.appears("core")
    await own.passes(2 * MINUTE, present=True)
    assert len(own.beats) == 2, "one heartbeat a minute"

    async def stands() -> None:
        pass

    moves: Callable[[], Any] = own.moves
    monkeypatch.setattr(own, "moves", stands)
    await own.passes(5 * MINUTE, present=True)
    assert [title for title, *_ in await own.told()] == ["Leadline: the store lags"]
    sent = len(own.beats)
    await own.passes(3 * MINUTE, present=True)
    assert len(own.beats) == sent
    monkeypatch.setattr(own, "moves", moves)
    await own.passes(3 * MINUTE, present=True)
    assert (await own.told())[0][1] == "resolved"
    assert len(own.beats) > sent


@pytest.mark.parametrize("project", ["", "acme/gone"])
async def test_without_a_project_a_condition_stops_the_heartbeat(
    own: Own, monkeypatch: pytest.MonkeyPatch, project: str
) -> None:
    await own.world.monitor(name="Shop")
    own.monitor = own.of(own.world.keyring, project=project)
    await own.passes(MINUTE)
    assert len(own.beats) == 1
    await own.has_secret()
    own.monitor = own.of(Keyring(b"w" * 32), project=project)
    await own.passes(2 * MINUTE)
    assert len(own.beats) == 1, "the key decrypts nothing"
    own.monitor = own.of(own.world.keyring, project=project)
    await own.passes(MINUTE)
    assert len(own.beats) == 2

    async def stands() -> None:
        pass

    monkeypatch.setattr(own, "moves", stands)
    await own.passes(4 * MINUTE)
    sent = len(own.beats)
    await own.passes(2 * MINUTE)
    assert len(own.beats) == sent, "the store lags"


async def test_a_process_without_the_url_takes_no_heartbeat_of_another(own: Own) -> None:
    silent = own.of(own.world.keyring, url="")
    for _ in range(3):
        own.world.now = Instant(own.world.now + MINUTE)
        await silent.pass_once()
        await own.monitor.pass_once()
    assert len(own.beats) == 3


async def test_a_key_that_opens_nothing_is_reported_for_its_host(own: Own) -> None:
    await own.has_secret()
    await own.passes(MINUTE)
    assert await own.told() == []
    right, own.monitor = own.monitor, own.of(Keyring(b"w" * 32), host="two")
    await own.appears("core", host="two")
    await own.passes(15 * SECOND, present=True)
    ((title, status, *_),) = await own.told()
    assert (title, status) == (
        "Leadline: the encryption key of two decrypts no stored value",
        "investigating",
    )
    # Another host cannot know, until the process has gone.
    own.monitor = right
    await own.passes(5 * MINUTE, present=True)
    assert (await own.told())[0][1] == "investigating"
    await own.passes(3 * MINUTE)
    assert (await own.told())[0][1] == "resolved"


@pytest.mark.parametrize("host", ["probes", "here"])
async def test_a_worker_whose_key_opens_nothing_is_reported(own: Own, host: str) -> None:
    """The worker opens no incidents. `here` is the host of the self-monitor, whose key is right."""
    await own.has_secret()
    await own.appears("core", host=host)
    await own.passes(MINUTE, present=True)
    assert await own.told() == []
    pool, wrong = own.world.pool, Keyring(b"w" * 32)
    worker = KeyChecker(pool, lambda: own.world.now, wrong, own.process)
    await worker.pass_once()
    await own.passes(15 * SECOND, present=True)
    ((title, status, *_),) = await own.told()
    assert title == f"Leadline: the encryption key of {host} decrypts no stored value"
    assert status == "investigating"
    # The worker restarts with the right key, and has not checked it yet.
    async with pool.transaction("ends") as tx:
        await presences.end_presence(tx, own.process, own.from_at, own.world.now)
    await own.appears("core", host=host)
    if host != "here":
        await own.passes(5 * MINUTE, present=True)
        assert (await own.told())[0][1] == "investigating"
    right = KeyChecker(pool, lambda: own.world.now, own.world.keyring, own.process)
    await right.pass_once()
    await own.passes(3 * MINUTE, present=True)
    assert (await own.told())[0][1] == "resolved"


async def test_two_processes_open_one_incident(own: Own) -> None:
    await own.world.monitor(name="Shop")
    await own.passes(3 * MINUTE - 15 * SECOND)
    own.world.now = Instant(own.world.now + 30 * SECOND)
    other = own.of(own.world.keyring, host="two")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(own.monitor.pass_once)
        nursery.start_soon(other.pass_once)
    assert len(await own.told()) == 1


async def test_a_heartbeat_that_fails_ends_no_pass(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Egress, __: str) -> None:
        raise NotDelivered(SendFailure.RETRY, "http_status 500")

    monkeypatch.setattr(loop_module, "send_heartbeat", refuse)
    await own.passes(MINUTE)
    assert (own.monitor.beats, own.monitor.failed_beats) == (0, 1)
    assert own.monitor.beat_at is None


async def test_the_metrics_state_conditions_incidents_and_heartbeats(own: Own) -> None:
    def measured() -> dict[tuple[str, ...], float]:
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in self_families(own.monitor)
            for sample in family.samples
        }

    stamp = "leadline_self_monitor_last_success_timestamp_seconds"
    assert [name for name, *_ in measured() if "timestamp" in name or "conditions" in name] == [
        stamp
    ]
    # Passes that never succeed are seen.
    began = own.world.now / 1e6
    own.world.now = Instant(own.world.now + HOUR)
    assert measured()[stamp,] == began
    await own.world.monitor(name="Shop")
    await own.passes(4 * MINUTE)
    kind, incidents = "region_without_prober", "leadline_self_incidents_total"
    found = measured()
    assert found[incidents, kind, "opened"] == 1
    assert found["leadline_self_conditions", kind] == 1
    assert found["leadline_self_conditions", "store_lags"] == 0
    assert found["leadline_external_heartbeats_total", "sent"] == len(own.beats)
    last = "leadline_external_heartbeat_last_success_timestamp_seconds"
    passed = found[stamp,]
    assert passed == own.world.now / 1e6
    assert 0 <= passed - found[last,] < 60
    await own.appears("core")
    await own.passes(4 * MINUTE, present=True)
    found = measured()
    assert (found[incidents, kind, "resolved"], found["leadline_self_conditions", kind]) == (1, 0)
    own.world.now = Instant(own.world.now + loop_module.CURRENT_US + 1)
    assert not [name for name, *_ in measured() if "conditions" in name]
    assert measured()[stamp,] == found[stamp,]


async def test_without_a_project_only_regions_are_reported(own: Own) -> None:
    own.monitor = own.of(Keyring(b"w" * 32), project="acme/gone")
    await own.world.monitor(name="Shop")
    await own.passes(4 * MINUTE)
    assert [title for title, *_ in await own.told()] == [REGION]
