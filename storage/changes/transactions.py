"""Recording of one phase of a change. A pipeline repeats a record until it gets an answer.

Invariants: equal concurrent records write one row, and all get it as the answer. A change never
names a decision of another service, or one that retention deleted.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ..accounts.rules.access import Grant, Need, Permission, Principal, Scope
from ..accounts.transactions.authorize import NOT_FOUND, demand
from ..core.refusal import Refused
from ..engine.pools import Tx
from ..services.rows import ServiceRow
from ..services.tables.services import lock_shared_service
from . import tables as changes
from .queries import changes as changes_queries
from .queries.change_gate_decisions import select_decided
from .rows import ChangeRow, PhaseRow
from .rules.change import ChangeFault, Code, Record, RecordedPhase, Replay, follow, occurred_at

RECORD: Final = Permission(Need.EDITOR, grant=Grant.CHANGE_RECORD)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """Recorded phase. `is_replay`: the phase was stored before."""

    service: ServiceRow
    change: ChangeRow
    phase: PhaseRow
    is_replay: bool


async def record_change(
    tx: Tx, principal: Principal, project: UUID, service: UUID, record: Record
) -> RecordedChange:
    """Records a phase.

    Raises:
        Refused not_found, forbidden, kind_mismatch, phase_exists, phase_order,
        occurred_at_out_of_bounds, occurred_at_before_start, decision_unknown.
    """
    home = await lock_shared_service(tx, service)
    if home is None or home.project_uid != project:
        raise Refused(NOT_FOUND)
    demand(principal, RECORD, Scope(home.org, home.project))
    change = await changes.make_change(tx, home.key, record, occurred_at(record, tx.now))
    phases = (await changes_queries.select_phases(tx, home.org, [change.id]))[change.id]
    match follow(change.kind, [each.known for each in phases], record, tx.now):
        case ChangeFault() as fault:
            raise Refused(fault.code, fault.field, fault.rule)
        case Replay():
            phase = next(each for each in phases if each.phase is record.phase)
            return RecordedChange(home, change, phase, is_replay=True)
        case RecordedPhase() as known:
            await _check_decision(tx, home, record)
            phase = await changes.add_phase(tx, change, known, principal.actor)
            return RecordedChange(home, change, phase, is_replay=False)


async def _check_decision(tx: Tx, service: ServiceRow, record: Record) -> None:
    uid = record.decision
    if uid is not None and uid not in await select_decided(tx, service.key, [uid]):
        rule = "must be a decision about this service that is still kept"
        raise Refused(Code.DECISION_UNKNOWN, "decision_id", rule)
