"""Preview of an incident update as the public will read it, per status page.

The functions of the public page and of the subscriber e-mails write the texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused, expect
from ....storage.engine.pools import Tx
from ....storage.incidents.rows import IncidentRow
from ....storage.incidents.rules.incident import (
    POSTMORTEM_LONGEST,
    IncidentImpact,
    IncidentSource,
    IncidentStatus,
    body_fault,
    is_empty_update,
    normal_lines,
    status_refusal,
)
from ....storage.status_pages.queries.incident_status_pages import (
    IncidentSubject,
    select_pages_showing,
    subject_of,
)
from ....storage.status_pages.queries.status_page_subscribers import count_confirmed
from ....storage.status_pages.queries.status_pages import select_frame, select_page
from ....storage.status_pages.rules.status_page import Incident, Update, Visibility
from ....storage.status_pages.rules.subscription import notice_of
from ...status_pages.public.emails import notice_subject
from ...status_pages.public.language import listed, phrase
from ...status_pages.public.page_text import open_mark, update_word
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
    # Upper bound of the notified subscribers.
    many: int = 0


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
    about = await subject_of(tx, row)
    uids = await select_pages_showing(tx, about, PAGES_MOST + 1)
    incident = _with(row, about, status, text, tx)
    found = [await _reading(tx, uid, incident) for uid in uids[:PAGES_MOST]]
    readings = [one for one in found if one is not None]
    why = ""
    if not readings:
        why = "Not shown on any status page."
    elif not any(one.is_outside for one in readings):
        why = "Shown only on internal status pages."
    return PublicPreview(text, readings, len(uids) > PAGES_MOST, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSketch:
    """Incident that is not opened yet, with the uids of its monitor or service."""

    subject: IncidentSubject
    monitor: UUID | None
    service: UUID | None
    project: UUID
    title: str
    status: IncidentStatus
    impact: IncidentImpact
    body: str
    public: bool


async def read_sketch_outside(tx: Tx, sketch: IncidentSketch) -> PublicPreview:
    """Returns how each status page will show the incident."""
    text = normal_lines(sketch.body)
    if not sketch.public:
        return PublicPreview(text, (), further=False, why="Not public: only members see it.")
    uids = await select_pages_showing(tx, sketch.subject, PAGES_MOST + 1)
    incident = _of_sketch(sketch, text, tx)
    found = [await _reading(tx, uid, incident) for uid in uids[:PAGES_MOST]]
    readings = [one for one in found if one is not None]
    why = "" if readings else "Not shown on any status page."
    return PublicPreview(text, readings, len(uids) > PAGES_MOST, why)


async def read_postmortem_outside(
    tx: Tx, row: IncidentRow, body: str, *, published: bool
) -> PublicPreview:
    """Returns how the status pages show the postmortem. Refused invalid, as by the save.

    Subscribers get no message about a postmortem.
    """
    text = normal_lines(body)
    expect("body", body_fault(text, POSTMORTEM_LONGEST))
    if not published:
        return PublicPreview(text, (), further=False, why="Not published: only members see it.")
    about = await subject_of(tx, row)
    uids = await select_pages_showing(tx, about, PAGES_MOST + 1)
    incident = _with(row, about, None, text, tx)
    found = [await _reading(tx, uid, incident) for uid in uids[:PAGES_MOST]]
    word = phrase("incident.postmortem")
    readings = [
        replace(one, is_outside=False, mark="up", word=word, about="", subject="", told="")
        for one in found
        if one is not None
    ]
    why = "" if readings else "Not shown on any status page."
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
        many=many,
        told=f"Up to {count(many, 'subscriber')} will be notified." if many else "",
    )


def _with(
    row: IncidentRow, about: IncidentSubject, status: IncidentStatus | None, body: str, tx: Tx
) -> Incident:
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
        components=about.components,
    )


def _of_sketch(sketch: IncidentSketch, body: str, tx: Tx) -> Incident:
    update = Update(
        uid=None,
        seq=1,
        status=sketch.status,
        body=body,
        public=True,
        author="",
        by_person=True,
        created_at=tx.now,
    )
    return Incident(
        uid=UUID(int=0),
        project=sketch.project,
        monitor=sketch.monitor,
        service=sketch.service,
        external_key=None,
        seq=1,
        title=sketch.title,
        status=sketch.status,
        impact=sketch.impact,
        source=IncidentSource.MANUAL,
        started_at=tx.now,
        resolved_at=None,
        acknowledged_at=None,
        acknowledged_by=None,
        acknowledged_label="",
        escalation_step=None,
        last_escalated_at=None,
        created_at=tx.now,
        updated_at=tx.now,
        updates=[update],
        postmortem=None,
        components=sketch.subject.components,
    )
