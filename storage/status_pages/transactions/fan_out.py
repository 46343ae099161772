"""Fan-out of a page's event to its subscribers: one row each, in batches.

The progress is stored in the page's event, in the transaction that writes the rows. After a crash,
no subscriber gets a second row. An incident that the page no longer shows is not sent.
"""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ...notifications.rows import Leased
from ...notifications.rules.notification import NOTICE_EVENT, BadPayload, Topic
from ...notifications.tables import outbox
from ...notifications.tables import outbox_claims as claims
from ..queries.status_page_incidents import select_page_incident
from ..queries.status_pages import about_of, select_bindings, select_frame, select_page
from ..rules.status_page import Visibility
from ..rules.subscription import TOLD_AT_ONCE, SubscriberNotice, concerned, notice_of, wants
from ..tables import status_pages


class LeaseLost(Exception):
    """Another process has leased the event. No rows were written."""


async def pass_on(tx: Tx, event: Leased, lease: UUID, after: int) -> int | None:
    """Writes rows for the next subscribers after `after`.

    Returns the last subscriber of the batch, None at the end.

    Raises:
        LeaseLost, BadPayload.
    """
    assert event.page is not None, "it is a page's"
    seq = _seq_of(event.payload)
    held = await status_pages.lock_shared_page(tx, event.org, event.page)
    shown = None if held is None else await select_page(tx, held)
    if shown is None or shown.visibility == Visibility.INTERNAL:
        return None
    bindings = await select_bindings(tx, shown)
    incident = await select_page_incident(tx, about_of(shown, bindings), event.thread)
    if incident is None:
        return None
    frame = await select_frame(tx, shown)
    notice = notice_of(frame, incident, seq)
    if notice is None:
        return None
    about = concerned(frame, [binding.uid for binding in bindings], incident)
    found = await outbox.lock_shared_subscribers(tx, event.org, event.page, after, TOLD_AT_ONCE)
    if not found:
        return None
    told = [destination for destination, _, chosen in found if wants(chosen, about)]
    if told:
        await _write(tx, event, notice, told)
    through = found[-1][1]
    if not await claims.record_notified(tx, event, lease, through):
        raise LeaseLost
    return through if len(found) == TOLD_AT_ONCE else None


async def _write(tx: Tx, event: Leased, notice: SubscriberNotice, destinations: list[int]) -> None:
    await outbox.insert_events(
        tx,
        event.org,
        event.project,
        Topic.INCIDENT,
        event.thread,
        event.thread,
        NOTICE_EVENT,
        msgspec.json.encode(notice).decode(),
        destinations,
    )


class _Told(msgspec.Struct, frozen=True):
    seq: int


def _seq_of(payload: str) -> int:
    try:
        return msgspec.json.decode(payload, type=_Told).seq
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadPayload(str(error)) from error
