"""Every answer about results is the same before and after their days are packed."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_text
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Tx
from leadline.storage.figures import tables as figures
from leadline.storage.figures.queries.latency_windows import select_latency_windows
from leadline.storage.monitors.queries.monitors import select_standings
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.queries import console_results, live_revision, results
from leadline.storage.results.queries.push_deadlines import select_push_deadlines
from leadline.storage.results.rules.incoming_result import IncomingResult
from leadline.storage.results.tables import packing, sealing
from leadline.storage.results.tables import results as result_tables
from leadline.storage.results.transactions.merge_week import merge_some
from leadline.storage.results.transactions.pack_day import PackOutcome, pack_some
from leadline.storage.status_pages.queries.component_latency import select_latency_points
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

# The first days are of a week that is merged.
DAYS: Final = 10
FIRST: Final = Instant(FROZEN_NOW - DAYS * DAY)
# Times with results in the tables, in pieces, and in both.
RANGES: Final = [
    (Instant(FROZEN_NOW - HOUR), FROZEN_NOW),
    (Instant(FIRST + HOUR), Instant(FIRST + 3 * HOUR)),
    (Instant(FIRST + DAY - HOUR), Instant(FIRST + DAY + HOUR)),
    (FIRST, Instant(FIRST + DAY)),
    (Instant(FIRST - DAY), Instant(FROZEN_NOW + DAY)),
]
_RESULTS = """
insert into heartbeats (org, monitor, ts, latency_ms, code, dns_us, connect_us, tls_us,
  first_byte_us, up, msg, failed_condition, measured)
select %(org)s, %(monitor)s, at(%(first)s) + n * %(step)s * interval '1 microsecond'
    + (n * 7919 %% 900) * interval '1 millisecond', n * 31 %% 5000,
  case when n %% 7 = 0 then null else 200 + n %% 3 end, n * 17 %% 70000, n * 13 %% 200,
  case when n %% 2 = 0 then n * 11 end, n * 37 %% 3000000, x.up,
  case when not x.up then %(msg)s::text end, case when not x.up then c.id end,
  case when not x.up then '503' end
from generate_series(0, %(count)s - 1) as n
  cross join lateral (select n %% %(bad)s <> 0 and not %(down)s as up) x
  left join monitor_conditions c on c.org = %(org)s and c.monitor = %(monitor)s
"""
_RUNS = """
insert into expected_runs (org, monitor, due_at, settled_at, verdict, reason)
select %(org)s, %(monitor)s, at(%(first)s) + n * %(step)s * interval '1 microsecond',
  at(%(first)s) + n * (%(step)s + 1) * interval '1 microsecond',
  (array['covered', 'covered', 'missed', 'withheld', 'covered_late']::verdict[])[1 + n %% 5],
  (array[null, null, 'never_claimed', 'maintenance', null])[1 + n %% 5]
from generate_series(0, %(count)s - 1) as n
"""


async def fill(
    api: Api, row: MonitorRow, step_us: int, until: Instant, *, down: bool = False, msg: str = "no"
) -> None:
    """Stores results and verdicts of one monitor from FIRST on."""
    those = {"org": row.org, "monitor": row.id, "first": FIRST, "step": step_us}
    count = (until - FIRST) // step_us
    async with api.pool.transaction("fill") as tx:
        await tx.execute(_RESULTS, count=count, bad=11, down=down, msg=msg, **those)
        await tx.execute(_RUNS, count=count, **those)


async def history(api: Api) -> list[MonitorRow]:
    """Monitors that are up, that fail for days, that are paused since days, and a dead push."""
    up = await api.new_monitor(conditions=["[STATUS] == 200"])
    failing = await api.new_monitor(interval_seconds=3_600)
    paused = await api.new_monitor(enabled=False)
    push = await api.new_monitor(type="push", target="", interval_seconds=86_400)
    async with api.pool.transaction("age") as tx:
        for column, table in (("created_at", "monitors"), ("from_at", "monitor_terms")):
            await tx.execute(f"update {table} set {column} = at(%(t)s)", t=FIRST)
        await tx.execute(
            "update shards set sealed_through = at(%(t)s), settled_through = at(%(t)s),"
            " rolled_up_through = at(%(first)s)",
            t=FROZEN_NOW,
            first=FIRST,
        )
    await fill(api, up, 2 * MINUTE, FROZEN_NOW)
    await fill(api, failing, HOUR, FROZEN_NOW, down=True)
    await fill(api, paused, MINUTE, Instant(FIRST + DAY + HOUR))
    await fill(api, push, HOUR, FROZEN_NOW, down=True, msg="push_missed")
    async with api.pool.transaction("push once") as tx:
        await tx.execute(
            "update heartbeats set up = true, msg = 'done' where monitor = %(m)s"
            " and ts < at(%(t)s)",
            m=push.id,
            t=FIRST + 5 * HOUR,
        )
    return [up, failing, paused, push]


async def pages(api: Api, path: str) -> list[Any]:
    """Returns the bodies of all pages of a list."""
    found: list[Any] = []
    following = f"/api/v1{path}"
    while following:
        answer = await api.ask("viewer", "GET", following)
        body = await answer.get_json()
        assert answer.status_code == 200, body
        found.append(body)
        link = answer.headers.get("Link", "")
        following = f"/api/{link.partition('/api/')[2].partition('>')[0]}" if link else ""
        if isinstance(body, dict) and body.get("next_cursor"):
            base = path.partition("&cursor=")[0]
            following = f"/api/v1{base}&cursor={body['next_cursor']}"
    return found


async def answers(api: Api, rows: list[MonitorRow]) -> dict[str, Any]:
    """Returns the answers of the API about each monitor."""
    found: dict[str, Any] = {}
    for row in rows:
        paths = [
            f"/monitors/{row.uid}",
            f"/monitors/{row.uid}/heartbeats?limit=700",
            f"/monitors/{row.uid}/availability?days=9",
            f"/monitors/{row.uid}/sla",
        ]
        runs = f"/projects/{api.project}/monitors/{row.uid}/expected-runs?limit=200"
        paths += [runs, f"{runs}&verdict=missed", f"{runs}&verdict=withheld&verdict=covered_late"]
        for from_at, to_at in RANGES:
            span = f"from={to_text(from_at)}&to={to_text(to_at)}"
            paths += [f"{runs}&{span}", f"/monitors/{row.uid}/latency?{span}"]
            paths.append(f"/monitors/{row.uid}/latency?{span}&step=day")
            paths.append(f"/monitors/{row.uid}/heartbeats?{span}&limit=90")
        for path in paths:
            found[path] = await pages(api, path)
    found["list"] = await pages(api, f"/projects/{api.project}/monitors?limit=100")
    return found


Read = Callable[[Tx], Awaitable[Any]]


def reads(rows: list[MonitorRow]) -> dict[str, Read]:
    """Returns the reads of loops, screens and status pages."""
    keys = [row.key for row in rows]
    org = rows[0].org
    found: dict[str, Read] = {
        "standings": lambda tx: select_standings(tx, keys),
        "deadlines": lambda tx: select_push_deadlines(tx, sorted({row.shard for row in rows})),
        "newest": lambda tx: result_tables.select_newest(tx, keys),
        "revision": lambda tx: live_revision.select_live_revision(
            tx, org, rows[0].project, [row.uid for row in rows]
        ),
        "newest_shown": lambda tx: live_revision.select_newest_results(
            tx, org, [row.id for row in rows]
        ),
    }
    for row in rows:
        found[f"failures {row.id}"] = partial(results.select_failures, key=row.key, most=50)
        found[f"last good {row.id}"] = partial(results.select_last_good, key=row.key)
    for span in RANGES:
        found |= _reads_of(keys, org, *span)
    return found


def _reads_of(
    keys: list[MonitorKey], org: int, from_at: Instant, to_at: Instant
) -> dict[str, Read]:
    ids = [monitor for _, monitor in keys]
    name = f"{from_at}-{to_at} "
    found: dict[str, Read] = {
        "slots": lambda tx: console_results.select_courses(tx, keys, from_at, to_at, HOUR),
        "figures": lambda tx: figures.select_results(
            tx, keys, from_at, to_at, Instant(from_at - 4 * DAY)
        ),
        "page latency": lambda tx: select_latency_points(tx, org, ids, TimeSpan(from_at, to_at)),
        "push verdicts": lambda tx: sealing.select_last_heartbeats(
            tx, [(*key, from_at, to_at) for key in keys]
        ),
    }
    for key in keys:
        found[f"bins {key}"] = partial(
            console_results.select_latency_bins,
            key=key,
            from_at=from_at,
            to_at=to_at,
            step_us=HOUR,
        )
        found[f"windows {key}"] = partial(
            select_latency_windows, key=key, sinces=[from_at, FIRST], until=to_at
        )
        found[f"following {key}"] = partial(
            result_tables.select_following, key=key, ts=from_at, until=to_at
        )
    return {name + what: read for what, read in found.items()}


async def everything(api: Api, rows: list[MonitorRow]) -> tuple[dict[str, Any], dict[str, Any]]:
    read: dict[str, Any] = {}
    for name, work in reads(rows).items():
        async with api.pool.transaction("read", read_only=True) as tx:
            read[name] = await work(tx)
    # The exact instant of a failed condition, of a repeated result, and of an outage.
    for row in rows:
        beats = read[f"failures {row.id}"][-1:]
        async with api.pool.transaction("read", read_only=True) as tx:
            read[f"conditions {row.id}"] = await results.select_failed_conditions(
                tx, dict.fromkeys([row.key], beats[0].ts) if beats else {}
            )
            again = [
                IncomingResult(
                    org=row.org,
                    monitor=row.id,
                    shard=row.shard,
                    ts=beat.ts,
                    up=False,
                    latency_ms=beat.latency_ms,
                    msg=beat.msg,
                )
                for beat in beats
            ]
            read[f"stored {row.id}"] = [await result_tables.is_stored(tx, one) for one in again]
    return await answers(api, rows), read


async def pack_all(api: Api) -> Instant:
    outcome = None
    while outcome is not PackOutcome.NOTHING:
        async with api.pool.transaction("pack_day") as tx:
            outcome = (await pack_some(tx, [FIRST], 3)).outcome
    outcome = None
    while outcome is not PackOutcome.NOTHING:
        async with api.pool.transaction("merge_week") as tx:
            outcome = (await merge_some(tx, 3)).outcome
    async with api.pool.transaction("drop_old_rows") as tx:
        state = await packing.select_packing(tx)
        for table, column in (("heartbeats", "ts"), ("expected_runs", "due_at")):
            await tx.execute(
                f"delete from {table} where {column} < at(%(t)s)", t=state.packed_through
            )
    return state.packed_through


async def test_answers_do_not_change_when_days_are_packed(api: Api) -> None:
    rows = await history(api)
    before, read_before = await everything(api, rows)
    packed_through = await pack_all(api)
    assert packed_through == FIRST + (DAYS - 2) * DAY
    counts = (
        "select (select sum(results) from packed_heartbeats), (select count(*) from heartbeats)"
    )
    ((packed, left),) = await api.rows(counts)
    assert packed > left > 0
    crossing = "select count(*) from packed_runs where until_at - from_at > interval '1 day'"
    assert (await api.rows(crossing))[0][0] >= 2
    after, read_after = await everything(api, rows)
    assert after.keys() == before.keys()
    for path, body in before.items():
        assert msgspec.json.encode(after[path]) == msgspec.json.encode(body), path
    for name, found in read_before.items():
        assert read_after[name] == found, name
    # The comparison covers more than empty answers.
    assert sum(len(page) for page in before[f"/monitors/{rows[0].uid}/heartbeats?limit=700"]) == (
        DAYS * DAY // (2 * MINUTE)
    )
    standings = read_after["standings"]
    assert standings[rows[1].key].failures_in_row == DAYS * 24
    assert standings[rows[2].key].last_at < packed_through
