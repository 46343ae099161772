"""Deletion of projects and organizations with their contents.

A first transaction checks everything and refuses additions from then on. Services and monitors
are then deleted in one transaction each, so that no lock of the schedule is held for long
and every alert that was sent gets its end. The last transaction deletes the project or the
organization, and what belongs to it.
"""

from functools import partial
from typing import Final
from uuid import UUID

from msgspec.structs import asdict

from ...accounts.queries.projects import select_organization
from ...accounts.rows import INSTANCE, DeletionCounts, ManagedObject, OperationRow
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.tables import operations, projects
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand, demand_project
from ...core.instant import HOUR, SECOND, Instant
from ...core.refusal import Refused
from ...engine.pools import Pool, Tx
from ...monitors.tables.monitors import lock_monitor
from ...results.transactions.delete_history import delete_history_of
from ...services.tables import services
from ...services.tables.services import lock_service
from .delete_monitor import log_removed, remove_monitor
from .end_episode_of_deleted import end_with_service

DELETE_PROJECT: Final = Permission(Need.ORG_ADMIN)
DELETE_ORGANIZATION: Final = Permission(Need.GLOBAL_ADMIN)
INCIDENTS_OF_STEP: Final = 500
# Archived monitors, each with its pieces.
ARCHIVED_OF_STEP: Final = 10
# Longest wait for the first attempt of an event of the project.
DELIVERY_US: Final = 10 * SECOND


async def count_project(
    tx: Tx, principal: Principal, project: UUID, kept_from: Instant
) -> DeletionCounts:
    """Returns what the deletion of a project deletes. `kept_from`: start of the stored results.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    row = await demand_project(tx, principal, DELETE_PROJECT, project)
    await _expect_unmanaged(tx, row.org, [row.id])
    return await _count(tx, row.org, [row.id], kept_from, whole=False)


async def managed_in_project(
    tx: Tx, principal: Principal, project: UUID, most: int
) -> list[ManagedObject]:
    """Returns the objects that prevent the deletion of a project, at most `most`.

    Raises:
        Refused not_found, forbidden.
    """
    row = await demand_project(tx, principal, DELETE_PROJECT, project)
    return await removals.select_managed(tx, row.org, [row.id], most)


async def count_organization(
    tx: Tx, principal: Principal, organization: UUID, kept_from: Instant
) -> DeletionCounts:
    """Returns what the deletion of an organization deletes.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    row = await select_organization(tx, organization)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, DELETE_ORGANIZATION, Scope(row.id))
    found = await removals.select_projects_of(tx, row.id)
    await _expect_unmanaged(tx, row.id, found)
    return await _count(tx, row.id, found, kept_from, whole=True)


async def begin_project_deletion(
    tx: Tx, principal: Principal, project: UUID, counts: DeletionCounts
) -> UUID:
    """Begins the deletion of a project. Returns its operation, for `continue_deletion`.

    `counts` are those that the audit log states.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    row = await demand_project(tx, principal, DELETE_PROJECT, project)
    if not await removals.lock_project(tx, row.org, row.id):
        raise Refused(NOT_FOUND)
    await _expect_unmanaged(tx, row.org, [row.id])
    await removals.begin_deletion(tx, row.org, [row.id], whole=False)
    target = f"project:{row.uid} slug={row.slug} {_text_of(counts)}"
    await audit(tx, principal, row.org, "project.delete", target)
    return await operations.insert_operation(
        tx,
        operations.PROJECT_DELETE,
        row.org,
        row.id,
        started_by=principal.uid,
        total=counts.objects,
    )


async def begin_organization_deletion(
    tx: Tx, principal: Principal, organization: UUID, counts: DeletionCounts
) -> UUID:
    """Begins the deletion of an organization, as `begin_project_deletion`.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    if not await removals.lock_organization(tx, organization):
        raise Refused(NOT_FOUND)
    row = await select_organization(tx, organization)
    assert row is not None, "it is locked"
    demand(principal, DELETE_ORGANIZATION, Scope(row.id))
    found = await removals.lock_projects_of(tx, row.id)
    await _expect_unmanaged(tx, row.id, found)
    await removals.begin_deletion(tx, row.id, found, whole=True)
    target = f"organization:{row.uid} slug={row.slug} {_text_of(counts)}"
    await audit(tx, principal, INSTANCE, "organization.delete", target)
    return await operations.insert_operation(
        tx,
        operations.ORGANIZATION_DELETE,
        row.id,
        None,
        started_by=principal.uid,
        total=counts.objects,
    )


async def continue_deletion(pool: Pool, uid: UUID) -> bool:
    """Performs the next step of a deletion in its own transaction.

    Returns False if the operation ended or waits, or another process works on it.
    """
    return await pool.transact("deletion_step", partial(_continue, uid))


async def _continue(uid: UUID, tx: Tx) -> bool:
    operation = await operations.lock_running(tx, uid)
    if operation is None:
        return False
    return await delete_next(tx, operation)


async def abandon_deletion(tx: Tx, uid: UUID, error: str) -> None:
    """Ends a deletion that cannot continue as failed. `error` is the reason, for the caller.

    What is left of the project or organization is visible again, so that it can be deleted again.
    """
    operation = await operations.lock_running(tx, uid)
    if operation is None:
        return
    await operations.fail(tx, uid, error)
    await removals.end_deletion(tx, operation.org, operation.project)


async def delete_next(tx: Tx, operation: OperationRow) -> bool:
    """Deletes the next service, monitor or incidents of a locked operation, or a project.

    Ends the operation after the last deletion. Returns False if it waits for deliveries.
    """
    assert operation.kind in (operations.PROJECT_DELETE, operations.ORGANIZATION_DELETE)
    org = operation.org
    project = operation.project
    if operation.kind == operations.ORGANIZATION_DELETE:
        project = await removals.select_next_project(tx, org)
    if project is None:
        await removals.delete_what_stays_within(tx, org)
        await projects.delete_organization(tx, org)
        await operations.succeed(tx, operation.uid)
        return True
    done = await _delete_contents(tx, org, project)
    if not done and await removals.delete_incidents(tx, org, project, INCIDENTS_OF_STEP):
        return True
    if not done:
        since = max(operation.created_at, Instant(tx.now - DELIVERY_US))
        if await removals.is_delivery_pending(tx, org, project, since):
            # The channels are deleted with the project: ends of alerts get a first attempt before.
            return False
        if gone := await removals.delete_archive(tx, org, project, ARCHIVED_OF_STEP):
            await delete_history_of(tx, gone)
            return True
        await operations.end_actions_of_project(tx, org, project)
        await removals.lock_destinations(tx, org, project)
        await projects.delete_project(tx, org, project)
        done = 1
        if operation.project is not None:
            await operations.succeed(tx, operation.uid)
            return True
    await operations.advance(tx, operation.uid, done)
    return True


async def _delete_contents(tx: Tx, org: int, project: int) -> int:
    """Deletes one service or one monitor. Returns how many; 0 if none is left."""
    uid = await removals.select_next_service(tx, org, project)
    if uid is not None:
        service = await lock_service(tx, uid)
        if service is not None:
            await end_with_service(tx, service)
            await services.delete_service(tx, service.key)
        return 1
    uid = await removals.select_next_monitor(tx, org, project)
    if uid is None:
        return 0
    monitor = await lock_monitor(tx, uid, to_delete=True)
    if monitor is not None:
        await remove_monitor(tx, monitor)
        await log_removed(tx, [monitor])
    return 1


async def _expect_unmanaged(tx: Tx, org: int, projects_: list[int]) -> None:
    """Refuses if a bundle or a file provider manages an object, since it would create it again."""
    for managed in await removals.select_managed(tx, org, projects_):
        message = f"managed by {managed.managed_by or 'a bundle'}"
        raise Refused("managed_by_file", f"{managed.kind} {managed.name}", message)


async def _count(
    tx: Tx, org: int, projects_: list[int], kept_from: Instant, *, whole: bool
) -> DeletionCounts:
    hour = Instant(kept_from - kept_from % HOUR)
    return await removals.count_contents(tx, org, projects_, whole=whole, kept_from=hour)


def _text_of(counts: DeletionCounts) -> str:
    return " ".join(f"{name}={number}" for name, number in asdict(counts).items())
