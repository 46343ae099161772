"""Authorization in transactions: refusals that do not reveal hidden objects."""

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
    """Checks a permission.

    Raises:
        Refused not_found, forbidden.
    """
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
    """Returns the project if the principal has the permission.

    Raises:
        Refused not_found, forbidden.
    """
    row = await select_project(tx, project)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.id))
    return row


class ProjectObject(Protocol):
    """Row of a project, such as a monitor, channel or incident."""

    @property
    def org(self) -> int: ...
    @property
    def project(self) -> int | None: ...


R = TypeVar("R", bound=ProjectObject)


def demand_row(principal: Principal, action: Permission, row: R | None) -> R:
    """Returns the row.

    Raises:
        Refused not_found if it does not exist or is not visible to the principal; forbidden if it
        is visible and the action is not permitted.
    """
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, action, Scope(row.org, row.project))
    return row


def is_managed(principal: Principal, managed_by: str, orphaned_at: Instant | None) -> bool:
    """Returns whether an object belongs to files of another provider than the principal's.

    An orphan is editable by all.
    """
    return managed_by not in ("", principal.provider) and orphaned_at is None


async def audit(tx: Tx, principal: Principal, org: int, action: str, target: str) -> None:
    """Writes an audit entry for a write of the principal, in the same transaction."""
    await audit_many(tx, principal, [(org, action, target)])


async def audit_many(tx: Tx, principal: Principal, writes: Sequence[tuple[int, str, str]]) -> None:
    """Writes audit entries of (organization, action, target).

    Writes of bundles and file providers are not audited.
    """
    if principal.provider:
        return
    actor = principal.user if isinstance(principal.user, UUID) else None
    await insert_audits(tx, writes, actor, principal.label, via_token=principal.via_token)
