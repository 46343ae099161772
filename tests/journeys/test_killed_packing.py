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

MONITORS: Final = 40
DAYS: Final = 9
KILLS: Final = 8
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
# Monitors whose week is one piece or two.
_PIECES: Final = """
select count(*) from (
  select monitor from packed_heartbeats where until_at - from_at > interval '2 days' group by 1) p
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
        states = set[tuple[Any, ...]]()
        for _ in range(KILLS):
            time.sleep(rng.uniform(0, 4))
            running.kill()
            running.start()
            assert read(running, rows) == before
            states.update(read(running, _STATE))
        # It was killed in the middle of days too.
        assert len(states) >= 3
        assert any(org for _, _, org, _ in states)
        began = time.monotonic()
        while True:
            (state,) = read(running, _STATE)
            if str(state[0]) >= bounds[1] and state[1].timestamp() * 1e6 >= start + WEEK_US:
                break
            assert time.monotonic() - began < SECONDS_MOST, state
            time.sleep(0.5)
        assert read(running, rows) == before
        assert read(running, "select count(*) from late_writes") == [(0,)]
        assert read(running, _PIECES) == [(MONITORS,)]
