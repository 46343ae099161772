"""Links of messages that were answered. The primary key lets one of two answers win."""

from uuid import UUID

from ...engine.pools import Tx

_USE = """
insert into message_answers (event, org, incident, user_id, action, answered_at)
values (%(event)s, %(org)s, %(incident)s, %(user)s, %(action)s, at(%(now)s))
on conflict (event) do nothing
"""


async def use_link(tx: Tx, event: UUID, org: int, incident: int, user: int, action: str) -> bool:
    """Marks the link of a message as used. Returns False if it was used before."""
    given = {"event": event, "org": org, "incident": incident, "user": user, "action": action}
    return await tx.execute(_USE, **given, now=tx.now) == 1
