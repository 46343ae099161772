"""Opens and updates incidents, and enqueues their notifications in the same transaction.

Every event of an incident has a sequence number without gaps, assigned under the incident's lock;
webhooks get every event. The caller checks permissions and writes the audit row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec
from msgspec import structs

from ...accounts.rules.access import CredentialKind, Principal
from ...core.instant import Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...notifications.transactions.enqueue_notifications import (
    enqueue_status_page_events,
    enqueue_to_notified_channels,
    enqueue_webhooks,
)
from ..rows import IncidentRow, UpdateRow
from ..rules.alert_storm import GATHER_US, STORM_US
from ..rules.incident import (
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    is_public,
    is_undoable,
    status_refusal,
    undo_until,
)
from ..tables import alert_storms, incident_updates, incidents
from .incident_payload import event_of, payload, recovery_page

TOPIC = "incident_event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Values of a new incident. `author` None is Leadline itself; `public` is of the update.

    `conditions` are the failed conditions with their values, for webhooks only.
    """

    org: int
    project: int
    monitor: int | None
    title: str
    status: IncidentStatus
    impact: IncidentImpact
    source: IncidentSource
    body: str
    started_at: Instant
    author: Principal | None
    service: int | None = None
    external_key: str | None = None
    # Labels of the external alert.
    labels: Mapping[str, str] | None = None
    escalation_policy: int | None = None
    public: bool = True
    conditions: tuple[str, ...] = ()
    # Uids of the components of status pages that the incident names.
    components: tuple[UUID, ...] = ()
    # Condition of Leadline that the incident is about, or empty.
    self_condition: str = ""
    # Delay of the first page, in which further alerts of a storm arrive.
    page_after_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEntry:
    """Update of an incident, or a note without `status`. `public` None selects the default.

    `waits`: its messages to subscribers wait until it cannot be withdrawn any more.
    `withdraws` is the seq of the update that it makes internal.
    """

    status: IncidentStatus | None
    body: str
    public: bool | None
    author: Principal | None
    waits: bool = False
    withdraws: int | None = None


class AlreadyOpen(Exception):
    """An incident of this alert, or an automatic one of this monitor or service, is open."""


async def open_incident(tx: Tx, opening: Opening) -> IncidentRow:
    """Inserts the incident and its first update, and starts its escalation unless resolved.

    Raises:
        AlreadyOpen: no row was written.
    """
    resolved = opening.status is IncidentStatus.RESOLVED
    climbs = opening.escalation_policy is not None and not resolved
    row = await incidents.insert_incident(
        tx,
        {
            "org": opening.org,
            "project": opening.project,
            "monitor": opening.monitor,
            "service": opening.service,
            "external_key": opening.external_key,
            "labels": None
            if opening.labels is None
            else msgspec.json.encode(opening.labels).decode(),
            "title": opening.title,
            "status": opening.status.value,
            "impact": opening.impact.value,
            "source": opening.source.value,
            "started_at": opening.started_at,
            "resolved_at": tx.now if resolved else None,
            "escalation_policy": opening.escalation_policy,
            "escalate_at": Instant(tx.now + opening.page_after_us) if climbs else None,
            "self_condition": opening.self_condition,
        },
    )
    if row is None:
        raise AlreadyOpen
    if opening.components:
        await incidents.insert_components(tx, row, opening.components)
    entry = IncidentEntry(
        status=opening.status, body=opening.body, public=opening.public, author=opening.author
    )
    await _insert_update(tx, row, entry, opening.conditions)
    return row


async def write_entry(
    tx: Tx, incident: IncidentRow, entry: IncidentEntry
) -> tuple[IncidentRow, UpdateRow]:
    """Adds an update to a locked incident and applies its status.

    A resolution stops the escalation and notifies all channels that were paged.

    Raises:
        Refused incident_resolved, status_backward.
    """
    refusal = status_refusal(IncidentStatus(incident.status), entry.status)
    if refusal is not None:
        raise Refused(refusal)
    row = structs.replace(incident, seq=incident.seq + 1, updated_at=tx.now)
    if entry.status is not None:
        row = structs.replace(row, status=entry.status.value)
    if entry.status is IncidentStatus.RESOLVED:
        row = structs.replace(row, resolved_at=tx.now, escalate_at=None)
    await incidents.advance_incident(tx, row)
    if entry.status is IncidentStatus.RESOLVED:
        due_at, after = Instant(tx.now + GATHER_US), Instant(tx.now - STORM_US)
        await alert_storms.release_covered(tx, row.org, row.id, due_at, after)
    update = await _insert_update(tx, row, entry)
    if entry.status is IncidentStatus.RESOLVED:
        page = recovery_page(row, update)
        await enqueue_to_notified_channels(tx, row.org, row.project, row.uid, row.uid, TOPIC, page)
    return row, update


async def release_untold(tx: Tx, row: IncidentRow) -> None:
    """Releases the alerts that a locked alert covers, if its last page is older than they are.

    Call it when no page of the alert is to come. `row` has the last page.
    """
    if row.external_key is not None:
        due_at, after = Instant(tx.now + GATHER_US), Instant(tx.now - STORM_US)
        paged_at = row.last_escalated_at
        await alert_storms.release_untold(tx, row.org, row.id, paged_at, due_at, after)


async def _insert_update(
    tx: Tx, row: IncidentRow, entry: IncidentEntry, conditions: tuple[str, ...] = ()
) -> UpdateRow:
    update = await incident_updates.insert_update(
        tx,
        row.org,
        row.id,
        row.seq,
        status=None if entry.status is None else entry.status.value,
        body=entry.body,
        public=is_public(entry.status, entry.public),
        author=person_of(entry.author),
        label="" if entry.author is None else entry.author.label,
        withdraws=entry.withdraws,
    )
    event, told = event_of(update), payload(row, update, conditions)
    if update.public:
        due_at = undo_until(tx.now) if entry.waits and is_undoable_row(update) else tx.now
        await enqueue_status_page_events(tx, row.org, row.project, row.uid, update.seq, due_at)
    is_first = row.seq == 1
    await enqueue_webhooks(tx, row.org, row.project, row.uid, event, told, is_first=is_first)
    return update


def is_undoable_row(update: UpdateRow) -> bool:
    """Returns whether the update can be withdrawn, if its time is not over."""
    return is_undoable(update.seq, update.body, update.author_label, public=update.public)


def person_of(principal: Principal | None) -> UUID | None:
    """Returns the acting user, None for a token, even if a user created it."""
    if principal is None or principal.kind is CredentialKind.TOKEN:
        return None
    return principal.user if isinstance(principal.user, UUID) else None
