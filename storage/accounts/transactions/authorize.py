"""Asks whether the principal may, and says no in the one way that reveals nothing it should not."""

from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from ...core.instant import Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.projects import select_project
from ..rows import ProjectRow
from ..rules.access import AccessDecision, Permission, Principal, Scope, may
from ..tables.audit_entries import insert_audits

NOT_FOUND = "not_found"
FORBIDDEN = "forbidden"


def demand(principal: Principal, action: Permission, scope: Scope | None) -> None:
    """Refused not_found or forbidden where the principal may not."""
    match may(principal, action, scope):
        case AccessDecision.HIDDEN:
            raise Refused(NOT_FOUND)
        case AccessDecision.REFUSED:
            raise Refused(FORBIDDEN)
        case AccessDecision.ALLOWED:
            return


async def demand_project(
    tx: Tx, principal: Principal, action: Permission, project: UUID
) -> ProjectRow:
    """The project, if the principal may do this there."""
    row = await select_project(tx, project)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.id))
    return row


class ProjectObject(Protocol):
    """A row of a project: a monitor, a channel, an incident and so on."""

    @property
    def org(self) -> int: ...
    @property
    def project(self) -> int | None: ...


R = TypeVar("R", bound=ProjectObject)


def demand_row(principal: Principal, action: Permission, row: R | None) -> R:
    """Returns the row. Refused not_found if there is none, and if the principal may not see it;
    forbidden if the principal may see it and may not do this."""
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.project))
    return row


def is_managed(principal: Principal, managed_by: str, orphaned_at: Instant | None) -> bool:
    """Whether files say what it is, and not those in whose name the principal writes. What its
    files no longer name is anyone's."""
    return managed_by not in ("", principal.provider) and orphaned_at is None


async def audit(tx: Tx, principal: Principal, org: int, action: str, target: str) -> None:
    """One row for a principal's write, in its transaction."""
    await audit_many(tx, principal, [(org, action, target)])


async def audit_many(tx: Tx, principal: Principal, writes: Sequence[tuple[int, str, str]]) -> None:
    """The same of (organization, action, target) each."""
    actor = principal.user if isinstance(principal.user, UUID) else None
    await insert_audits(tx, writes, actor, principal.label, via_token=principal.via_token)
