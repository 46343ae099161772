"""Preview of an incident update as the public will read it, per status page.

The functions of the public page and of the subscriber e-mails write the texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused, expect
from ....storage.engine.pools import Tx
from ....storage.incidents.rows import IncidentRow
from ....storage.incidents.rules.incident import (
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    body_fault,
    is_empty_update,
    normal_lines,
    status_refusal,
)
from ....storage.status_pages.queries.incident_status_pages import select_pages_showing
from ....storage.status_pages.queries.status_page_subscribers import count_confirmed
from ....storage.status_pages.queries.status_pages import select_frame, select_page
from ....storage.status_pages.rules.status_page import Incident, Update, Visibility
from ....storage.status_pages.rules.subscription import notice_of
from ...status_pages.public.emails import notice_subject
from ...status_pages.public.page_text import listed, open_mark, update_word
from ...ui.formatting import count

PAGES_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class PagePreview:
    """Preview on one status page. `who` describes its audience."""

    uid: UUID
    page: str
    who: str
    is_outside: bool
    title: str
    mark: str
    word: str
    about: str
    subject: str
    told: str


@dataclass(frozen=True, slots=True)
class PublicPreview:
    """`why` explains why the update is not public, empty if it is public."""

    body: str
    readings: Sequence[PagePreview]
    further: bool
    why: str


_WHO: Final = {
    Visibility.LISTED: "Public.",
    Visibility.UNLISTED: "Anyone with the link can open it.",
    Visibility.INTERNAL: "Members only.",
}


def expect_sayable(row: IncidentRow, status: IncidentStatus | None, body: str) -> None:
    """Checks an update as the post does. Refused invalid, status_backward, incident_resolved."""
    expect("body", body_fault(normal_lines(body)))
    refusal = status_refusal(IncidentStatus(row.status), status)
    if refusal is not None:
        raise Refused(refusal)
    if is_empty_update(IncidentStatus(row.status), status, body):
        raise Refused("invalid", "body", "is required if the status does not change")


async def read_outside(
    tx: Tx, row: IncidentRow, status: IncidentStatus | None, body: str, *, public: bool
) -> PublicPreview:
    text = normal_lines(body)
    if not public:
        return PublicPreview(text, (), further=False, why="Internal note: not public.")
    uids = await select_pages_showing(tx, row, PAGES_MOST + 1)
    incident = _with(row, status, text, tx)
    found = [await _reading(tx, uid, incident) for uid in uids[:PAGES_MOST]]
    readings = [one for one in found if one is not None]
    why = ""
    if not readings:
        why = "Not shown on any status page."
    elif not any(one.is_outside for one in readings):
        why = "Shown only on internal status pages."
    return PublicPreview(text, readings, len(uids) > PAGES_MOST, why)


async def _reading(tx: Tx, uid: UUID, incident: Incident) -> PagePreview | None:
    page = await select_page(tx, uid)
    if page is None:
        return None
    notice = notice_of(await select_frame(tx, page), incident, incident.seq)
    if notice is None:
        return None
    visibility = Visibility(page.visibility)
    is_outside = visibility is not Visibility.INTERNAL
    many = await count_confirmed(tx, page.org, page.id) if is_outside else 0
    over = notice.status is IncidentStatus.RESOLVED
    return PagePreview(
        uid=page.uid,
        page=page.title,
        who=_WHO[visibility],
        is_outside=is_outside,
        title=notice.title,
        mark="up" if over else open_mark(incident),
        word=update_word(notice.status),
        about=f"Affects: {listed(notice.components)}." if notice.components else "",
        subject=notice_subject(page.title, notice.title),
        told=f"Up to {count(many, 'subscriber')} will be notified." if many else "",
    )


def _with(row: IncidentRow, status: IncidentStatus | None, body: str, tx: Tx) -> Incident:
    """Returns the incident as it would be after the update, with no other updates."""
    update = Update(
        uid=None,
        seq=row.seq + 1,
        status=status,
        body=body,
        public=True,
        author="",
        by_person=True,
        created_at=tx.now,
    )
    return Incident(
        uid=row.uid,
        project=row.project_uid,
        monitor=row.monitor_uid,
        service=row.service_uid,
        external_key=row.external_key,
        seq=update.seq,
        title=row.title,
        status=status or IncidentStatus(row.status),
        impact=IncidentImpact(row.impact),
        source=IncidentSource(row.source),
        started_at=row.started_at,
        resolved_at=row.resolved_at,
        acknowledged_at=None,
        acknowledged_by=None,
        acknowledged_label="",
        escalation_step=None,
        last_escalated_at=None,
        created_at=row.created_at,
        updated_at=tx.now,
        updates=[update],
        postmortem=None,
    )
