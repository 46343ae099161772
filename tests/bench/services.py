"""Services: 200 with ten members each and 90 days of data in their tables.

Measures the cost of a report and of the list, of sealing a minute, of evaluating all burn rules,
and the disk space of 90 days, and prints the plans of the most frequent queries."""

import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psycopg
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.service_evaluator import ServiceEvaluator
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_datetime
from leadline.storage.core.key import ServiceKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Pool, open_pool
from leadline.storage.services.queries.service_reports import (
    _FROM_DAYS,
    _FROM_MINUTES,
    select_burns,
    select_windows,
)
from leadline.storage.services.rules.service_health import Durations
from leadline.storage.services.rules.service_minute import MinuteSpan, joined
from leadline.storage.services.rules.service_report import WINDOWS
from leadline.storage.services.tables import service_minutes as service_facts
from leadline.storage.services.tables import services
from leadline.storage.services.transactions.seal_services import seal_services

from ..support.processes.daemon_process import Daemon, daemon
from .api import _token
from .client import load
from .seed import add_monitors, first_project

SERVICES = 200
MEMBERS = 10
DAYS = 90
# In ninety days, each of some minutes.
OUTAGES = 60
MINUTES_SEALED = 10
READS = 400

_SERVICES = """
insert into services (org, uid, project, slug, name, materialization_start, sealed_through,
  created_at, updated_at)
select %(org)s, t.uid, %(project)s, 'bench-' || n, 'Bench ' || n, %(start)s, %(sealed)s, now(),
  now()
from unnest(%(uids)s::uuid[]) with ordinality as t(uid, n) returning id
"""
_DECLARED = """
insert into service_revisions (org, service, revision, uid, effective_at, governs_from, monitors,
  sli, mode, healthy_min, degraded_min, region_mode, healthy_min_regions, degraded_min_regions,
  missing_data, active_multiplier, active_floor_us, created_at, created_by_label)
select s.org, s.id, 1, gen_random_uuid(), %(start)s, %(start)s, m.ids, m.ids, 'all', 1, 1,
  'all_regions', 1, 1, 'unknown', 3, 90000000, now(), 'bench'
from (select org, id, row_number() over (order by id) - 1 as n from services) s
  join lateral (select array_agg(id) as ids
    from (select id, row_number() over (order by id) - 1 as n from monitors) m
    where m.n / %(members)s = s.n) m on true
"""
_EPOCHS = """
insert into service_epochs (org, service, seq, uid, revision, effective_at, snapshot_hash, members)
select org, id, 1, gen_random_uuid(), 1, %(start)s, '', %(members)s from services
"""
_TARGETS = """
insert into service_targets (org, service, "window", uid, objective, burn_enabled, created_at,
  updated_at)
select org, id, '30d', gen_random_uuid(), 999000, true, now(), now() from services
"""
_RULES = """
insert into burn_rules (org, uid, service, "window", place, long_seconds, short_seconds, threshold,
  severity)
select s.org, gen_random_uuid(), s.id, '30d', r.place, r.long, r.short, r.threshold, r.severity
from services s, (values (0, 3600, 300, 14.4, 'page'), (1, 21600, 1800, 6, 'ticket'))
  as r(place, long, short, threshold, severity)
"""
_HEARTBEATS = """
insert into heartbeats (org, monitor, ts, latency_ms, code, up)
select m.org, m.id,
  %(from)s::timestamptz + n * interval '60 seconds' + m.id %% 60 * interval '1 second', 12, 200,
  true
from monitors m, generate_series(0, %(count)s) n on conflict do nothing
"""
_ALONE = """
select pg_terminate_backend(pid) from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid()
"""
_DUE = "update service_alerting set due_at = '2020-01-01', owns_paging = true"
_SIZES = """
select relname, pg_total_relation_size(oid) from pg_class
where relname in ('service_minutes', 'service_hours', 'service_days') order by 1
"""

Figures = dict[str, Any]


def services_90_days() -> Figures:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="error") as running:
        running.start()
        running.sign_in()
        target = "http://127.0.0.1:9/"
        add_monitors(running.dsn, SERVICES * MEMBERS, target=target, interval_seconds=86_400)
        trio.run(_fill, running.dsn)
        figures: Figures = {"disk_mb": _disk(running), **_read(running)}
        assert running.process is not None
        # Stops the daemon; its PostgreSQL continues.
        os.kill(running.process.pid, signal.SIGSTOP)
        try:
            return {**figures, **trio.run(_work, running.dsn)}
        finally:
            os.kill(running.process.pid, signal.SIGCONT)


async def _fill(dsn: str) -> None:
    async with _pool(dsn) as pool:
        with psycopg.connect(dsn, autocommit=True) as connection:
            org, project = first_project(connection)
            row = connection.execute("select date_trunc('minute', now())").fetchone()
            assert row is not None
            now = from_datetime(row[0])
            sealed, start = Instant(now - 5 * MINUTE), Instant(now - 5 * MINUTE - DAYS * DAY)
            given = {"start": _text(start), "sealed": _text(sealed), "members": MEMBERS}
            uids = [uuid7() for _ in range(SERVICES)]
            connection.execute(_SERVICES, {**given, "org": org, "project": project, "uids": uids})
            for query in (_DECLARED, _EPOCHS, _TARGETS, _RULES):
                connection.execute(query, given)
            connection.execute("update monitor_terms set from_at = %(start)s", given)
            connection.execute(
                "insert into service_alerting (org, service, due_at, edited_at)"
                " select org, id, 'infinity', now() from services"
            )
            keys = [
                ServiceKey((org, row[0])) for row in connection.execute("select id from services")
            ]
        chance = random.Random(1)
        for first in range(0, len(keys), 20):
            part = keys[first : first + 20]
            ranges = {key: TimeSpan(start, sealed) for key in part}
            runs = {key: _history(chance, start, sealed) for key in part}
            async with pool.transaction("fill") as tx:
                await service_facts.replace_minutes(tx, ranges, runs)
                await service_facts.put_sums(tx, ranges, dict.fromkeys(part, sealed))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def _history(chance: random.Random, start: Instant, until: Instant) -> list[MinuteSpan]:
    """Good time with outages in it, each with a minute that was bad in part at its ends."""
    well = Durations(good_us=MINUTE, healthy_us=MINUTE)
    ill = Durations(bad_us=MINUTE, down_us=MINUTE)
    part = Durations(
        good_us=20 * SECOND, bad_us=40 * SECOND, healthy_us=20 * SECOND, down_us=40 * SECOND
    )
    runs, at = [], start
    for begins in sorted(chance.sample(range(0, (until - start) // MINUTE - 60, 60), OUTAGES)):
        outage = Instant(start + begins * MINUTE)
        long = chance.randint(3, 50)
        edges = [at, outage, outage + MINUTE, outage + long * MINUTE, outage + (long + 1) * MINUTE]
        for n, each in enumerate((well, part, ill, part)):
            if edges[n] < edges[n + 1]:
                runs.append(MinuteSpan(Instant(edges[n]), Instant(edges[n + 1]), 1, each))
        at = Instant(edges[-1])
    runs.append(MinuteSpan(at, until, 1, well))
    return joined(runs)


def _disk(running: Daemon) -> Figures:
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        sizes = {name: size / 1e6 for name, size in connection.execute(_SIZES)}
        rows = connection.execute("select count(*) from service_minutes").fetchone()
    return {**sizes, "rows_of_minutes": rows[0] if rows else 0}


def _read(running: Daemon) -> Figures:
    organization = running.api("GET", "/organizations")[0]["id"]
    project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    base = f"/api/v1/projects/{project}/services"
    listed = running.api("GET", f"/projects/{project}/services")
    headers = {"Authorization": f"Bearer {_token(running)}"}
    ids = [one["service"]["id"] for one in listed]
    paths = {
        "reliability_30d": [f"{base}/{uid}/reliability?window=30d" for uid in ids],
        "reliability_90d": [f"{base}/{uid}/reliability?window=90d" for uid in ids],
        "list_of_200": [base],
    }
    return {
        name: load(
            [running.port],
            [("GET", path, headers) for path in wanted],
            connections=1,
            seconds=10.0,
        )
        for name, wanted in paths.items()
    }


async def _work(dsn: str) -> Figures:
    """Measures the work of the loops while the daemon is stopped."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Open transactions of the stopped daemon would lock its services.
        connection.execute(_ALONE)
        found = connection.execute("select org, id from services order by id")
        keys = [ServiceKey((org, service)) for org, service in found]
        row = connection.execute("select max(sealed_through) from services").fetchone()
        assert row is not None
        sealed = from_datetime(row[0])
        connection.execute("update monitor_terms set interval_seconds = 60")
        given = {"from": _text(Instant(sealed - 5 * MINUTE)), "count": MINUTES_SEALED + 10}
        connection.execute(_HEARTBEATS, given)
        connection.execute("vacuum analyze")
    async with _pool(dsn) as pool:
        figures = {"sealing": await _seal(pool, dsn, keys, sealed)}
        figures["evaluating_all_ms"] = await _evaluate(pool, dsn)
        figures["burn_of_all_ms"] = await _timed(READS // 20, lambda: _burns(pool, keys))
        figures["windows_of_all_ms"] = await _timed(READS // 20, lambda: _windows(pool, keys))
        figures["plans"] = await _plans(pool, keys[0], sealed)
    return figures


async def _seal(pool: Pool, dsn: str, keys: list[ServiceKey], sealed: Instant) -> Figures:
    walls, cpus = [], []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for minute in range(1, MINUTES_SEALED + 1):
            fence = Instant(sealed + minute * MINUTE + 126 * SECOND)
            connection.execute("update shards set settled_through = %(at)s", {"at": _text(fence)})
            wall, cpu = time.perf_counter(), time.process_time()
            moved = 0
            for first in range(0, len(keys), 50):
                part = keys[first : first + 50]
                async with pool.transaction("seal") as tx:
                    done = await seal_services(tx, part)
                moved += sum(each.to == sealed + minute * MINUTE for each in done.values())
            assert moved == len(keys), "each minute is sealed of each"
            walls.append(1_000 * (time.perf_counter() - wall))
            cpus.append(1_000 * (time.process_time() - cpu))
    return {
        "wall_ms_a_minute": sorted(walls)[len(walls) // 2],
        "own_cpu_ms_a_minute": sorted(cpus)[len(cpus) // 2],
    }


async def _evaluate(pool: Pool, dsn: str) -> Figures:
    """Evaluates all services with their members and both burn rules, as every 30 seconds."""
    evaluator = ServiceEvaluator(pool, _clock, lambda: None)

    async def once() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_DUE)
        before = evaluator.evaluated
        await evaluator.pass_once()
        assert evaluator.evaluated - before >= SERVICES, "a service was not evaluated"

    return await _timed(5, once)


async def _burns(pool: Pool, keys: list[ServiceKey]) -> None:
    lengths = [HOUR, 5 * MINUTE, 6 * HOUR, 30 * MINUTE]
    async with pool.transaction("burns", read_only=True) as tx:
        rows = await services.select_services(tx, keys)
        await select_burns(tx, [(row, 999_000, lengths) for row in rows.values()])


async def _windows(pool: Pool, keys: list[ServiceKey]) -> None:
    async with pool.transaction("windows", read_only=True) as tx:
        rows = await services.select_services(tx, keys)
        await select_windows(tx, list(rows.values()), "30d")


async def _timed(times: int, act: Callable[[], Awaitable[None]]) -> Figures:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        found.append(1_000 * (time.perf_counter() - began))
    found.sort()
    return {"p50": found[len(found) // 2], "worst": found[-1]}


async def _plans(pool: Pool, key: ServiceKey, sealed: Instant) -> dict[str, list[str]]:
    item = {"place": 0, "org": key[0], "service": key[1]}
    days = item | {"from_at": sealed - WINDOWS["90d"], "until_at": sealed}
    minutes = item | {"from_at": sealed - HOUR, "until_at": sealed}
    found = {}
    async with pool.transaction("plans", read_only=True) as tx:
        for name, query, given in (("days", _FROM_DAYS, days), ("minutes", _FROM_MINUTES, minutes)):
            items = msgspec.json.encode([given]).decode()
            rows = await tx.rows(f"explain (analyze, buffers) {query}", items=items)
            found[name] = [line for (line,) in rows]
    return found


def _pool(dsn: str) -> Any:
    return open_pool(dsn, name="bench", size=4, clock=_clock)


def _clock() -> Instant:
    """Ahead, as the minutes are that are sealed here one after the other."""
    return Instant(time.time_ns() // 1_000 + (MINUTES_SEALED + 2) * MINUTE)


def _text(instant: Instant) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant // 1_000_000))
