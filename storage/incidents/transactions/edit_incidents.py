"""Edits of incidents by principals: open, update, acknowledge and postmortem.

Every edit writes one audit row.
Only the first acknowledgement counts. A resolved incident cannot be acknowledged.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...accounts.rules.access import CredentialKind, Need, Permission, Principal
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project, demand_row
from ...core.key import ServiceKey
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ...notifications.tables.outbox import lock_begun_pages
from ...notifications.transactions.enqueue_notifications import cancel_later_messages
from ...oncall.tables.escalation_policies import lock_shared_policy
from ...services.queries.service_revisions import select_revisions
from ...services.rules.epoch import governed_within
from ...services.tables.services import lock_shared_service
from ..queries import incident_updates as updates_queries
from ..queries import incidents as incidents_queries
from ..queries import postmortems as postmortems_queries
from ..rows import IncidentRow, PostmortemRow, UpdateRow
from ..rules.incident import (
    POSTMORTEM_LONGEST,
    UPDATES_MOST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    body_fault,
    is_empty_update,
    normal_lines,
    status_refusal,
    title_fault,
    undo_until,
)
from ..tables import incident_updates, incidents, postmortems
from .write_incident import (
    IncidentEntry,
    Opening,
    is_undoable_row,
    open_incident,
    person_of,
    release_untold,
    write_entry,
)

EDIT: Final = Permission(Need.EDITOR)
# Note of an acknowledgement after one that expired.
AGAIN: Final = "Acknowledged again."


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentDraft:
    """Incident as requested by a principal, optionally about a `monitor` or a `service`.

    `policy` is the escalation policy that starts, by default that of the monitor or service.
    """

    title: str
    status: IncidentStatus = IncidentStatus.INVESTIGATING
    impact: IncidentImpact = IncidentImpact.MINOR
    body: str = ""
    monitor: UUID | None = None
    service: UUID | None = None
    policy: UUID | None = None
    public: bool = True


async def create_incident(
    tx: Tx, principal: Principal, project: UUID, draft: IncidentDraft
) -> IncidentRow:
    """Opens an incident. The escalation policy of its monitor or service starts.

    Raises: the refusals of `prepare_incident`.
    """
    return await open_prepared(tx, principal, await prepare_incident(tx, principal, project, draft))


async def prepare_incident(
    tx: Tx, principal: Principal, project: UUID, draft: IncidentDraft
) -> Opening:
    """Checks a draft and locks its project, monitor and service.

    Raises:
        Refused not_found, forbidden. Refused invalid, if the title or body is not valid or the
        project has no such monitor, service or escalation policy.
    """
    home = await demand_project(tx, principal, EDIT, project)
    expect("title", title_fault(draft.title))
    body = normal_lines(draft.body)
    expect("body", body_fault(body))
    if draft.monitor is not None and draft.service is not None:
        raise Refused("invalid", "service_id", "cannot be given together with monitor_id")
    if not await removals.lock_shared_project(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    monitor, service, policy = None, None, None
    if draft.service is not None:
        owner = await lock_shared_service(tx, draft.service)
        if owner is None or (owner.org, owner.project) != (home.org, home.id):
            raise Refused("invalid", "service_id", "names no service of this project")
        service, policy = owner.id, owner.escalation_policy
    if draft.monitor is not None:
        found = await incidents.lock_shared_anchor(tx, home.org, home.id, draft.monitor)
        if found is None:
            raise Refused("invalid", "monitor_id", "names no monitor of this project")
        monitor, policy = found
    if draft.policy is not None:
        policy = await lock_shared_policy(tx, home.org, home.id, draft.policy)
        if policy is None:
            raise Refused(
                "invalid", "escalation_policy_id", "names no escalation policy of this project"
            )
    is_manual = principal.kind is CredentialKind.SESSION
    return Opening(
        org=home.org,
        project=home.id,
        monitor=monitor,
        service=service,
        title=draft.title,
        status=draft.status,
        impact=draft.impact,
        source=IncidentSource.MANUAL if is_manual else IncidentSource.API,
        body=body,
        started_at=tx.now,
        author=principal,
        escalation_policy=policy,
        public=draft.public,
    )


async def open_prepared(tx: Tx, principal: Principal, opening: Opening) -> IncidentRow:
    """Opens a checked incident and writes its audit row."""
    row = await open_incident(tx, opening)
    await audit(tx, principal, row.org, "incident.create", target_of_new(row))
    return row


async def add_update(
    tx: Tx,
    principal: Principal,
    incident: UUID,
    status: IncidentStatus | None,
    body: str,
    public: bool | None,
) -> tuple[IncidentRow, UpdateRow]:
    """Writes an update, or a note without a `status`. `public` None selects the default.

    Raises:
        Refused not_found, forbidden, invalid, status_backward, incident_resolved, update_quota.
    """
    before = await _lock(tx, principal, incident)
    body = normal_lines(body)
    expect("body", body_fault(body))
    refusal = status_refusal(IncidentStatus(before.status), status)
    if refusal is not None:
        raise Refused(refusal)
    if is_empty_update(IncidentStatus(before.status), status, body):
        raise Refused("invalid", "body", "is required if the status does not change")
    moves = status not in (None, before.status)
    if before.seq >= UPDATES_MOST and not moves:
        raise Refused("update_quota")
    entry = IncidentEntry(status=status, body=body, public=public, author=principal, waits=True)
    row, update = await write_entry(tx, before, entry)
    if status is None:
        await audit(tx, principal, row.org, "incident.note", _target(row))
    else:
        change = f" {before.status}->{row.status}"
        await audit(tx, principal, row.org, "incident.status", _target(row) + change)
    return row, update


async def undo_update(
    tx: Tx, principal: Principal, incident: UUID, update: UUID
) -> tuple[IncidentRow, UpdateRow]:
    """Makes a public update internal before its messages are sent. Returns the withdrawal.

    The status of the incident stays as it is. The messages that wait find no public update.

    Raises:
        Refused not_found, forbidden. Refused update_not_public, update_final, undo_expired, or
        update_sent if the messages are being sent.
    """
    row = await _lock(tx, principal, incident)
    found = await updates_queries.select_update(tx, row.org, row.id, update)
    if found is None:
        raise Refused(NOT_FOUND)
    if not found.public:
        raise Refused("update_not_public")
    if not is_undoable_row(found):
        raise Refused("update_final")
    if tx.now >= undo_until(found.created_at):
        raise Refused("undo_expired")
    if await lock_begun_pages(tx, row.org, row.uid, found.seq):
        raise Refused("update_sent")
    await incident_updates.hide_update(tx, row.org, row.id, found.seq)
    entry = IncidentEntry(status=None, body="", public=False, author=principal, withdraws=found.seq)
    row, written = await write_entry(tx, row, entry)
    change = f" update:{found.seq} public=true->false"
    await audit(tx, principal, row.org, "incident.note", _target(row) + change)
    return row, written


async def acknowledge(tx: Tx, principal: Principal, incident: UUID) -> IncidentRow:
    """Acknowledges the incident and stops its escalation. A second call has no effect.

    After an expiry it stops the escalation again. The first acknowledger stays.

    Raises:
        Refused not_found, forbidden, incident_resolved.
    """
    before = await _lock(tx, principal, incident)
    if before.is_acknowledged:
        return before
    if before.status == IncidentStatus.RESOLVED:
        raise Refused("incident_resolved")
    await incidents.acknowledge_incident(tx, before, person_of(principal), principal.label)
    if before.acknowledged_at is not None:
        entry = IncidentEntry(status=None, body=AGAIN, public=False, author=principal)
        locked = await incidents.lock_incident(tx, incident)
        assert locked is not None, "the locked incident is missing"
        await write_entry(tx, locked, entry)
    await release_untold(tx, before)
    await cancel_later_messages(tx, before.org, before.uid)
    await audit(tx, principal, before.org, "incident.acknowledge", _target(before))
    row = await incidents_queries.select_incident(tx, incident)
    assert row is not None, "the locked incident is missing"
    return row


async def put_postmortem(
    tx: Tx,
    principal: Principal,
    incident: UUID,
    body: str,
    revision: int | None,
    *,
    published: bool = False,
) -> PostmortemRow:
    """Writes the postmortem, which is public if `published`. An equal one writes no row.

    For the incident of a service, `revision` must have governed a part of it.

    Raises:
        Refused not_found, forbidden, invalid, revision_foreign, not_resolved.
    """
    row = await _lock(tx, principal, incident)
    body = normal_lines(body)
    expect("body", "must not be blank" if not body.strip() else None)
    expect("body", body_fault(body, POSTMORTEM_LONGEST))
    await _expect_governed(tx, row, revision)
    if row.status != IncidentStatus.RESOLVED:
        raise Refused("not_resolved")
    before = await postmortems_queries.select_postmortem(tx, row.org, row.id)
    wanted = (body, revision, published)
    if before is not None and wanted == (
        before.body,
        before.declaration_revision,
        before.published,
    ):
        return before
    written = await postmortems.put_postmortem(
        tx,
        row.org,
        row.id,
        body=body,
        revision=revision,
        published=published,
        author=person_of(principal),
        label=principal.label,
    )
    was_published = before is not None and before.published
    did = f" published={was_published}->{published}".lower() if was_published != published else ""
    await audit(tx, principal, row.org, "incident.postmortem", _target(row) + did)
    return written


async def _expect_governed(tx: Tx, row: IncidentRow, revision: int | None) -> None:
    if row.service is None:
        if revision is not None:
            raise Refused("revision_foreign")
        return
    if revision is None:
        raise Refused("invalid", "declaration_revision", "is required for a service's incident")
    key = ServiceKey((row.org, row.service))
    revisions = (await select_revisions(tx, [key]))[key]
    until = tx.now if row.resolved_at is None else row.resolved_at
    governed = governed_within(revisions, row.started_at, until)
    if revision not in [one.revision for one in governed]:
        raise Refused("revision_foreign")


async def _lock(tx: Tx, principal: Principal, incident: UUID) -> IncidentRow:
    return demand_row(principal, EDIT, await incidents.lock_incident(tx, incident))


def target_of_new(row: IncidentRow) -> str:
    """Returns the target of the audit row of a new incident."""
    about = "" if row.monitor_uid is None else f" monitor:{row.monitor_uid}"
    about += "" if row.service_uid is None else f" service:{row.service_uid}"
    return f"incident:{row.uid} project:{row.project_uid}{about}"


def _target(row: IncidentRow) -> str:
    return f"incident:{row.uid}"
