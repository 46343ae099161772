"""Reads of the own contact methods, personal rules and quiet hours."""

from dataclasses import dataclass
from uuid import UUID

from ...engine.pools import Tx
from ..rows import ContactMethodRow, ContactSettingsRow
from ..rules.personal_rules import PersonalRule, Urgency
from ..tables import contact_methods

_KEY = "select id from users where uid = %(uid)s"


@dataclass(frozen=True, slots=True)
class OwnContacts:
    """Contact methods of a person, with the rules by severity."""

    methods: list[ContactMethodRow]
    rules: dict[Urgency, list[PersonalRule]]
    settings: ContactSettingsRow


async def select_own_contacts(tx: Tx, uid: UUID) -> OwnContacts:
    """Returns what the person has configured; nothing if the account is gone."""
    user = await tx.value(_KEY, uid=uid)
    if user is None:
        return OwnContacts([], {}, ContactSettingsRow(None, None, "", []))
    methods = await contact_methods.select_methods(tx, user)
    rules = (await contact_methods.select_rules(tx, [user]))[user]
    return OwnContacts(methods, rules, await contact_methods.select_settings(tx, user))
