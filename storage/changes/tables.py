"""Changes of services, each known by its identity, and their phases, which are only ever added.

Whoever adds a phase holds the change: of two who say the same at once, one adds it and the other
finds it.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID

import msgspec
from msgspec import structs
from uuid_utils.compat import uuid7

from ..accounts.rules.access import Actor
from ..core.instant import Instant
from ..engine.pools import LockRank, Tx
from .rules.change import Kind, Known, Phase, Record

Key = tuple[int, int]

COLUMNS = "c.org, c.id, c.service, c.source, c.external_id, c.kind, c.started_at, c.latest_at"
_PHASE = """
p.org, p.change, p.uid, p.phase, p.occurred_at, p.ref, p.url, p.decision, p.actor_label,
p.actor_user, p.via_token, p.recorded_at
"""
# Who comes while another is making it waits, and then finds it.
_MAKE = """
insert into changes (org, service, source, external_id, kind, started_at, latest_at)
values (%(org)s, %(service)s, %(source)s, %(external_id)s, %(kind)s, at(%(at)s), at(%(at)s))
on conflict (org, service, source, external_id) do nothing
"""
_ONE = f"""
select {COLUMNS} from changes c
where c.org = %(org)s and c.service = %(service)s and c.source = %(source)s
  and c.external_id = %(external_id)s
"""
_PHASES = f"""
select {_PHASE} from change_phases p
where p.org = %(org)s and p.change = any(%(changes)s::bigint[])
order by p.change, p.phase <> 'started'
"""
_ADD = """
insert into change_phases (org, change, uid, phase, occurred_at, ref, url, decision, actor_label,
  actor_user, via_token, recorded_at)
values (%(org)s, %(change)s, %(uid)s, %(phase)s, at(%(occurred_at)s), %(ref)s, %(url)s,
  %(decision)s, %(actor_label)s, %(actor_user)s, %(via_token)s, at(%(recorded_at)s))
"""
_MOVE = """
update changes set latest_at = at(%(at)s) where org = %(org)s and id = %(change)s
"""


class ChangeRow(msgspec.Struct, frozen=True):
    """`started_at` is the instant of the phase that began it, else of the one that ended it."""

    org: int
    id: int
    service: int
    source: str
    external_id: str
    kind: Kind
    started_at: Instant
    latest_at: Instant


class PhaseRow(msgspec.Struct, frozen=True):
    """`actor_user` is None where no person is known; who it was stands in the label."""

    org: int
    change: int
    uid: UUID
    phase: Phase
    occurred_at: Instant
    ref: str
    url: str
    decision: UUID | None
    actor_label: str
    actor_user: UUID | None
    via_token: bool
    recorded_at: Instant

    @property
    def known(self) -> Known:
        return Known(
            phase=self.phase,
            occurred_at=self.occurred_at,
            ref=self.ref,
            url=self.url,
            decision=self.decision,
        )


async def make_change(tx: Tx, service: Key, record: Record, at: Instant) -> ChangeRow:
    """The change of an identity, held; where it is new it is made, to begin at that instant. The
    service is kept."""
    tx.lock_rank(LockRank.CHANGE, "a change that a phase is added to")
    identity = _identity(service, record.source, record.external_id)
    await tx.execute(_MAKE, **identity, kind=record.kind.value, at=at)
    row = await tx.one(change_row, f"{_ONE} for update", **identity)
    assert row is not None, "it goes only with its service"
    return row


async def select_change(tx: Tx, service: Key, source: str, external_id: str) -> ChangeRow | None:
    return await tx.one(change_row, _ONE, **_identity(service, source, external_id))


async def select_phases(tx: Tx, org: int, changes: Collection[int]) -> dict[int, list[PhaseRow]]:
    """Of each change in their order: what began it, what ended it."""
    found: dict[int, list[PhaseRow]] = {change: [] for change in changes}
    for row in await tx.structs(_phase_row, _PHASES, org=org, changes=list(changes)):
        found[row.change].append(row)
    return found


async def add_phase(tx: Tx, change: ChangeRow, known: Known, by: Actor) -> PhaseRow:
    """The last of a change that is held."""
    row = PhaseRow(
        org=change.org,
        change=change.id,
        uid=uuid7(),
        phase=known.phase,
        occurred_at=known.occurred_at,
        ref=known.ref,
        url=known.url,
        decision=known.decision,
        actor_label=by.label,
        actor_user=by.user,
        via_token=by.via_token,
        recorded_at=tx.now,
    )
    await tx.execute(_ADD, **structs.asdict(row))
    if row.occurred_at != change.latest_at:
        await tx.execute(_MOVE, org=row.org, change=row.change, at=row.occurred_at)
    return row


def change_row(*columns: Any) -> ChangeRow:
    """Of COLUMNS."""
    row = ChangeRow(*columns)
    return structs.replace(row, kind=Kind(row.kind))


def _phase_row(*columns: Any) -> PhaseRow:
    row = PhaseRow(*columns)
    return structs.replace(row, phase=Phase(row.phase))


def _identity(service: Key, source: str, external_id: str) -> dict[str, Any]:
    return {
        "org": service[0],
        "service": service[1],
        "source": source,
        "external_id": external_id,
    }
