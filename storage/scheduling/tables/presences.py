"""Who is there: one row a process and an unbroken stretch of being there."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import PresenceRow

_RENEW = """
update presences set through_at = greatest(through_at, at(%(through)s))
where process = %(process)s and from_at = at(%(from_at)s) and not ended
  and through_at >= at(%(through)s) - interval '15 seconds'
"""

_BEGIN = """
insert into presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes)
values (%(process)s, at(%(from_at)s), at(%(from_at)s), %(host)s, %(roles)s::text[],
  %(regions)s::text[], %(version)s, %(accepts_pushes)s)
on conflict (process, from_at) do nothing
"""

# On what channel processes ask each other how far they have listened.
ASKED = "leadline_presence"
_ASK = "select pg_notify(%(channel)s, '')"

_END = """
update presences set ended = true, through_at = greatest(through_at, at(%(through)s))
where process = %(process)s and from_at = at(%(from_at)s)
"""

# One that lies far ahead was written by a clock that somebody set; it is not followed there.
_READ_CLOCK = """
select clock_timestamp(), (select max(through_at) from presences
  where through_at < clock_timestamp() + interval '7 days')
"""

# Overlapping what is asked; an unclean end is judged by the reader, who knows what `ended` means.
_LISTENING = """
select process, from_at, through_at, ended from presences
where accepts_pushes and through_at >= at(%(after)s) order by from_at
"""

_LIVE = """
select process, host, roles, regions, version, from_at, through_at from presences
where not ended and through_at > at(%(now)s) - interval '15 seconds' order by host, from_at
"""

_DROP = "delete from presences where through_at < at(%(before)s)"


class Listening(msgspec.Struct, frozen=True):
    process: UUID
    from_at: Instant
    through_at: Instant
    ended: bool


async def begin_presence(
    tx: Tx,
    process: UUID,
    from_at: Instant,
    host: str,
    roles: Sequence[str],
    regions: list[str] | tuple[str, ...],
    version: str,
    *,
    accepts_pushes: bool,
) -> None:
    """`regions` are those that the process probes in; none for one that does not probe."""
    await tx.execute(
        _BEGIN,
        process=process,
        from_at=from_at,
        host=host,
        roles=list(roles),
        regions=list(regions),
        version=version,
        accepts_pushes=accepts_pushes,
    )


async def renew_presence(tx: Tx, process: UUID, from_at: Instant, through: Instant) -> bool:
    """False where the stretch is broken, and a new one must begin."""
    return bool(await tx.execute(_RENEW, process=process, from_at=from_at, through=through))


async def ask_others(tx: Tx) -> None:
    """With the commit every process that hears ASKED renews its presence at once."""
    await tx.value(_ASK, channel=ASKED)


async def end_presence(tx: Tx, process: UUID, from_at: Instant, through: Instant) -> None:
    await tx.execute(_END, process=process, from_at=from_at, through=through)


async def read_clock(tx: Tx) -> tuple[Instant, Instant | None]:
    """The database's clock, and the latest that any process was there."""
    row = await tx.row(_READ_CLOCK)
    assert row is not None, "a select without a table answers with one row"
    database, latest = row
    return database, latest


async def select_listening(tx: Tx, after: Instant) -> list[Listening]:
    return await tx.structs(Listening, _LISTENING, after=after)


async def select_live(tx: Tx, now: Instant) -> list[PresenceRow]:
    return await tx.structs(PresenceRow, _LIVE, now=now)


async def purge_presences(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
