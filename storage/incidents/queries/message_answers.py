"""Reads of messages that a person can answer by a link."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

# A message without its contact method or membership cannot be answered: both delete it.
_MESSAGE = """
select o.uid, o.org, i.id, i.uid, c.person, k.kind, o.created_at, a.answered_at, a.action,
  coalesce(k.config->>'user_id', k.config->>'chat_id', '')
from outbox o join destinations d on d.org = o.org and d.id = o.destination
  join notification_channels c on c.org = d.org and c.id = d.channel
  join contact_methods k on k.id = c.contact_method and k.enabled and k.verified_at is not null
  join incidents i on i.org = o.org and i.uid = o.thread
  left join message_answers a on a.event = o.uid
where o.uid = %(event)s and o.topic = 'incident_event' and o.payload->>'status' = 'down'
"""


class AnswerableMessage(msgspec.Struct, frozen=True):
    """Message about an incident to a contact method. `kind` is that of the method.

    `account` is the person's account of a chat service, empty if the method does not state one.
    """

    event: UUID
    org: int
    incident: int
    incident_uid: UUID
    user: int
    kind: str
    written_at: Instant
    answered_at: Instant | None
    action: str | None
    account: str = ""


async def select_answerable(tx: Tx, event: UUID) -> AnswerableMessage | None:
    return await tx.one(AnswerableMessage, _MESSAGE, event=event)
