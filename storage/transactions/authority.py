"""Asks whether the principal may, and says no in the one way that reveals nothing it should not."""

from uuid import UUID

from ..pools import Tx
from ..rules.access import Action, Answer, Principal, Scope, may
from ..rules.refusal import Refused
from ..tables.audits import insert_audit
from ..tables.monitors import MonitorRow, lock_monitor
from ..tables.projects import ProjectRow, select_project

NOT_FOUND = "not_found"
FORBIDDEN = "forbidden"


def demand(principal: Principal, action: Action, scope: Scope | None) -> None:
    """Refused not_found or forbidden where the principal may not."""
    match may(principal, action, scope):
        case Answer.HIDDEN:
            raise Refused(NOT_FOUND)
        case Answer.REFUSED:
            raise Refused(FORBIDDEN)
        case Answer.ALLOWED:
            return


async def demand_project(tx: Tx, principal: Principal, action: Action, project: UUID) -> ProjectRow:
    """The project, if the principal may do this there."""
    row = await select_project(tx, project)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.id))
    return row


async def demand_monitor(
    tx: Tx, principal: Principal, action: Action, monitor: UUID, region: str = ""
) -> MonitorRow:
    """The monitor, locked for writing, if the principal may do this to it; `region` is one that
    it may be moved to."""
    row = await lock_monitor(tx, monitor, region)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.project))
    return row


async def audit(tx: Tx, principal: Principal, org: int, action: str, target: str) -> None:
    """One row for a principal's write, in its transaction."""
    actor = principal.user if isinstance(principal.user, UUID) else None
    await insert_audit(
        tx, org, actor, principal.label, action, target, via_token=principal.via_token
    )
