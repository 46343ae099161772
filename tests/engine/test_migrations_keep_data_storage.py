"""Migrations over a database that is in use: what was there is there, in its new form."""

import shutil
from pathlib import Path

import psycopg

from leadline.storage.engine import migrate as migrate_module
from leadline.storage.engine.migrate import migrate

_BEFORE_INCIDENTS = """
insert into organizations (uid, slug, name, created_at, updated_at)
  values (gen_random_uuid(), 'acme', 'Acme', now(), now());
insert into projects (org, uid, slug, name, created_at, updated_at)
  values (1, gen_random_uuid(), 'shop', 'Shop', now(), now());
insert into shards (region, reserved_through, sealed_through, settled_through, rolled_up_through)
  values ('core', now(), now(), now(), now());
insert into monitors (org, uid, project, shard, slug, name, type, interval_seconds,
    timeout_seconds, created_at, updated_at)
  select 1, gen_random_uuid(), 1, 1, 'm' || n, 'm' || n, 'http', 60, 10, now(), now()
  from generate_series(1, 3) n;
insert into monitor_states (org, monitor, status, since) values
  (1, 1, 'down', '2026-01-05T00:00:00Z'), (1, 2, 'up', '2026-01-05T00:00:00Z'),
  (1, 3, 'pending', '2026-01-05T00:00:00Z');
insert into status_changes (org, monitor, at, old_status, new_status, committed_at)
  select 1, 2, '2026-01-01T00:00:00Z', 'up', became, now()
  from unnest(array['down', 'up', 'down', 'up']) became;
"""

_BEFORE_CHANGES = """
insert into organizations (uid, slug, name, created_at, updated_at)
  values (gen_random_uuid(), 'acme', 'Acme', now(), now());
insert into projects (org, uid, slug, name, created_at, updated_at)
  values (1, gen_random_uuid(), 'shop', 'Shop', now(), now());
insert into services (org, uid, project, slug, name, created_at, updated_at)
  select 1, gen_random_uuid(), 1, 's' || n, 's' || n,
    timestamptz '2026-01-01T00:00:00Z' + n * interval '1 day', now() from generate_series(1, 3) n;
insert into service_dependencies (org, service, upstream) values (1, 1, 2), (1, 3, 2);
"""


def until(folder: Path, name: str) -> Path:
    """The migrations that were there before that one."""
    for path in sorted(migrate_module.FOLDER.glob("*.sql")):
        if path.name < name:
            shutil.copy(path, folder)
    return folder


async def test_who_depended_on_whom_did_so_since_both_were_there(
    empty_dsn: str, tmp_path: Path
) -> None:
    await migrate(empty_dsn, until(tmp_path, "0011"))
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(_BEFORE_CHANGES)
    await migrate(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("set timezone to utc")
        terms = connection.execute(
            "select service, upstream, from_at::date::text, until_at = 'infinity'"
            " from service_dependency_terms order by service"
        ).fetchall()
    assert terms == [(1, 2, "2026-01-03", True), (3, 2, "2026-01-04", True)]


async def test_who_is_down_when_incidents_arrive_is_told_of_and_old_changes_are_not(
    empty_dsn: str, tmp_path: Path
) -> None:
    await migrate(empty_dsn, until(tmp_path, "0008"))
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(_BEFORE_INCIDENTS)
    await migrate(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        left = connection.execute("select monitor, new_status from status_changes").fetchall()
        kept = connection.execute("select count(*) from monitors").fetchone()
    assert left == [(1, "down")]
    assert kept == (3,)
