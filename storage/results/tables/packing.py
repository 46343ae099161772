"""State of packing: the instant through which days are packed, and late rows of the next days.

The instant is read by every reader and moved once a day. A late writer holds a shared advisory lock
from its read of the instant to its commit. `advance_packed` tries the exclusive one, so that it
never makes a writer wait for longer than its own short transaction.

A second kind of advisory lock, of one monitor, keeps the merging of its pieces and a late result
apart. The merger only tries it. A late writer waits for the step of the merger that has it.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ..rules.packed_days import MERGED_MOST

# The key of the advisory lock.
LOCK_CLASS: Final = 1_279_610_183
# The first key of the advisory locks of pieces. The second one is the monitor.
PIECES_CLASS: Final = 1_279_610_184
PACKED: Final = ("packed_heartbeats", "packed_runs")

_SHARE = f"select pg_advisory_xact_lock_shared({LOCK_CLASS}, 0)"
_TRY_ALONE = f"select pg_try_advisory_xact_lock({LOCK_CLASS}, 0)"
_THROUGH = "select packed_through from packing"
_STATE = """
select packed_through, kept_from, org, monitor, moved_at, merged_through, merged_org,
  merged_monitor
from packing
"""
_LOCK = f"{_STATE} for update skip locked"
_INSERT_LATE = """
insert into late_writes (org, monitor, day)
select org, monitor, at(day)
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(days)s::bigint[]) as w(org, monitor, day)
"""
# Those of deleted monitors as well. Their rows are packed if they are archived.
_LATE = """
select org, monitor, array_agg(id) from late_writes
where day = at(%(day)s) group by org, monitor order by org, monitor limit 1
"""
_DELETE_LATE = "delete from late_writes where id = any(%(ids)s::bigint[])"
_LOCK_MONITOR = """
select 1 from {monitors} where org = %(org)s and id = %(monitor)s for key share
"""
# Only a deletion of the monitor waits for the lock.
_NEXT_MONITORS = """
select org, id from {monitors} where (org, id) > (%(org)s, %(monitor)s)
order by org, id limit %(most)s for key share
"""
# A monitor that is archived during the first statement is found by the second one.
_MONITORS: Final = ("monitors", "deleted_monitors")
_MOVE_CURSOR = "update packing set org = %(org)s, monitor = %(monitor)s"
_ADVANCE = """
update packing set packed_through = at(%(through)s),
  kept_from = coalesce(at(%(kept_from)s), kept_from), org = 0, monitor = 0, moved_at = at(%(now)s)
"""
_MOVE_MERGED = """
update packing set merged_through = at(%(through)s), merged_org = %(org)s,
  merged_monitor = %(monitor)s
"""
_LOCK_PIECES = f"select pg_advisory_xact_lock({PIECES_CLASS}, %(monitor)s::int)"
_TRY_PIECES = f"""
select n - 1 from unnest(%(monitors)s::int[]) with ordinality as k(monitor, n)
where not pg_try_advisory_xact_lock({PIECES_CLASS}, k.monitor) limit 1
"""
# Read once, before the first week.
_FIRST_PIECE = " union all ".join(f"(select min(from_at) from {packed})" for packed in PACKED)
# Whether a piece that is not of the day alone has rows of it, or ends beyond it.
_CROSSED = " or ".join(
    f"""exists (select from {packed} where org = %(org)s and monitor = %(monitor)s
  and from_at >= at(%(week)s) and from_at < at(%(until)s) and until_at >= at(%(day)s)
  and (from_at < at(%(day)s) or until_at >= at(%(until)s)))"""
    for packed in PACKED
)
_FEW_ROWS = f"""
select p.org, p.monitor
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join {{packed}} p on p.org = k.org and p.monitor = k.monitor
    and p.from_at >= at(%(from_at)s) and p.from_at < at(%(until)s)
group by 1, 2 having count(*) > 1 and sum(p.results) <= {MERGED_MOST} order by 1, 2
"""
_LEAST_SETTLED = """
select settled_through, region from shards order by settled_through, id limit 1
"""
# Batches keep all of their windows until the last one is settled.
_FIRST_OPEN = "select min(w.due) from run_batches s cross join unnest(s.due_ats) as w(due)"
_DELETE_PIECES = """
delete from {packed} where org = %(org)s and monitor = %(monitor)s
  and from_at >= at(%(from_at)s) and from_at < at(%(until)s)
"""
# The index is of `from_at`, which is not after `until_at`.
_DELETE_OLD_PIECES = """
delete from {packed} where ctid = any(array(
  select ctid from {packed}
  where from_at < at(%(before)s) and until_at < at(%(before)s) limit %(most)s))
"""
_DELETE_PIECES_OF = """
delete from {packed} where (org, monitor) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""
_RAISE_KEPT_FROM = """
update packing set kept_from = at(%(kept_from)s) where kept_from < at(%(kept_from)s)
"""


class PackingState(msgspec.Struct, frozen=True):
    """`org` and `monitor` are the last monitor whose next day is packed; see the migrations."""

    packed_through: Instant
    kept_from: Instant | None
    org: int
    monitor: int
    moved_at: Instant
    merged_through: Instant
    merged_org: int
    merged_monitor: int


class LateDay(msgspec.Struct, frozen=True):
    """A monitor with late rows in a day, and the rows of `late_writes` with this day."""

    org: int
    monitor: int
    marks: list[int]

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.monitor))


async def lock_packed_through(tx: Tx) -> Instant:
    """Returns the instant through which days are packed; it does not move before the commit."""
    await tx.execute(_SHARE)
    # A separate statement: its snapshot includes the commit that the lock waited for.
    found: Instant = await tx.value(_THROUGH)
    return found


async def select_packing(tx: Tx) -> PackingState:
    found = await tx.one(PackingState, _STATE)
    assert found is not None, "the migration inserts the row"
    return found


async def lock_packing(tx: Tx) -> PackingState | None:
    """Locks the state against other packers. Returns None if one has it."""
    return await tx.one(PackingState, _LOCK)


async def insert_late_writes(tx: Tx, rows: Collection[tuple[MonitorKey, Instant]]) -> None:
    """Marks (monitor, start of day) for packing again."""
    await tx.execute(
        _INSERT_LATE,
        **key_arrays([key for key, _ in rows], "monitors"),
        days=[day for _, day in rows],
    )


async def select_late_day(tx: Tx, day: Instant) -> LateDay | None:
    """Returns the first monitor with late rows in the day. Those rows are committed."""
    return await tx.one(LateDay, _LATE, day=day)


async def delete_late_writes(tx: Tx, late: LateDay) -> None:
    await tx.execute(_DELETE_LATE, ids=late.marks)


async def lock_monitor(tx: Tx, key: MonitorKey) -> bool:
    """Locks a monitor, or its archive, against deletion. Returns False if both are deleted."""
    for monitors in _MONITORS:
        query = _LOCK_MONITOR.format(monitors=monitors)
        if await tx.value(query, org=key[0], monitor=key[1]) is not None:
            return True
    return False


async def lock_next_monitors(tx: Tx, after: MonitorKey, most: int) -> list[MonitorKey]:
    """Returns the monitors after a key, also archived ones, locked against deletion."""
    those = {"org": after[0], "monitor": after[1], "most": most}
    found = [
        MonitorKey((org, monitor))
        for monitors in _MONITORS
        for org, monitor in await tx.rows(_NEXT_MONITORS.format(monitors=monitors), **those)
    ]
    return sorted(found)[:most]


async def move_cursor(tx: Tx, key: MonitorKey) -> None:
    await tx.execute(_MOVE_CURSOR, org=key[0], monitor=key[1])


async def advance_packed(tx: Tx, day: TimeSpan) -> bool:
    """Moves the instant over a day whose monitors all have their pieces.

    From the commit on, readers read the day from its pieces. Returns False, without a change, if a
    late writer is active or has left a row.
    """
    if not await tx.value(_TRY_ALONE) or await select_late_day(tx, day.from_):
        return False
    await tx.execute(_ADVANCE, through=day.until, kept_from=None, now=tx.now)
    return True


async def skip_days(tx: Tx, through: Instant, *, kept_from: Instant) -> bool:
    """Moves the instant over days without partitions, and the cursor before the first monitor.

    Returns False, without a change, if a late writer is active.
    """
    if not await tx.value(_TRY_ALONE):
        return False
    await tx.execute(_ADVANCE, through=through, kept_from=kept_from, now=tx.now)
    return True


async def move_merged(tx: Tx, week: Instant, after: MonitorKey) -> None:
    """Sets the start of the week that is merged, and the last monitor that was merged in it."""
    await tx.execute(_MOVE_MERGED, through=week, org=after[0], monitor=after[1])


async def lock_pieces(tx: Tx, key: MonitorKey) -> None:
    """Keeps the pieces of a monitor from being merged until the commit. Waits for a merger."""
    await tx.execute(_LOCK_PIECES, monitor=key[1])


async def lock_free_pieces(tx: Tx, keys: Sequence[MonitorKey]) -> list[MonitorKey]:
    """Returns the first of the keys, up to one whose pieces a late writer has locked.

    Pieces of later ones can be locked too. Never waits.
    """
    taken: int | None = await tx.value(_TRY_PIECES, monitors=[monitor for _, monitor in keys])
    return list(keys if taken is None else keys[:taken])


async def select_first_piece(tx: Tx) -> Instant | None:
    """Returns the start of the oldest piece. It reads all pieces, but not their arrays."""
    found: Instant | None = await tx.value(f"select min(min) from ({_FIRST_PIECE}) p")
    return found


async def select_few_rows(
    tx: Tx, keys: Sequence[MonitorKey], week: TimeSpan, packed: str
) -> list[MonitorKey]:
    """Returns the monitors whose several pieces of a week have at most MERGED_MOST rows.

    `packed` is the table of the pieces.
    """
    those = {**key_arrays(keys, "monitors"), "from_at": week.from_, "until": week.until}
    rows = await tx.rows(_FEW_ROWS.format(packed=packed), **those)
    return [MonitorKey((org, monitor)) for org, monitor in rows]


async def is_crossed(tx: Tx, key: MonitorKey, day: TimeSpan, week: TimeSpan) -> bool:
    """Returns whether a piece of the monitor with rows on both sides of an end of the day exists.

    `week` contains the day. The caller has locked the pieces.
    """
    those = {"org": key[0], "monitor": key[1], "week": week.from_}
    found: bool = await tx.value(f"select {_CROSSED}", day=day.from_, until=day.until, **those)
    return found


async def select_least_settled(tx: Tx) -> tuple[Instant, str] | None:
    """Returns the least instant through which a shard is settled, and its region.

    None without a shard.
    """
    row = await tx.row(_LEAST_SETTLED)
    return row and (Instant(row[0]), row[1])


async def select_first_open(tx: Tx) -> Instant | None:
    """Returns a lower bound of the due instants of all windows that are not settled."""
    found: Instant | None = await tx.value(_FIRST_OPEN)
    return found


async def delete_pieces(tx: Tx, key: MonitorKey, span: TimeSpan) -> None:
    """Deletes the pieces of a monitor that begin in the span."""
    those = {"org": key[0], "monitor": key[1], "from_at": span.from_, "until": span.until}
    for packed in PACKED:
        await tx.execute(_DELETE_PIECES.format(packed=packed), **those)


async def delete_pieces_of(tx: Tx, keys: Collection[MonitorKey]) -> None:
    """Deletes all pieces of monitors that are deleted before in the same transaction.

    That deletion waits for the packer and for late writers, so that no piece is added afterwards.
    """
    for packed in PACKED:
        await tx.execute(_DELETE_PIECES_OF.format(packed=packed), **key_arrays(keys, "monitors"))


async def delete_old_pieces(tx: Tx, before: Instant, most: int) -> int:
    """Deletes up to `most` pieces of each kind that end before an instant, the start of a day.

    Returns the larger number of deleted pieces.
    """
    await tx.execute(_RAISE_KEPT_FROM, kept_from=before)
    return max(
        [
            await tx.execute(_DELETE_OLD_PIECES.format(packed=packed), before=before, most=most)
            for packed in PACKED
        ]
    )
