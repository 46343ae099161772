"""JSON of changes: phases, gate decision, and the comparison of before and after."""

from collections.abc import Sequence
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.changes.queries.change_comparison import Comparison
from ....storage.changes.queries.change_timeline import ChangeGroup
from ....storage.changes.rows import ChangeRow, PhaseRow
from ....storage.changes.rules.change import ChangePhaseName, last_recorded
from ....storage.changes.rules.change_comparison import Side
from ....storage.core.availability import percent
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.gate.rules.gate import GateAction, GateState
from ...wire.schema import instant_text, known
from .. import schemas as shapes

_ENDS: Final[dict[ChangePhaseName, Literal["succeeded", "failed", "cancelled"]]] = {
    ChangePhaseName.SUCCEEDED: "succeeded",
    ChangePhaseName.FAILED: "failed",
    ChangePhaseName.CANCELLED: "cancelled",
}


def phase_json(row: PhaseRow) -> shapes.ChangePhase:
    return shapes.ChangePhase(
        id=row.uid,
        phase=row.phase,
        occurred_at=to_text(row.occurred_at),
        ref=row.ref,
        url=row.url,
        decision_id=known(row.decision),
        actor_label=row.actor_label,
        actor_user_id=row.actor_user,
        via_token=row.via_token,
        recorded_at=to_text(row.recorded_at),
    )


def row_json(service: UUID, change: ChangeRow, row: PhaseRow) -> shapes.ChangeRow:
    return shapes.ChangeRow(
        **msgspec.structs.asdict(phase_json(row)),
        service_id=service,
        source=change.source,
        external_id=change.external_id,
        kind=change.kind,
    )


def group_json(group: ChangeGroup) -> shapes.ChangeGroup:
    change = group.change
    began = group.phases[0].uid
    return shapes.ChangeGroup(
        source=change.source,
        external_id=change.external_id,
        kind=change.kind,
        ref=group.ref,
        url=group.url,
        latest_occurred_at=to_text(change.latest_at),
        phases=[phase_json(phase) for phase in group.phases],
        decision=known(_decision_json(group)),
        incidents=[
            shapes.ChangeIncidentLink(
                incident_id=each.incident,
                opened_at=to_text(each.started_at),
                role=each.role,
                lag_seconds=each.lag_seconds,
                change_id=began,
            )
            for each in group.incidents
        ],
    )


def _decision_json(group: ChangeGroup) -> shapes.ChangeDecisionLink | None:
    if group.decision is None:
        return None
    decided = group.decided
    if decided is None:
        return shapes.ChangeDecisionLink(decision_id=group.decision, aged_out=True)
    return shapes.ChangeDecisionLink(
        decision_id=group.decision,
        state=GateState(decided.state),
        action=known(None if decided.action is None else GateAction(decided.action)),
        overridden=decided.is_overridden,
    )


def comparison_json(
    change: ChangeRow,
    phases: Sequence[PhaseRow],
    found: Comparison,
    horizon: str,
    sealed_through: Instant | None,
    now: Instant,
) -> shapes.ChangeCompare:
    delta = found.delta
    return shapes.ChangeCompare(
        source=change.source,
        external_id=change.external_id,
        kind=change.kind,
        ref=last_recorded([phase.ref for phase in phases]),
        change_id=phases[0].uid,
        terminal_phase=_ENDS[found.ended.phase],
        t=to_text(found.ended.occurred_at),
        horizon=horizon,
        sealed_through=None if sealed_through is None else to_text(sealed_through),
        as_of=to_text(now),
        before=_side_json(found.before, sealed_through),
        after=_side_json(found.after, sealed_through),
        delta=known(None if delta is None else float(delta)),
    )


def _side_json(side: Side, sealed_through: Instant | None) -> shapes.ChangeCompareSide:
    facts = side.facts
    return shapes.ChangeCompareSide(
        from_=to_text(side.span.from_),
        to=to_text(side.span.until),
        availability=known(None if side.availability is None else percent(side.availability)),
        good_seconds=known(None if facts is None else facts.split.good_us / SECOND),
        bad_seconds=known(None if facts is None else facts.split.bad_us / SECOND),
        unknown_seconds=known(None if facts is None else facts.split.unknown_us / SECOND),
        excluded_seconds=known(None if facts is None else facts.split.excluded_us / SECOND),
        buckets=known(None if facts is None else facts.minutes),
        withheld=known(side.withheld),
        detail=known(side.detail or None),
        pending=known(True if side.is_pending else None),
        sealed_through=instant_text(sealed_through if side.is_pending else None),
    )
