"""Range partitions by time: created ahead, dropped after retention, during normal operation.

Invariants:
- Writers and readers of the parent do not wait for a lock. Therefore a partition is created by
  LIKE, CHECK and ATTACH and not by CREATE PARTITION OF, and detached CONCURRENTLY before its DROP.
- Every call can be repeated, also by several processes at the same time, and completes the work of
  an interrupted call.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple

import trio

from ..core.instant import DAY, Instant, from_datetime, to_datetime
from ..core.refusal import Unavailable
from .pools import Pool, Rejected

# ATTACH waits only for another ATTACH or a VACUUM of the parent, therefore the short lock timeout.
LOCK_MS: Final = 500
ATTEMPTS: Final = 10
PAUSE_SECONDS: Final = 0.2

# Another process was faster: the table, its row type or a partition of the range exists. CREATE
# TABLE reports the type if the other process commits between its two checks.
_MADE_MEANWHILE = {"42P07", "42710", "42P17", "23505"}

_PARTITIONS = """
select c.relname,
  (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''([^'']+)''\\)'))[1]::timestamptz,
  (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \\(''([^'']+)''\\)'))[1]::timestamptz,
  i.inhdetachpending
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = %(parent)s::regclass
order by 2
"""
# Detached by a call that was interrupted before its DROP.
_LEFT_OVER = """
select c.relname from pg_class c
where c.relkind = 'r' and not c.relispartition and c.relname ~ %(pattern)s
  and c.relnamespace = (select relnamespace from pg_class where oid = %(parent)s::regclass)
order by 1
"""
# Triggers of the parent on TRUNCATE (32 in tgtype). Unlike row triggers, PostgreSQL does not copy
# them to a new partition.
_GUARDS = """
select t.tgname, p.proname from pg_trigger t join pg_proc p on p.oid = t.tgfoid
where t.tgrelid = %(parent)s::regclass and t.tgtype & 32 <> 0
"""


class Partition(NamedTuple):
    """Partition of the rows in [from_, until)."""

    name: str
    from_: Instant
    until: Instant
    detach_pending: bool


async def partitions(pool: Pool, parent: str) -> list[Partition]:
    """Returns the partitions in the order of time, also those with an interrupted detach."""
    async with pool.statement("list_partitions") as tx:
        return await tx.structs(Partition, _PARTITIONS, parent=_safe(parent))


async def make_partitions(
    pool: Pool, parent: str, column: str, *, from_: Instant, through: Instant, width_us: int = DAY
) -> list[str]:
    """Covers [from_, through] by partitions of `column`. Returns the names of the new ones.

    They start at multiples of `width_us` (a day, or hours that divide a day) in UTC. New partitions
    omit the ranges of existing partitions of another width. Raises Unavailable if partitions are
    missing after ATTEMPTS attempts.
    """
    made: list[str] = []
    for attempt in range(ATTEMPTS):
        missing = list(_missing(await partitions(pool, parent), from_, through, width_us))
        if not missing:
            return made
        if attempt > 1:
            await trio.sleep(PAUSE_SECONDS)
        for start, end in missing:
            # Unavailable is mostly a lock timeout here. If the database is down, the next listing
            # raises.
            with suppress(Unavailable):
                if await _make(pool, parent, column, start, end):
                    made.append(_name(parent, start))
    raise Unavailable(f"partitions of {parent} from {to_datetime(missing[0][0])} cannot be made")


async def drop_partitions(pool: Pool, parent: str, *, before: Instant) -> list[str]:
    """Detaches the partitions that end at or before the instant, and drops detached ones.

    Returns the names of the dropped tables. A partition narrower than a day is dropped up to a day
    after its end, since its name does not contain its width.

    Raises Unavailable if a long-running reader delays it. The next call continues.
    """
    parent = _safe(parent)
    dropped = []
    for partition in await partitions(pool, parent):
        if partition.detach_pending:
            how = "finalize"
        elif partition.until <= before:
            how = "concurrently"
        else:
            continue
        async with pool.statement("detach_partition") as tx:
            await tx.execute(f"alter table {parent} detach partition {partition.name} {how}")
    for name, start in await _left_over(pool, parent):
        # No partition is wider than a day.
        if start + DAY <= before:
            async with pool.statement("drop_partition") as tx:
                await tx.execute(f"drop table {name}")
            dropped.append(name)
    return dropped


def _missing(
    existing: list[Partition], from_: Instant, through: Instant, width_us: int
) -> Iterator[tuple[Instant, Instant]]:
    start = from_ - from_ % width_us
    while start <= through:
        end = start + width_us
        cursor = start
        for partition in existing:
            if partition.until <= cursor or partition.from_ >= end:
                continue
            if partition.from_ > cursor:
                yield Instant(cursor), partition.from_
            cursor = partition.until
        if cursor < end:
            yield Instant(cursor), Instant(end)
        start = max(end, cursor - cursor % width_us)


async def _make(pool: Pool, parent: str, column: str, start: Instant, end: Instant) -> bool:
    parent, column, name = _safe(parent), _safe(column), _name(parent, start)
    low, high = (f"timestamptz '{to_datetime(instant).isoformat()}'" for instant in (start, end))
    try:
        async with pool.transaction("make_partition") as tx:
            await tx.execute(f"set local lock_timeout = {LOCK_MS}")
            await tx.execute(f"create table {name} (like {parent} including all)")
            for trigger, function in await tx.rows(_GUARDS, parent=parent):
                await tx.execute(
                    f"create trigger {_safe(trigger)} before truncate on {name}"
                    f" for each statement execute function {_safe(function)}()"
                )
            # With the constraint ATTACH does not scan the table. Afterwards it is redundant.
            await tx.execute(
                f"alter table {name} add constraint {name}_range"
                f" check ({column} >= {low} and {column} < {high})"
            )
            await tx.execute(
                f"alter table {parent} attach partition {name} for values from ({low}) to ({high})"
            )
            await tx.execute(f"alter table {name} drop constraint {name}_range")
    except Rejected as error:
        if error.sqlstate in _MADE_MEANWHILE:
            return False
        raise
    return True


async def _left_over(pool: Pool, parent: str) -> list[tuple[str, Instant]]:
    async with pool.statement("list_detached") as tx:
        rows = await tx.rows(
            _LEFT_OVER, parent=parent, pattern=f"^{parent}_[0-9]{{8}}(_[0-9]{{4}})?$"
        )
    return [(name, _start(name)) for (name,) in rows]


def _name(parent: str, start: Instant) -> str:
    moment = to_datetime(start)
    return f"{parent}_{moment:%Y%m%d}" + (f"_{moment:%H%M}" if start % DAY else "")


def _start(name: str) -> Instant:
    """Returns the start instant that the name of a partition contains."""
    found = re.search(r"_(\d{8})(?:_(\d{4}))?$", name)
    assert found, name
    text = f"{found[1]}{found[2] or '0000'}+0000"
    return from_datetime(datetime.strptime(text, "%Y%m%d%H%M%z"))


def _safe(identifier: str) -> str:
    """Returns the name. Raises if it needs quotes, since names are constants of the code."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", identifier):
        raise ValueError(f"not a plain identifier: {identifier!r}")
    return identifier
