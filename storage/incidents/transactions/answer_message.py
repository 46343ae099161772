"""Answers from messages: a person acts by a signed link or a button of the message.

The link contains the message, sealed by the key of the installation, so that nobody else can make
one. The person has the rights of the memberships at the time of the answer.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...accounts.queries.principals import select_by_person
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..queries.message_answers import AnswerableMessage, select_answerable
from ..rows import IncidentRow
from ..rules.answer_link import LinkState, link_state
from ..tables import message_answers
from .answer_incident import IncidentAnswer, answer_incident

_MARK: Final = b"answer"
_LONGEST: Final = 200
# Refusals of links that cannot be used any more.
LINK_USED: Final = "link_used"
LINK_EXPIRED: Final = "link_expired"


@dataclass(frozen=True, slots=True)
class Presenter:
    """Who presents an answer: `via` names it in the audit log.

    With `kind`, the message must be to a contact method of that kind. `account` is the account that
    pressed a button; it must be that of the method, if the method states one.
    """

    via: str
    kind: str = ""
    account: str = ""

    def may_present(self, message: AnswerableMessage) -> bool:
        is_other = self.account and message.account and self.account != message.account
        return self.kind in ("", message.kind) and not is_other


LINK: Final = Presenter("link")


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


async def answer_message(
    tx: Tx, event: UUID, answer: IncidentAnswer, presenter: Presenter = LINK
) -> IncidentRow:
    """Performs the answer of a person. The message is used only if the answer has succeeded.

    Raises:
        Refused not_found, link_used, link_expired, and the refusals of the action.
    """
    message = await select_answerable(tx, event)
    if message is None:
        raise Refused(NOT_FOUND)
    if not presenter.may_present(message):
        raise Refused(NOT_FOUND)
    _expect_open(message, tx)
    who = await select_by_person(tx, message.user)
    if who is None:
        raise Refused(NOT_FOUND)
    row = await answer_incident(tx, who, message.incident_uid, answer)
    if not await message_answers.use_link(
        tx, event, message.org, message.incident, message.user, answer.action.value
    ):
        raise Refused(LINK_USED)
    target = (
        f"incident:{message.incident_uid} {answer.action} by={message.kind} via={presenter.via}"
    )
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
