"""Answers from messages: a person acknowledges, resolves or adds a note by a signed link.

The link contains the message, sealed by the key of the installation, so that nobody else can make
one. The person has the rights of the memberships at the time of the answer.
"""

import base64
import binascii
from typing import Final
from uuid import UUID

from ...accounts.queries.principals import select_by_person
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..queries.message_answers import AnswerableMessage, select_answerable
from ..rows import IncidentRow
from ..rules.answer_link import AnswerAction, LinkState, link_state
from ..rules.incident import IncidentStatus
from ..tables import message_answers
from .edit_incidents import acknowledge, add_update

_MARK: Final = b"answer"
_LONGEST: Final = 200
# Refusals of links that cannot be used any more.
LINK_USED: Final = "link_used"
LINK_EXPIRED: Final = "link_expired"


def answer_token(event: UUID, keyring: Keyring) -> str:
    """Returns the token of a message, empty if the installation has no key."""
    if not keyring.can_seal:
        return ""
    sealed = keyring.seal(_MARK, _place_of(event))
    return base64.urlsafe_b64encode(event.bytes + sealed).decode().rstrip("=")


def event_of(token: str, keyring: Keyring) -> UUID | None:
    """Returns the message of a token, None if the token is not of this installation."""
    if len(token) > _LONGEST or not token.isascii():
        return None
    try:
        whole = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        event = UUID(bytes=whole[:16])
        return event if keyring.open(whole[16:], _place_of(event)) == _MARK else None
    except (binascii.Error, ValueError, CannotOpen):
        return None


async def answer_message(tx: Tx, event: UUID, action: AnswerAction, body: str) -> IncidentRow:
    """Performs the answer of a person. The link is used only if the answer has succeeded.

    Raises:
        Refused not_found, link_used, link_expired, and the refusals of the action.
    """
    message = await select_answerable(tx, event)
    if message is None:
        raise Refused(NOT_FOUND)
    _expect_open(message, tx)
    who = await select_by_person(tx, message.user)
    if who is None:
        raise Refused(NOT_FOUND)
    match action:
        case AnswerAction.ACKNOWLEDGE:
            row = await acknowledge(tx, who, message.incident_uid)
        case AnswerAction.RESOLVE:
            row, _ = await add_update(
                tx, who, message.incident_uid, IncidentStatus.RESOLVED, body, public=False
            )
        case AnswerAction.NOTE:
            row, _ = await add_update(tx, who, message.incident_uid, None, body, public=False)
    if not await message_answers.use_link(
        tx, event, message.org, message.incident, message.user, action.value
    ):
        raise Refused(LINK_USED)
    target = f"incident:{message.incident_uid} {action} by={message.kind}"
    await audit(tx, who, message.org, "incident.answer", target)
    return row


def _expect_open(message: AnswerableMessage, tx: Tx) -> None:
    match link_state(message.written_at, message.answered_at, tx.now):
        case LinkState.USED:
            raise Refused(LINK_USED)
        case LinkState.EXPIRED:
            raise Refused(LINK_EXPIRED)
        case LinkState.OPEN:
            return


def _place_of(event: UUID) -> CipherContext:
    return CipherContext("message_answers", "event", event)
