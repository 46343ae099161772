"""Buttons of a message, by which a person answers in a chat service, a notification or a call."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

# Kinds whose buttons need a secret of the installation.
BUTTON_KINDS: Final = frozenset({"slack", "telegram"})


class ButtonAction(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"
    SNOOZE = "snooze"


LABELS: Final = {
    ButtonAction.ACKNOWLEDGE: "Acknowledge",
    ButtonAction.RESOLVE: "Resolve",
    ButtonAction.SNOOZE: "Snooze 30 min",
}
# Keys of a phone.
KEYS: Final = {
    "1": ButtonAction.ACKNOWLEDGE,
    "2": ButtonAction.RESOLVE,
    "3": ButtonAction.SNOOZE,
}
KEYS_SAID: Final = "Press 1 to acknowledge, 2 to resolve, 3 to snooze for 30 minutes."


@dataclass(frozen=True, slots=True)
class AnswerButtons:
    """Buttons of one message.

    `token` is its sealed token, and `code` its id, which needs a service that proves itself. `url`
    takes the token and an action, and `call_url` the keys of a call. `slack` and `telegram` are
    true if the installation has the secret of that service.
    """

    token: str = field(repr=False)
    code: str
    url: str = field(repr=False)
    call_url: str = field(repr=False)
    slack: bool = False
    telegram: bool = False
