"""Changes: 10 000 of one service in 90 days, on which 49 other services depend, with decisions of
the gate for half of them, and 2 000 incidents.

Measures the cost of pages of the timeline, of a comparison, and of the changes before an incident,
and prints the query plans."""

import random
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import trio
from uuid_utils.compat import uuid7

from leadline.storage.changes.queries.change_gate_decisions import _SEEN
from leadline.storage.changes.queries.change_timeline import _INCIDENTS, _PAGE
from leadline.storage.changes.queries.preceding_changes import _PRECEDING
from leadline.storage.core.instant import DAY, HOUR, Instant, from_datetime
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.engine.pools import open_pool
from leadline.storage.gate.queries.gate_decisions import instant_of
from leadline.storage.services.queries.dependency_history import _BELOW

from ..support.processes.daemon_process import Daemon, daemon
from .api import _token
from .client import load
from .seed import first_project

SERVICES = 50
CHANGES = 10_000
# Per other service.
OTHER_CHANGES = 200
INCIDENTS = 2_000
DAYS = 89
PAGES = 200
SECONDS = 4.0

_SERVICES = """
insert into services (org, uid, project, slug, name, created_at, updated_at)
select %(org)s, gen_random_uuid(), %(project)s, 'bench-' || n, 'Bench ' || n, now(), now()
from generate_series(1, %(services)s) n returning id, uid
"""
_COPIED = {
    "service_dependency_terms": "org, service, upstream, from_at",
    "changes": "org, id, service, source, external_id, kind, started_at, latest_at",
    "change_phases": (
        "org, change, uid, phase, occurred_at, ref, url, decision, actor_label, via_token,"
        " recorded_at"
    ),
    "gate_decisions": (
        "org, project, service, uid, evaluated_at, service_uid, service_slug, service_name, state,"
        " action, unoverridden_action, reasons, actor_label, via_token, evidence"
    ),
    "incidents": (
        "org, uid, project, service, seq, title, status, impact, source, started_at, resolved_at,"
        " created_at, updated_at"
    ),
}

Figures = dict[str, Any]
Rows = dict[str, list[Sequence[Any]]]


def changes_10_000() -> Figures:
    with daemon(on_disk=True, LEADLINE_LOG__LEVEL="error") as running:
        running.start()
        running.sign_in()
        trio.run(_make_room, running.dsn)
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            _fill(connection)
            connection.execute("vacuum analyze")
        return {**_read(running), "plans": trio.run(_plans, running.dsn)}


async def _make_room(dsn: str) -> None:
    """A partition for each day, as there would be."""
    now = Instant(time.time_ns() // 1_000)
    async with open_pool(dsn, name="bench", size=1, clock=lambda: now) as pool:
        from_ = Instant(now - (DAYS + 2) * DAY)
        await make_partitions(pool, "gate_decisions", "evaluated_at", from_=from_, through=now)


def _fill(connection: "psycopg.Connection[Any]") -> None:
    org, project = first_project(connection)
    given = {"org": org, "project": project, "services": SERVICES}
    services: list[tuple[int, UUID]] = list(connection.execute(_SERVICES, given))
    now = datetime.now(UTC)
    chance = random.Random(1)
    rows: Rows = {table: [] for table in _COPIED}
    for place, (service, uid) in enumerate(services):
        # A tree with the first at its root, and as many ways through it again.
        for upstream in sorted({(place - 1) // 2, (place - 1) // 3} if place else ()):
            since = now - timedelta(days=99)
            rows["service_dependency_terms"].append((org, service, services[upstream][0], since))
        for number in range(OTHER_CHANGES if place else CHANGES):
            _change(chance, rows, (org, project, service, uid), number, now)
    for number in range(INCIDENTS):
        at = _ago(chance, now)
        over = at + timedelta(hours=1)
        service = services[number % SERVICES][0]
        said = (1, "down", "resolved", "major", "manual")
        rows["incidents"].append((org, uuid7(), project, service, *said, at, over, at, over))
    for table, columns in _COPIED.items():
        _copy(connection, table, columns, rows[table])
    connection.execute("select setval(pg_get_serial_sequence('changes', 'id'), 1000000)")


def _change(
    chance: random.Random,
    rows: Rows,
    home: tuple[int, int, int, UUID],
    number: int,
    now: datetime,
) -> None:
    org, project, service, uid = home
    began, key = _ago(chance, now), len(rows["changes"]) + 1
    ended = began + timedelta(minutes=10)
    kind, source = chance.choice(["deploy", "rollback", "flag"]), chance.choice(["ci", "cd"])
    rows["changes"].append((org, key, service, source, str(number), kind, began, ended))
    decision = None
    if number % 2:
        decision = uuid7(nanoseconds=from_datetime(began) * 1_000)
        named = (uid, "bench", "Bench", "ALLOW", "ALLOW", "ALLOW", "[]", "ci", True, "{}")
        rows["gate_decisions"].append((org, project, service, decision, began, *named))
    url = f"https://ci.example.com/builds/{key}"
    for phase, at, said in (("started", began, decision), ("succeeded", ended, None)):
        told = (f"v1.{key}", url, said, "ci", True, at)
        rows["change_phases"].append((org, key, uuid7(), phase, at, *told))


def _ago(chance: random.Random, now: datetime) -> datetime:
    """Whole milliseconds of the past."""
    ago = timedelta(minutes=15) + timedelta(seconds=chance.random() * DAYS * 86_400)
    at = now - ago
    return at.replace(microsecond=at.microsecond // 1_000 * 1_000)


def _copy(
    connection: "psycopg.Connection[Any]", table: str, columns: str, rows: Iterable[Sequence[Any]]
) -> None:
    override = " overriding system value" if table == "changes" else ""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(
            f"create temporary table one on commit drop as select {columns} from {table} limit 0"
        )
        with cursor.copy(f"copy one ({columns}) from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(f"insert into {table} ({columns}){override} select {columns} from one")


def _read(running: Daemon) -> Figures:
    organization = running.api("GET", "/organizations")[0]["id"]
    project = running.api("GET", f"/organizations/{organization}/projects")[0]["id"]
    headers = {"Authorization": f"Bearer {_token(running)}"}
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        [(root, deep)] = connection.execute(
            "select (array_agg(uid order by id))[1], (array_agg(uid order by id desc))[1]"
            " from services"
        )
        incidents = [uid for (uid,) in connection.execute("select uid from incidents limit 200")]
    base = f"/api/v1/projects/{project}"
    timeline = f"{base}/services/{root}/changes"
    now = time.time()
    spans = [
        f"from={_text(now - 91 * 86_400)}&to={_text(now - n * 86_400 * 0.4)}" for n in range(PAGES)
    ]
    paths = {
        "page_of_50": [f"{timeline}?{span}" for span in spans],
        "page_of_200": [f"{timeline}?{span}&limit=200" for span in spans],
        "page_of_50_of_one_kind": [f"{timeline}?{span}&kind=flag&source=cd" for span in spans],
        "page_of_50_that_are_far_between": [
            f"{base}/services/{deep}/changes?{span}" for span in spans
        ],
        "compare": [
            f"{timeline}/compare?source={source}&external_id={n}"
            for n in range(PAGES)
            for source in ("ci", "cd")
        ],
        "before_an_incident": [f"{base}/incidents/{uid}/changes" for uid in incidents],
    }
    return {
        name: load(
            [running.port],
            [("GET", path, headers) for path in wanted],
            connections=1,
            seconds=SECONDS,
        )
        for name, wanted in paths.items()
    }


async def _plans(dsn: str) -> dict[str, list[str]]:
    """Of a page in the middle of the ninety days."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [(org, root)] = connection.execute("select org, min(id) from services group by org")
        services = [key for (key,) in connection.execute("select id from services")]
        uids = [uid for (uid,) in connection.execute("select uid from gate_decisions limit 50")]
    until = Instant(time.time_ns() // 1_000 - 45 * DAY)
    from_ = Instant(until - 45 * DAY)
    day = Instant(until - DAY)
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "page": (
            _PAGE,
            {
                "org": org,
                "service": root,
                "from_at": from_,
                "until_at": until,
                "before_at": until,
                "before_id": 0,
                "kinds": ["deploy", "rollback", "flag"],
                "source": None,
                "most": 51,
            },
        ),
        "decisions": (
            _SEEN,
            {"org": org, "service": root, "uids": uids, "ats": [instant_of(u) for u in uids]},
        ),
        "below": (_BELOW, {"org": org, "service": root, "from_at": day, "until_at": until}),
        "incidents": (
            _INCIDENTS,
            {"org": org, "services": services, "froms": [day], "untils": [Instant(until + HOUR)]},
        ),
        "preceding": (
            _PRECEDING,
            {"org": org, "services": services, "from_at": day, "to_at": until, "most": 200},
        ),
    }
    found = {}
    async with (
        open_pool(dsn, name="bench", size=1, clock=lambda: until) as pool,
        pool.transaction("plans", read_only=True) as tx,
    ):
        for name, (query, given) in asked.items():
            rows = await tx.rows(f"explain (analyze, buffers) {query}", **given)
            found[name] = [line for (line,) in rows]
    return found


def _text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
