"""Changes of services by identity, and their phases. Invariant: phases are only inserted.

Adding a phase locks the change, so that of two equal concurrent records one inserts the phase and
the other finds it.
"""

from typing import Any

from msgspec import structs
from uuid_utils.compat import uuid7

from ..accounts.rules.access import Actor
from ..core.instant import Instant
from ..core.key import ServiceKey
from ..engine.pools import LockRank, Tx
from .rows import ChangeRow, PhaseRow
from .rules.change import ChangeKind, Record, RecordedPhase

COLUMNS = "c.org, c.id, c.service, c.source, c.external_id, c.kind, c.started_at, c.latest_at"
# A concurrent insert of the same identity waits, and then finds the row.
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
_ADD = """
insert into change_phases (org, change, uid, phase, occurred_at, ref, url, decision, actor_label,
  actor_user, via_token, recorded_at)
values (%(org)s, %(change)s, %(uid)s, %(phase)s, at(%(occurred_at)s), %(ref)s, %(url)s,
  %(decision)s, %(actor_label)s, %(actor_user)s, %(via_token)s, at(%(recorded_at)s))
"""
_MOVE = """
update changes set latest_at = at(%(at)s) where org = %(org)s and id = %(change)s
"""


async def make_change(tx: Tx, service: ServiceKey, record: Record, at: Instant) -> ChangeRow:
    """Locks the change of an identity, and inserts a new one with the start `at`.

    The caller has locked the service, shared.
    """
    tx.lock_rank(LockRank.CHANGE, "a change for a new phase")
    identity = _identity(service, record.source, record.external_id)
    await tx.execute(_MAKE, **identity, kind=record.kind.value, at=at)
    row = await tx.one(change_row, f"{_ONE} for update", **identity)
    assert row is not None, "a change is deleted only with its service"
    return row


async def add_phase(tx: Tx, change: ChangeRow, known: RecordedPhase, by: Actor) -> PhaseRow:
    """Inserts the latest phase of a locked change."""
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
    """Returns the row for `COLUMNS`."""
    row = ChangeRow(*columns)
    return structs.replace(row, kind=ChangeKind(row.kind))


def _identity(service: ServiceKey, source: str, external_id: str) -> dict[str, Any]:
    return {
        "org": service[0],
        "service": service[1],
        "source": source,
        "external_id": external_id,
    }
