"""Presences: one row per process and unbroken period."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from ....probes.jobs.agent_protocol import OF_PROCESSES
from ...core.instant import SECOND, Instant
from ...engine.pools import Tx
from ..rows import PresenceRow

# A presence that was not renewed for this long is over.
LIVE_US: Final = 15 * SECOND
# Capability of a process that finds the verdict of a window in the row of its result.
SHARED_ROWS: Final = "shared_rows@1"

_RENEW = """
update presences set through_at = greatest(through_at, at(%(through)s))
where process = %(process)s and from_at = at(%(from_at)s) and not ended
  and through_at >= at(%(through)s) - interval '15 seconds'
"""

_BEGIN = """
insert into presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes,
  knows_schedules, knows)
values (%(process)s, at(%(from_at)s), at(%(from_at)s), %(host)s, %(roles)s::text[],
  %(regions)s::text[], %(version)s, %(accepts_pushes)s, true, %(knows)s::text[])
on conflict (process, from_at) do nothing
"""

# Notification channel on which processes ask each other to renew their presence.
ASKED = "leadline_presence"
_ASK = "select pg_notify(%(channel)s, '')"

_END = """
update presences set ended = true, through_at = greatest(through_at, at(%(through)s))
where process = %(process)s and from_at = at(%(from_at)s)
"""

# A presence far ahead was written by a wrong clock and is ignored.
_READ_CLOCK = """
select clock_timestamp(), (select max(through_at) from presences
  where through_at < clock_timestamp() + interval '7 days')
"""

# Selects presences that overlap the range. The reader handles unclean ends.
_LISTENING = """
select process, from_at, through_at, ended from presences
where accepts_pushes and through_at >= at(%(after)s) order by from_at
"""

_LIVE = """
select process, host, roles, regions, version, from_at, through_at from presences
where not ended and through_at > at(%(now)s) - interval '15 seconds' order by host, from_at
"""

_PUT_OPENS_NOTHING = """
update presences set opens_nothing = %(opens_nothing)s
where process = %(process)s and not ended and opens_nothing is distinct from %(opens_nothing)s
"""

_KEY_STATES = """
select host, coalesce(bool_or(opens_nothing), false), bool_or(opens_nothing is null)
from presences where not ended and through_at > at(%(now)s) - interval '15 seconds'
group by host
"""

_OTHER_VERSIONS = """
select exists (select from presences
  where not ended and through_at > at(%(since)s) and version <> %(version)s)
"""

_IGNORES_SCHEDULES = """
select exists (select from presences
  where not ended and through_at > at(%(now)s) - interval '15 seconds' and not knows_schedules)
"""

_LACKS = """
select exists (select from presences where not ended
  and through_at > at(%(since)s) and not knows @> %(needed)s::text[])
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
    """Inserts a presence. `regions` are those that the process probes in, possibly empty."""
    await tx.execute(
        _BEGIN,
        process=process,
        from_at=from_at,
        host=host,
        roles=list(roles),
        regions=list(regions),
        version=version,
        accepts_pushes=accepts_pushes,
        knows=sorted({*OF_PROCESSES, SHARED_ROWS}),
    )


async def renew_presence(tx: Tx, process: UUID, from_at: Instant, through: Instant) -> bool:
    """Returns False if the presence has expired and a new one must begin."""
    return bool(await tx.execute(_RENEW, process=process, from_at=from_at, through=through))


async def put_opens_nothing(tx: Tx, process: UUID, *, opens_nothing: bool) -> None:
    """Records whether the keys of a process decrypt none of the stored values."""
    await tx.execute(_PUT_OPENS_NOTHING, process=process, opens_nothing=opens_nothing)


async def select_key_states(tx: Tx, now: Instant) -> dict[str, bool | None]:
    """Returns for each live host whether the keys of one of its processes decrypt nothing.

    None: no process reports that, and not all have reported.
    """
    rows = await tx.rows(_KEY_STATES, now=now)
    return {host: True if fails else None if unknown else False for host, fails, unknown in rows}


async def ask_others(tx: Tx) -> None:
    """Asks all processes to renew their presence. The notification is sent on commit."""
    await tx.value(_ASK, channel=ASKED)


async def end_presence(tx: Tx, process: UUID, from_at: Instant, through: Instant) -> None:
    await tx.execute(_END, process=process, from_at=from_at, through=through)


async def select_other_versions(tx: Tx, version: str, since: Instant) -> bool:
    """Returns whether a process of another version was present since an instant."""
    found: bool = await tx.value(_OTHER_VERSIONS, version=version, since=since)
    return found


async def read_clock(tx: Tx) -> tuple[Instant, Instant | None]:
    """Returns the clock of the database and the latest presence of any process."""
    row = await tx.row(_READ_CLOCK)
    assert row is not None, "a select without a table answers with one row"
    database, latest = row
    return database, latest


async def select_listening(tx: Tx, after: Instant) -> list[Listening]:
    return await tx.structs(Listening, _LISTENING, after=after)


async def select_live(tx: Tx, now: Instant) -> list[PresenceRow]:
    return await tx.structs(PresenceRow, _LIVE, now=now)


async def ignores_schedules(tx: Tx) -> bool:
    """Returns whether a process of a version without cron expressions is present."""
    found: bool = await tx.value(_IGNORES_SCHEDULES, now=tx.now)
    return found


async def lacks_capability(tx: Tx, needed: Collection[str], within_us: int = LIVE_US) -> bool:
    """Returns whether a process without one of these capabilities was present within a time."""
    since = Instant(tx.now - within_us)
    found: bool = await tx.value(_LACKS, needed=sorted(needed), since=since)
    return found


async def purge_presences(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
