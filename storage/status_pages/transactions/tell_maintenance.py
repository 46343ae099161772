"""Notices of planned maintenance: steps that are due, and their messages to subscribers.

A step is a row, which is inserted once. Its messages are written in batches under the lock of the
row, with the position in the same transaction, so that no subscriber gets a step twice.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import to_text
from ...engine.pools import Tx
from ...incidents.rules.incident import IncidentImpact
from ...notifications.rules.notification import Topic
from ...notifications.tables import outbox
from ..queries.announced_maintenance import (
    Announced,
    ToldStep,
    select_announced,
    select_telling_pages,
    select_told,
)
from ..queries.status_page_maintenance import affected_components
from ..queries.status_pages import select_bindings, select_page
from ..rules.maintenance_step import LAST, MaintenanceStep, due_step
from ..rules.status_page import Visibility
from ..rules.subscription import TOLD_AT_ONCE, SubscriberNotice, wants
from ..tables import maintenance_notices, status_pages
from ..tables.maintenance_notices import NoticeKey, OpenNotice

MAINTENANCE_EVENT: Final = "status_page.maintenance"


async def find_telling_pages(tx: Tx) -> list[UUID]:
    """Returns the pages with subscribers whose organization has announced maintenance."""
    orgs = {one.org for one in await select_announced(tx)}
    return await select_telling_pages(tx, orgs) if orgs else []


async def note_due_steps(tx: Tx, uid: UUID) -> int:
    """Inserts the steps that are due on a page. Returns their number.

    Inserts none while another process does: it could have read an earlier state.
    """
    if not await maintenance_notices.try_lock_steps(tx, uid):
        return 0
    page = await select_page(tx, uid)
    if page is None or page.visibility == Visibility.INTERNAL:
        return 0
    announced = await select_announced(tx, page.org)
    bindings = await select_bindings(tx, page)
    names = {binding.uid: binding.name for binding in bindings}
    about = await affected_components(
        tx, page.org, bindings, [(one.monitor, one.project) for one in announced]
    )
    told: defaultdict[int, list[ToldStep]] = defaultdict(list)
    for step in await select_told(tx, page.org, page.id, [one.id for one in announced]):
        told[step.maintenance].append(step)
    noted = 0
    for one, current in zip(announced, about, strict=True):
        before = told[one.id]
        if any(not step.done for step in before):
            # Messages of an earlier step are missing.
            continue
        steps = [MaintenanceStep(step.step) for step in before]
        step_due = due_step(steps, tx.now, one.starts_at, one.over_at, is_archived=one.is_archived)
        if step_due is None:
            continue
        # The notice of an end goes to the receivers of the beginning.
        affected = before[-1].components if step_due in LAST else current
        if affected:
            notice = _notice(one, step_due, [names[uid] for uid in affected if uid in names], tx)
            payload = msgspec.json.encode(notice).decode()
            noted += await maintenance_notices.insert_notice(
                tx, page.org, one.id, page.id, step_due, affected, payload
            )
    return noted


def _notice(
    one: Announced, step: MaintenanceStep, components: Sequence[str], tx: Tx
) -> SubscriberNotice:
    """`body` is for a process of the previous version, which does not know steps."""
    return SubscriberNotice(
        incident=one.uid,
        seq=list(MaintenanceStep).index(step),
        title=one.title,
        status=None,
        impact=IncidentImpact.NONE,
        body=f"{step.replace('_', ' ')}: {to_text(one.starts_at)} to {to_text(one.over_at)}",
        at=tx.now,
        started_at=one.starts_at,
        components=tuple(components),
        step=step,
        ends_at=one.over_at,
    )


async def pass_on_notice(tx: Tx, key: NoticeKey) -> bool:
    """Writes messages of an open notice to its next subscribers.

    Returns False if all have one, or another process passes it on.
    """
    # Before the notice, as the deletion of the page locks them in this order.
    held = await status_pages.lock_shared_page(tx, key.org, key.page)
    page = None if held is None else await select_page(tx, held)
    row = None if page is None else await maintenance_notices.lock_open_notice(tx, key)
    if page is None or row is None:
        return False
    if page.visibility == Visibility.INTERNAL:
        await maintenance_notices.advance_notice(tx, row, row.enqueued_through, done=True)
        return False
    found = await outbox.lock_shared_subscribers(
        tx, row.org, row.page, row.enqueued_through, TOLD_AT_ONCE
    )
    receivers = [destination for destination, _, chosen in found if wants(chosen, row.components)]
    if receivers:
        await _write(tx, row, receivers)
    through = found[-1][1] if found else row.enqueued_through
    is_done = len(found) < TOLD_AT_ONCE
    await maintenance_notices.advance_notice(tx, row, through, done=is_done)
    return not is_done


async def _write(tx: Tx, row: OpenNotice, destinations: Sequence[int]) -> None:
    thread: UUID = row.maintenance_uid
    await outbox.insert_events(
        tx,
        row.org,
        row.project,
        Topic.INCIDENT,
        thread,
        thread,
        MAINTENANCE_EVENT,
        row.payload,
        destinations,
    )
