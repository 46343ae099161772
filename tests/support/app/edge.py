"""Helpers for tests of the agent routes: a clock that the test sets, a ticker, and agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.http.auth.passwords import Passwords
from leadline.http.wire.agent_credential import configured_agents
from leadline.http.wire.options import HttpOptions
from leadline.probes.jobs.agent_protocol import Generation, window_job_id
from leadline.storage.core.instant import SECOND, Instant, from_text, to_text
from leadline.storage.engine.pools import open_pool
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.event_bus import Bus
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.gating import Clock

ANY_TOKEN = "catch-all-token-of-the-tests"
EU_TOKEN = "eu-token-of-the-tests"
CORE_TOKEN = "core-token-of-the-tests"


@dataclass
class Edge:
    api: Api
    clock: Clock
    ticker: Ticker

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = EU_TOKEN,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Any:
        credential = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = await self.api.ask(
            credential, method, f"/api/v1/agent/{path}", body, headers=headers
        )
        found = await answer.get_json()
        assert answer.status_code == status, found
        return found

    async def claim(self, query: str = "", **given: Any) -> Any:
        found = await self.ask("GET", f"jobs?region=eu&wait=0{query}", **given)
        return found["jobs"] if isinstance(found, dict) and "jobs" in found else found

    async def declare(self, *, carrier: int = Generation.WORKFLOWS, **given: Any) -> Any:
        body = {"workflow_kinds": [], "carrier": carrier, "version": "0.3.8"}
        return await self.ask("POST", "heartbeat?region=eu", body, **given)

    async def bring(self, *items: dict[str, Any], route: str = "results", **given: Any) -> Any:
        return await self.ask("POST", f"{route}?region=eu", {"results": list(items)}, **given)

    async def monitor(self, **given: Any) -> MonitorRow:
        """Creates a monitor in the region of the agents, without a job besides its schedule."""
        values = {"region": "eu", "interval_seconds": 60, "timeout_seconds": 10, **given}
        row = await self.api.new_monitor(**values)
        async with self.api.pool.transaction("forget_jobs") as tx:
            await tx.execute("delete from jobs")
        return row

    async def due(self, row: MonitorRow) -> Instant:
        """Advances the clock until the next window of the monitor is reserved and due, and returns
        its due instant.
        """
        await self.ticker.pass_once()
        for _ in range(70):
            found = await self.windows(row)
            if found:
                self.clock.now = found[-1]
                return found[-1]
            self.clock.forward(1)
            await self.ticker.pass_once()
        raise AssertionError("no window came")

    async def windows(self, row: MonitorRow) -> list[Instant]:
        rows = await self.api.rows(
            "select w.due from run_batches s"
            " cross join unnest(s.monitors, s.due_ats) as w(monitor, due)"
            " where w.monitor = %(m)s and w.due >= at(%(now)s) order by 1",
            m=row.id,
            now=self.clock.now,
        )
        return [due for (due,) in rows]

    async def ledger(self, row: MonitorRow) -> list[tuple[Any, ...]]:
        return await self.api.rows(
            "select due_at, verdict::text from ledger where monitor = %(m)s order by 1",
            m=row.id,
        )

    async def beats(self, row: MonitorRow) -> list[tuple[Any, ...]]:
        return await self.api.rows(
            "select ts, up, msg from heartbeats where monitor = %(m)s order by 1", m=row.id
        )


def result(row: MonitorRow, due: Instant, *, after: float = 0.0, **given: Any) -> dict[str, Any]:
    """Returns the result of a run that began `after` seconds after it was due."""
    return {
        "job_id": str(window_job_id(row.uid, due, row.revision)),
        "monitor_id": str(row.uid),
        "due_at": to_text(due),
        "ts": to_text(Instant(due + int(after * SECOND))),
        "up": True,
        "latency_ms": 12,
        "msg": "",
        **given,
    }


def instant_of(text: str) -> Instant:
    return from_text(text)


@asynccontextmanager
async def open_edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    clock = Clock()
    named = {"frankfurt": (EU_TOKEN, "eu"), "home": (CORE_TOKEN, "core")}
    options = HttpOptions(
        regions=frozenset({"core", "eu", "us"}),
        agents=configured_agents(ANY_TOKEN, named),
        has_agents=True,
    )
    bus = Bus()
    async with open_pool(dsn, name="test", size=12, clock=clock) as pool:
        recorder = Recorder(pool, bus, clock)
        async with open_api(
            pool, FROZEN_NOW, passwords, clock=clock, options=options, bus=bus, recorder=recorder
        ) as api:
            yield Edge(api, clock, Ticker(pool, clock))


def other(uid: UUID) -> str:
    """Returns a valid id that no object has."""
    return str(UUID(int=uid.int ^ 1))
