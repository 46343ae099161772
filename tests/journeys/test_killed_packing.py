"""kill -9 of the daemon while it packs and merges old days: no row is lost or duplicated."""

import random
import time
from typing import Any, Final

import psycopg
import pytest

from leadline.storage.core.instant import DAY, Instant, to_datetime
from leadline.storage.results.rules.packed_days import WEEK_US, week_of
from tests.bench.seed import add_monitors
from tests.support.processes.daemon_process import Daemon, daemon

MONITORS: Final = 60
DAYS: Final = 9
KILLS_LEAST: Final = 5
SECONDS_MOST: Final = 240
_PARTITION: Final = """
create table {0}_old partition of {0} for values from ('{1}') to ('{2}')
"""
_HEARTBEATS: Final = """
insert into heartbeats (org, monitor, ts, latency_ms, code, up, msg)
select m.org, m.id, timestamptz '{0}' + (n * 600 + m.id % 600) * interval '1 second',
  (n * m.id) % 5000, 200, n % 9 <> 0, case when n % 9 = 0 then 'timeout' end
from monitors m, generate_series(0, {1} * 144 - 1) n
"""
_RUNS: Final = """
insert into expected_runs (org, monitor, due_at, settled_at, verdict)
select org, monitor, ts, ts + interval '2 seconds', 'covered' from heartbeats
where ts < timestamptz '{0}'
"""
_ROWS: Final = """
select count(*), bit_xor(hash_record_extended(row(m.id, h.*), 0)), count(distinct (m.id, h.ts))
from monitors m cross join lateral heartbeats_in(m.org, m.id, '{0}', '{1}') h
union all
select count(*), bit_xor(hash_record_extended(row(m.id, r.due_at, r.settled_at, r.verdict::text),
  0)), count(distinct (m.id, r.due_at))
from monitors m cross join lateral runs_in(m.org, m.id, '{0}', '{1}') r
"""
_STATE: Final = "select packed_through, merged_through, org, merged_org from packing"


def read(running: Daemon, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(running.dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.mark.soak
def test_no_row_is_lost_if_the_daemon_is_killed_while_it_packs() -> None:
    rng = random.Random(46)
    start = week_of(Instant(time.time_ns() // 1_000 - 3 * WEEK_US)).from_
    bounds = [str(to_datetime(Instant(start + days * DAY))) for days in (0, DAYS)]
    with daemon() as running:
        running.start()
        add_monitors(running.dsn, MONITORS, target="http://127.0.0.1:9/", interval_seconds=86_400)
        with psycopg.connect(running.dsn) as connection:
            for table in ("heartbeats", "expected_runs"):
                connection.execute(_PARTITION.format(table, *bounds).encode())
            connection.execute(_HEARTBEATS.format(bounds[0], DAYS).encode())
            connection.execute(_RUNS.format(bounds[1]).encode())
        rows = _ROWS.format(*bounds)
        before = read(running, rows)
        assert before[0][0] == before[0][2] == MONITORS * DAYS * 144
        kills, states, began = 0, set[tuple[Any, ...]](), time.monotonic()
        while True:
            running.kill()
            kills += 1
            running.start()
            assert read(running, rows) == before
            (state,) = read(running, _STATE)
            states.add(state)
            if str(state[0]) >= bounds[1] and state[1].timestamp() * 1e6 >= start + WEEK_US:
                break
            assert time.monotonic() - began < SECONDS_MOST, states
            time.sleep(rng.uniform(0, 1.5))
        assert kills >= KILLS_LEAST
        # It was killed in the middle of days too.
        assert any(state[2] or state[3] for state in states)
        assert read(running, "select count(*) from late_writes") == [(0,)]
