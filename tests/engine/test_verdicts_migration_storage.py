"""The migration to results with verdicts waits for the writers of the earlier version, and they for
it, in one direction."""

import shutil
from pathlib import Path

import psycopg
import trio

from leadline.storage.engine.migrate import FOLDER, migrate

SHARD = """
insert into shards (org, region, reserved_through, sealed_through, settled_through,
  rolled_up_through)
values (0, 'core', now(), now(), now(), now())
"""
FENCE = "select id from shards for key share"
# As the recorder of the earlier version, which locks the fence and copies the two tables in turn.
RESULTS = "copy heartbeats (org, monitor, ts, latency_ms, up) from stdin"
VERDICTS = "copy expected_runs (org, monitor, due_at, settled_at, verdict) from stdin"


WAITING = """
select exists (select from pg_stat_activity
  where wait_event_type = 'Lock' and datname = current_database())
"""


async def until_blocked(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as watcher, trio.fail_after(30):
        while True:
            if watcher.execute(WAITING).fetchone() == (True,):
                return
            await trio.sleep(0.005)


def copy_nothing(connection: "psycopg.Connection[object]", statement: str) -> None:
    with connection.cursor().copy(statement.encode()):
        pass


async def test_a_recorder_between_its_tables_is_waited_for(empty_dsn: str, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    shutil.copytree(FOLDER, earlier)
    for later in earlier.glob("*.sql"):
        if later.name >= "0064":
            later.unlink()
    await migrate(empty_dsn, earlier)
    made: list[str] = []

    async def upgrade() -> None:
        made.extend(await migrate(empty_dsn))

    with psycopg.connect(empty_dsn) as recorder:
        recorder.execute(SHARD)
        recorder.commit()
        recorder.execute(FENCE)
        copy_nothing(recorder, RESULTS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upgrade)
            await until_blocked(empty_dsn)
            await trio.to_thread.run_sync(copy_nothing, recorder, VERDICTS)
            recorder.commit()
    assert "0064_results_with_verdicts" in made
