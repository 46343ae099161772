"""People of a bundle of format 3: addresses, and contact methods that the bundle proposes.

Invariant: a bundle gives nobody access, and no message is sent to a proposed method before the
person requests its code.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ....probes.senders.personal import PERSONAL_SPECS
from ....probes.senders.phone import PHONE_KINDS, plain_number
from ...core.naming import email_fault, text_rule_broken, words_fault
from ...core.refusal import Refused
from ...notifications.rules.contact_method import LABEL_LONGEST
from .bundle_oncall import OnCallEntry, expect_entry

PEOPLE_MOST: Final = 1_000
# Of a person. The account keeps at most as many proposed ones, see `adopt_proposed_methods`.
PROPOSED_MOST: Final = 10
# The kinds whose only setting is an address, which is no secret.
KINDS: Final = ("email", "sms", "voice")
_LABELS: Final = {"email": "Mail", "sms": "Phone", "voice": "Phone"}


class ProposedMethod(OnCallEntry, frozen=True, kw_only=True):
    """Contact method without secrets: an e-mail address or a phone number."""

    kind: Literal["email", "sms", "voice"]
    address: str
    label: str = ""


class PersonEntry(OnCallEntry, frozen=True, kw_only=True):
    """Person. `name` and `role` are those of an invitation, if one is necessary."""

    email: str
    name: str | UnsetType = UNSET
    role: Literal["viewer", "editor"] = "editor"
    contact_methods: list[ProposedMethod] = []


def read_person(path: str, entry: PersonEntry) -> PersonEntry:
    """Returns the entry with plain addresses and with labels.

    Raises:
        Refused invalid with the field.
    """
    expect_entry(path, _fault_of("email", email_fault(entry.email)))
    if isinstance(entry.name, str):
        expect_entry(path, _fault_of("name", words_fault(entry.name)))
    if len(entry.contact_methods) > PROPOSED_MOST:
        rule = f"must have at most {PROPOSED_MOST} entries"
        raise Refused("invalid", f"{path}.contact_methods", rule)
    methods: list[ProposedMethod] = []
    for at, one in enumerate(entry.contact_methods):
        plain = plain_method(one)
        expect_entry(f"{path}.contact_methods[{at}]", method_fault(plain))
        if any((one.kind, one.address) == (plain.kind, plain.address) for one in methods):
            raise Refused("invalid", f"{path}.contact_methods[{at}]", "must not be given twice")
        methods.append(plain)
    return msgspec.structs.replace(entry, contact_methods=methods)


def expect_distinct(people: Mapping[str, PersonEntry]) -> None:
    """Refuses two entries of one address.

    Raises:
        Refused invalid.
    """
    seen: dict[str, str] = {}
    for uid, one in people.items():
        other = seen.setdefault(one.email.lower(), uid)
        if other != uid:
            raise Refused("invalid", f"people.{uid}.email", f"is the address of {other} too")


def plain_method(method: ProposedMethod) -> ProposedMethod:
    """Returns the method with its address in the form of the profile, and with a label."""
    address = method.address.strip()
    if method.kind in PHONE_KINDS:
        address = plain_number(address)
    label = method.label if method.label.strip() else _LABELS[method.kind]
    return msgspec.structs.replace(method, address=address, label=label)


def method_fault(method: ProposedMethod) -> tuple[str, str] | None:
    """Returns the wrong field of a plain method and its rule, as the profile would refuse it."""
    for fault in PERSONAL_SPECS[method.kind].faults({"to": method.address}):
        return "address", fault.message
    if len(method.label) > LABEL_LONGEST:
        return "label", f"must be at most {LABEL_LONGEST} characters"
    return _fault_of("label", text_rule_broken(method.label))


def new_methods(
    wanted: Sequence[Mapping[str, Any]], before: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Returns the methods that were not proposed before. A changed label is no new method."""
    known = {(one["kind"], one["address"]) for one in before}
    return [one for one in wanted if (one["kind"], one["address"]) not in known]


def _fault_of(field: str, rule: str | None) -> tuple[str, str] | None:
    return None if rule is None else (field, rule)
