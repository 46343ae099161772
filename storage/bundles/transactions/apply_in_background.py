"""Application of a bundle in the background, which continues after the answer to its request.

The application is one transaction, so a failure changes nothing. Its progress is written by other
transactions meanwhile.
"""

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import msgspec

from ...accounts.queries.operations import select_operation
from ...accounts.queries.principals import select_again
from ...accounts.queries.projects import select_project
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import AccessDecision, CredentialKind, Principal, Scope, may
from ...accounts.tables import operations
from ...accounts.tables.tenant_deletion import lock_shared_project
from ...accounts.transactions.authorize import NOT_FOUND, demand_project
from ...accounts.transactions.edit_members import EDIT as INVITE
from ...core.refusal import Refused
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Pool, Tx
from ...monitors.transactions.config_secrets import split
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ..rows import ApplicationRow
from ..rules.bundle import Bundle
from ..rules.bundle_diff import API
from ..tables import bundle_applications
from .apply_bundle import APPLY, write_bundle
from .bundle_context import ApplyContext, ApplySource, entry_context, expect_home
from .stored_changes import stored_changes

BUSY: Final = "bundle_busy"
STOPPED: Final = "bundle_stopped"
UNAUTHORIZED: Final = "bundle_unauthorized"
# Kinds that administrators of the organization apply.
_OF_ADMINS: Final = frozenset({"person", "status_page", "webhook"})
_UNAUTHORIZED: Final = (
    "the account or the token that began the application may no longer apply bundles to the project"
)


async def begin_application(
    tx: Tx,
    project: UUID,
    bundle: Bundle,
    document: dict[str, Any],
    applied: ApplySource,
    keyring: Keyring,
) -> UUID:
    """Begins an application and returns its operation, for `perform_application`.

    `document` is the JSON form of the bundle.

    Raises:
        Refused not_found, forbidden, invalid if the bundle is for another project, bundle_busy if
        an application to the project is running, encryption_key_missing if the bundle contains a
        document that must be encrypted and no key exists.
    """
    who = applied.principal
    home = await demand_project(tx, who, APPLY, project)
    if not await lock_shared_project(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    await expect_home(tx, bundle, home)
    total = len(bundle.named)
    uid = await operations.insert_application(
        tx, home.org, home.id, started_by=who.uid, total=total
    )
    if uid is None:
        raise Refused(BUSY, "", "another bundle is being applied to the project: try again later")
    text, sealed = _close(bundle, document, uid, keyring)
    await bundle_applications.insert_application_row(
        tx,
        ApplicationRow(
            operation=uid,
            project=project,
            document=text,
            document_ciphertext=sealed,
            path=applied.path,
            take_over=applied.take_over,
            revision=applied.revision,
            actor_label=who.label,
            actor_user=who.actor.user,
        ),
    )
    return uid


def _close(
    bundle: Bundle, document: dict[str, Any], operation: UUID, keyring: Keyring
) -> tuple[str | None, bytes | None]:
    """Returns the document as text, or encrypted if a part of it is encrypted in `monitors`."""
    data = msgspec.json.encode(document)
    if any(split(entry.type, entry.config)[1] for entry in bundle.monitors.values()):
        return None, keyring.seal(data, _place_of(operation))
    return data.decode(), None


def open_document(row: ApplicationRow, keyring: Keyring) -> bytes:
    """Returns the JSON of the bundle. CannotOpen if no key of the ring decrypts it."""
    if row.document_ciphertext is not None:
        return keyring.open(row.document_ciphertext, _place_of(row.operation))
    return (row.document or "").encode()


def _place_of(operation: UUID) -> CipherContext:
    return CipherContext("bundle_applications", "document_ciphertext", operation)


def source_of_row(row: ApplicationRow) -> ApplySource:
    """Returns the origin of an application, whose rights `perform_application` checks."""
    who = Principal(
        CredentialKind.SESSION,
        user=row.actor_user,
        is_global_admin=True,
        label=row.actor_label,
        provider=API,
    )
    return ApplySource(principal=who, path=row.path, take_over=row.take_over, revision=row.revision)


async def perform_application(
    pool: Pool, uid: UUID, project: UUID, bundle: Bundle, applied: ApplySource, ground: ApplyContext
) -> bool:
    """Performs an application and ends its operation, in one transaction.

    Returns False if it has ended, or another process performs it.

    Raises:
        Refused as write_bundle, not_found if the project was deleted, bundle_unauthorized if the
        caller who began it has no longer the right to apply a bundle.
    """

    async def work(tx: Tx) -> bool:
        if not await bundle_applications.lock_application(tx, uid):
            return False
        home = await select_project(tx, project)
        if home is None:
            raise Refused(NOT_FOUND, "", "the project was deleted")
        inviter = await _expect_right(tx, uid, home)
        terms = await entry_context(tx, home.org, ground)
        together = MonitorWriteBatch(applied.principal, edits_regional=True)
        # The principal has all rights, so that another process can continue what one began.
        source = replace(applied, inviter=inviter)
        changes = await write_bundle(tx, together, project, bundle, source, terms)
        await together.write_ahead(tx)
        # An application can run for minutes.
        invites = any(one.kind in _OF_ADMINS for one in changes) and _may_invite(inviter, home)
        if not _may_invite(await _expect_right(tx, uid, home), home) and invites:
            raise Refused(UNAUTHORIZED, "", _UNAUTHORIZED)
        kept = stored_changes(changes)
        result = msgspec.json.encode({"changes": kept, "applied": True}).decode()
        if not await operations.succeed_with(tx, uid, len(changes), result):
            raise Refused(STOPPED, "", await operations.stop_reason(tx, uid) or "")
        await bundle_applications.delete_application(tx, uid)
        await together.publish(tx)
        return True

    return await pool.transact("apply_bundle_operation", work)


def _may_invite(who: Principal, home: ProjectRow) -> bool:
    return may(who, INVITE, Scope(home.org)) is AccessDecision.ALLOWED


async def _expect_right(tx: Tx, uid: UUID, home: ProjectRow) -> Principal:
    """Returns the caller who began the application, after a check of the right to apply."""
    operation = await select_operation(tx, uid)
    began = None if operation is None else operation.started_by
    who = None if began is None else await select_again(tx, began)
    if who is None or may(who, APPLY, Scope(home.org, home.id)) is not AccessDecision.ALLOWED:
        raise Refused(UNAUTHORIZED, "", _UNAUTHORIZED)
    return who


async def stop_application(tx: Tx, principal: Principal, project: UUID, uid: UUID) -> bool:
    """Requests that an application stops, which rolls it back as a whole.

    An application that commits first is complete, and one that sees the request changes nothing.
    Returns False if it has ended or is already to stop.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_project(tx, principal, APPLY, project)
    reason = f"stopped by {principal.label}"
    return await operations.request_stop(tx, home.org, home.id, uid, reason)


async def end_stopped(tx: Tx, uid: UUID) -> bool:
    """Ends an application that is to stop, unless a process performs it, which then ends it."""
    if not await bundle_applications.lock_application(tx, uid):
        return False
    reason = await operations.stop_reason(tx, uid)
    return reason is not None and await fail_application(tx, uid, reason)


async def fail_application(tx: Tx, uid: UUID, error: str) -> bool:
    """Ends an application that changed nothing. `error` is its reason, for the caller.

    Returns False if it has ended, or another process performs it.
    """
    if not await bundle_applications.lock_application(tx, uid):
        return False
    await operations.fail(tx, uid, error)
    await bundle_applications.delete_application(tx, uid)
    return True
