"""Kept parts of the list of monitors: each answer equals that of a new read, byte for byte."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.http.auth.passwords import Passwords
from leadline.http.monitors.routes import kept_lists, monitors
from leadline.http.monitors.routes.kept_lists import KeptList
from leadline.storage.alerting.tables import service_alerting
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.pools import open_pool
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.tables.monitors import select_monitors_of
from leadline.storage.results.rules.incoming_result import IncomingResult, ResultSource
from leadline.storage.services.rules.epoch import Revision
from leadline.storage.services.rules.service_health import Policies
from leadline.storage.services.tables import service_revisions as declarations
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.gating import Clock
from tests.support.run.effort import varied

_SEAL = "update shards set sealed_through = at(%(now)s) where id = %(id)s"
READERS = ("viewer", "editor")
# Tables that loops write, each with a row of a monitor.
_LOOPS = (
    """
    insert into probe_errors (org, monitor, reason, at)
    values (%(org)s, %(monitor)s, 'decrypt_failed', at(%(now)s))
    on conflict (org, monitor) do update set at = excluded.at
    """,
    """
    insert into flap_states (org, monitor, downs, since_at, seen_at)
    values (%(org)s, %(monitor)s, '{}', at(%(now)s), at(%(now)s))
    on conflict (org, monitor) do update set since_at = case when flap_states.since_at is null
      then excluded.since_at end, seen_at = excluded.seen_at
    """,
    """
    insert into slow_warnings (org, monitor, seen_at, since_at, thread)
    values (%(org)s, %(monitor)s, at(%(now)s), at(%(now)s), gen_random_uuid())
    on conflict (org, monitor) do update set since_at = case when slow_warnings.since_at is null
      then excluded.since_at end
    """,
    """
    insert into certificate_warnings (org, monitor, since_at, thread)
    values (%(org)s, %(monitor)s, at(%(now)s), gen_random_uuid())
    on conflict (org, monitor) do update set since_at = excluded.since_at
    """,
    "delete from certificate_warnings where org = %(org)s and monitor = %(monitor)s"
    " and %(now)s > 0",
    """
    insert into monitor_certificates (org, monitor, revision, window_us, seen)
    select org, id, revision, 3600000000, jsonb_build_array(jsonb_build_array(%(end)s, %(now)s))
    from monitors where org = %(org)s and id = %(monitor)s
    on conflict (org, monitor) do update set revision = excluded.revision, seen = excluded.seen
    """,
)


@dataclass
class Story:
    """Two processes without notifications of each other, and random writes in both."""

    processes: tuple[Api, Api]
    clock: Clock
    random: Random
    reused: int = 0
    renewed: int = 0
    service: ServiceKey | None = None
    revision: int = 0

    @property
    def api(self) -> Api:
        return self.random.choice(self.processes)

    @property
    def org(self) -> int:
        return self.api.orgs["acme"][0]

    async def body(self, api: Api, who: str, query: str = "") -> bytes:
        path = f"/api/v1/projects/{api.project}/monitors{query}"
        answer = await api.ask(who, "GET", path)
        assert answer.status_code == 200
        data = await answer.get_data()
        assert isinstance(data, bytes)
        return data

    async def compare(self) -> None:
        """Compares the kept list of each reader in each process with a page, which is not kept."""
        for who in READERS:
            fresh = await self.body(self.api, who, "?limit=200")
            for api in self.processes:
                before = kept_of(api, who)
                assert await self.body(api, who) == fresh, who
                after = kept_of(api, who)
                self.reused += before is after
                self.renewed += before is not after and shared(before, after)

    async def rows(self) -> list[MonitorRow]:
        api = self.api
        project = api.projects["acme/shop"][0]
        found = await api.rows(
            "select id from monitors where org = %(org)s and project = %(project)s order by id",
            org=self.org,
            project=project,
        )
        async with api.pool.transaction("rows", read_only=True) as tx:
            rows = await select_monitors_of(tx, self.org, [key for (key,) in found])
        return [rows[key] for (key,) in found]

    async def one(self) -> MonitorRow:
        return self.random.choice(await self.rows())

    async def write(self, method: str, path: str, body: Any = None) -> int:
        who = "org_admin"
        return int((await self.api.ask(who, method, f"/api/v1{path}", body)).status_code)

    async def create(self) -> None:
        kind = self.random.choice(["http", "http", "push", "tcp", "composite"])
        body: dict[str, Any] = {
            "name": f"m {self.random.randrange(10**6)}",
            "type": kind,
            "interval_seconds": self.random.choice([20, 30, 60]),
            "tags": self.random.sample(["a", "b", "c"], 2),
        }
        if kind == "http":
            body["target"] = "https://example.com/"
            body["config"] = {"headers": {'",next_due_at":"': ',"next_due_at":"'}}
        elif kind == "tcp":
            body["target"] = "example.com:443"
        elif kind == "composite":
            body["depends_on"] = [str((await self.one()).uid)]
            body["config"] = {"mode": "all"}
        await self.write("POST", f"/projects/{self.api.project}/monitors", body)

    async def edit(self) -> None:
        change = self.random.choice(
            [
                {"name": f"renamed {self.random.randrange(10**6)}"},
                {"tags": self.random.sample(["a", "b", "c"], 1)},
                {"interval_seconds": self.random.choice([20, 30, 60, 86_400])},
                {"schedule": "*/5 * * * *"},
                {"schedule": ""},
                {"enabled": False},
                {"enabled": True},
                {"enabled": True},
                {"failure_threshold": self.random.choice([1, 3])},
                {"recovery_threshold": self.random.choice([1, 2])},
                {"grace_seconds": 90},
            ]
        )
        await self.write("PATCH", f"/monitors/{(await self.one()).uid}", change)

    async def delete(self) -> None:
        if len(await self.rows()) > 4:
            await self.write("DELETE", f"/monitors/{(await self.one()).uid}")

    async def result(self, *, up: bool = True, age_us: int = 0) -> None:
        row, api = await self.one(), self.api
        if row.type == "composite":
            return
        source = ResultSource.PUSH if row.type == "push" else ResultSource.RUN
        await api.context.recorder.record(
            IncomingResult(
                org=row.org,
                monitor=row.id,
                shard=row.shard,
                ts=Instant(self.clock() - age_us),
                up=up,
                source=source,
                reach_us=0 if row.type == "push" else (row.timeout_seconds + 120) * SECOND,
            )
        )

    async def backfill(self, *, up: bool) -> None:
        """An agent sends a result of time that is sealed. It is stored and not folded."""
        row, api = await self.one(), self.api
        async with api.pool.transaction("seal") as tx:
            await tx.execute(_SEAL, id=row.shard, now=self.clock())
        await api.context.recorder.record(
            IncomingResult(
                org=row.org,
                monitor=row.id,
                shard=row.shard,
                ts=Instant(self.clock() - 1),
                up=up,
                source=ResultSource.BACKFILL,
                reach_us=0,
            )
        )

    async def all_up(self, *, up: bool = True) -> None:
        for _ in range(12):
            await self.result(up=up)

    async def loop(self) -> None:
        row = await self.one()
        text = self.random.choice(_LOOPS)
        given: dict[str, Any] = {"org": row.org, "monitor": row.id, "now": self.clock()}
        if "%(end)s" in text:
            given["end"] = self.clock() + self.random.choice([-DAY, MINUTE, DAY])
        async with self.api.pool.transaction("loop") as tx:
            await tx.execute(text, **given)

    async def declare(self) -> None:
        """Makes the service own the paging of some monitors, at once or later, or of none."""
        if self.service is None:
            uid = await self.api.new_service()
            ((key,),) = await self.api.rows("select id from services where uid = %(uid)s", uid=uid)
            self.service = ServiceKey((self.org, key))
        rows = await self.rows()
        self.revision += 1
        ids = tuple(row.id for row in self.random.sample(rows, 2))
        at = Instant(self.clock() + self.random.choice([0, 40 * SECOND]))
        revision = Revision(
            revision=100 + self.revision,
            uid=uuid7(),
            effective_at=at,
            governs_from=at,
            monitors=ids,
            sli=ids,
            policies=Policies(),
        )
        values: dict[str, Any] = {
            "owns_paging": self.random.random() < 0.6,
            "page_on": ["down"],
            "page_on_unknown": False,
            "confirm_evaluations": 2,
            "renotify_seconds": 0,
        }
        async with self.api.pool.transaction("declare") as tx:
            await declarations.insert_revision(tx, self.service, revision, None, "")
            row = (await service_alerting.lock_alertings(tx, [self.service]))[self.service]
            await service_alerting.update_alerting(tx, row, **values)

    async def pass_time(self) -> None:
        us = self.random.choice([SECOND, 7 * SECOND, 25 * SECOND, 3 * MINUTE, -SECOND])
        self.clock.now = Instant(self.clock.now + us)

    async def new_token(self) -> None:
        await self.write("POST", f"/monitors/{(await self.one()).uid}/push-token")

    async def maintain(self) -> None:
        await self.api.new_maintenance()

    async def mute(self) -> None:
        await self.api.new_mute()

    async def climb(self) -> None:
        policy: UUID | None = await self.api.new_policy()
        path = f"/monitors/{(await self.one()).uid}"
        await self.write("PATCH", path, {"escalation_policy_id": str(policy)})


def kept_of(api: Api, who: str) -> KeptList | None:
    org, project = api.orgs["acme"][0], api.projects["acme/shop"][0]
    shows = who == "editor"
    found: KeptList | None = api.context.lists.get(
        org, project, (shows, "http://localhost" if shows else "")
    )
    return found


def shared(before: KeptList | None, after: KeptList | None) -> bool:
    if before is None or after is None:
        return False
    return bool({id(one) for one in before.parts if one} & {id(one) for one in after.parts if one})


@pytest.fixture
async def processes(dsn: str, passwords: Passwords) -> AsyncIterator[tuple[Api, Api, Clock]]:
    clock = Clock()
    async with (
        open_pool(dsn, name="test", size=8, clock=clock) as pool,
        open_api(pool, FROZEN_NOW, passwords, clock=clock) as one,
        open_api(pool, FROZEN_NOW, passwords, clock=clock) as other,
    ):
        yield one, other, clock


@pytest.mark.parametrize("seed", varied([1, 2, 18], range(30)))
async def test_a_kept_list_is_that_of_a_new_read(
    processes: tuple[Api, Api, Clock], seed: int
) -> None:
    one, other, clock = processes
    story = Story((one, other), clock, Random(seed))
    for _ in range(5):
        await story.api.new_monitor(target="https://example.com/", interval_seconds=30)
    actions: list[Callable[[], Awaitable[None]]] = [
        story.create,
        story.edit,
        story.edit,
        story.delete,
        story.all_up,
        story.all_up,
        story.result,
        lambda: story.result(up=False),
        lambda: story.all_up(up=False),
        lambda: story.result(up=False, age_us=10 * SECOND),
        lambda: story.result(age_us=10 * SECOND),
        lambda: story.backfill(up=True),
        lambda: story.backfill(up=False),
        story.loop,
        story.declare,
        story.pass_time,
        story.pass_time,
        story.new_token,
        story.maintain,
        story.mute,
        story.climb,
    ]
    for _ in range(40):
        await story.random.choice(actions)()
        await story.compare()
    assert story.renewed > 10, "some parts were used again in a list that changed"


async def test_a_late_failure_that_changes_no_status_is_seen(
    processes: tuple[Api, Api, Clock],
) -> None:
    one, other, clock = processes
    story = Story((one, other), clock, Random(1))
    await one.new_monitor(interval_seconds=86_400)
    await story.result()
    clock.now = Instant(clock.now + HOUR)
    await story.compare()
    await story.backfill(up=False)
    await story.compare()
    (shown,) = json.loads(await story.body(one, "viewer"))
    assert (shown["status"], shown["consecutive_failures"]) == ("up", 1)


async def test_failures_that_retention_deletes_are_not_shown(
    processes: tuple[Api, Api, Clock],
) -> None:
    one, other, clock = processes
    story = Story((one, other), clock, Random(1))
    await one.new_monitor(interval_seconds=86_400)
    seen = []
    for _ in range(6):
        await story.result(up=False)
        await story.compare()
        async with one.pool.transaction("retain") as tx:
            await tx.execute("delete from heartbeats where ts < at(%(t)s)", t=clock() - 3 * DAY)
        await story.compare()
        await story.compare()
        (shown,) = json.loads(await story.body(one, "viewer"))
        seen.append(shown["consecutive_failures"])
        clock.now = Instant(clock.now + DAY)
    assert seen == [1, 2, 3, 4, 4, 4]
    assert story.reused > 20


async def test_a_kept_list_follows_the_clock(processes: tuple[Api, Api, Clock]) -> None:
    """The next due instant changes, and the status ends with its result."""
    one, other, clock = processes
    story = Story((one, other), clock, Random(1))
    await one.new_monitor(interval_seconds=30)
    await story.result()
    seen = set()
    for _ in range(50):
        await story.compare()
        (shown,) = json.loads(await story.body(one, "viewer"))
        seen.add((shown["status"], shown["next_due_at"]))
        clock.now = Instant(clock.now + 3 * SECOND)
    assert len(seen) >= 5
    assert {status for status, _ in seen} == {"up", "pending"}
    assert story.reused > 20


async def test_a_list_is_kept_for_each_view(processes: tuple[Api, Api, Clock]) -> None:
    """A viewer never gets the push tokens of a kept list, and another project none of it."""
    one, _, _ = processes
    await one.new_monitor(type="push", target="", interval_seconds=60)
    path = f"/api/v1/projects/{one.project}/monitors"
    for _ in range(2):
        for who, shows in (("editor", True), ("viewer", False), ("shop_token", True)):
            answer = await one.ask(who, "GET", path)
            assert (b"push_token" in await answer.get_data()) is shows, who
        for who in ("stranger", "neighbour", "foreign_token"):
            assert (await one.ask(who, "GET", path)).status_code == 404


async def test_a_long_list_is_read_in_parts(
    processes: tuple[Api, Api, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of one process make the list that another one reads at once."""
    one, other, clock = processes
    story = Story((one, other), clock, Random(1))
    await one.new_monitor()
    for _ in range(30):
        await story.create()
    whole = await story.body(one, "editor")
    assert len(json.loads(whole)) > 8
    for module in (monitors, kept_lists):
        monkeypatch.setattr(module, "SHOWN_AT_ONCE", 4)
        monkeypatch.setattr(module, "SHOWN_A_TURN", 1)
    checkpoint, turns = trio.lowlevel.checkpoint, 0

    async def counted() -> None:
        nonlocal turns
        turns += 1
        await checkpoint()

    monkeypatch.setattr(trio.lowlevel, "checkpoint", counted)
    assert await story.body(other, "editor") == whole
    # One for the row and one for the text of each monitor.
    assert turns >= 2 * len(json.loads(whole))
    # A selection is not kept.
    assert await story.body(other, "editor", "?q=m") == whole
