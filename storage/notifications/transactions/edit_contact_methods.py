"""Contact methods of the own account: creation, verification by a code, rules and quiet hours.

Invariants: a method that is not verified receives nothing but its code. The address of a method
never changes. A wrong code is counted although it is refused, so the caller commits it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.senders.personal import PERSONAL_SPECS
from ....probes.senders.phone import PHONE_KINDS, plain_number
from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...core.instant import Instant
from ...core.naming import text_rule_broken
from ...core.refusal import Refused, expect
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ..rows import ContactMethodRow
from ..rules.contact_method import (
    CODE_LASTS_US,
    LABEL_LONGEST,
    METHODS_MOST,
    code_hash,
    is_code,
    is_open,
    recent_sends,
    wait_seconds,
)
from ..rules.personal_rules import PersonalRule, QuietHours, Urgency, quiet_fault, rules_fault
from ..tables import contact_methods, person_channels
from .channel_secrets import checked, place_of_method, split

OWN: Final = Permission(Need.SESSION)


@dataclass(frozen=True, slots=True)
class RuleDraft:
    method: UUID
    delay_seconds: int


async def create_method(
    tx: Tx, principal: Principal, kind: str, label: str, config: Mapping[str, str], keyring: Keyring
) -> ContactMethodRow:
    """Creates a method, which is not verified.

    Raises: Refused forbidden, invalid with its field, contact_method_quota, encryption_key_missing.
    """
    user = await _lock_own(tx, principal)
    spec = PERSONAL_SPECS.get(kind)
    if spec is None:
        raise Refused("invalid", "kind", f"must be one of {', '.join(PERSONAL_SPECS)}")
    expect("label", _label_fault(label))
    if kind in PHONE_KINDS:
        config = {**config, "to": plain_number(config.get("to", ""))}
    whole = checked(spec, config)
    if len(await contact_methods.select_methods(tx, user)) >= METHODS_MOST:
        raise Refused("contact_method_quota")
    uid = uuid7()
    plain, sealed = split(spec, whole, keyring, place_of_method(uid))
    values = {"uid": uid, "user": user, "kind": kind, "label": label}
    await contact_methods.insert_method(tx, {**values, "config": plain, "sealed": sealed})
    await audit(tx, principal, INSTANCE, "contact_method.create", _target(principal, uid, kind))
    return await _found(tx, user, uid)


async def edit_method(
    tx: Tx, principal: Principal, method: UUID, label: str | None, enabled: bool | None
) -> ContactMethodRow:
    """Changes the fields that are not None.

    Raises: Refused forbidden, not_found, invalid with its field.
    """
    user = await _lock_own(tx, principal)
    before = await _found(tx, user, method)
    if label is not None:
        expect("label", _label_fault(label))
    named = before.label if label is None else label
    is_enabled = before.enabled if enabled is None else enabled
    if (named, is_enabled) == (before.label, before.enabled):
        return before
    await contact_methods.update_method(tx, before.id, label=named, enabled=is_enabled)
    await contact_methods.refresh_channels(tx, user)
    target = f"{_target(principal, method, before.kind)} enabled={is_enabled}".lower()
    await audit(tx, principal, INSTANCE, "contact_method.update", target)
    return await _found(tx, user, method)


async def delete_method(tx: Tx, principal: Principal, method: UUID) -> None:
    """Deletes a method with its rules and waiting messages.

    Raises: Refused forbidden, not_found.
    """
    user = await _lock_own(tx, principal)
    row = await _found(tx, user, method)
    await contact_methods.delete_method(tx, row.id)
    await contact_methods.refresh_channels(tx, user)
    target = _target(principal, method, row.kind)
    await audit(tx, principal, INSTANCE, "contact_method.delete", target)


async def begin_code(
    tx: Tx, principal: Principal, method: UUID, code: str
) -> tuple[ContactMethodRow, int]:
    """Stores the hash of a new code for the caller to send, and counts the message.

    Returns the method, and the seconds to wait if the limit is reached: then no code is stored.

    Raises: Refused forbidden, not_found, and invalid if the method is verified.
    """
    user = await _lock_own(tx, principal)
    row = await _found(tx, user, method)
    if row.verified_at is not None:
        raise Refused("invalid", "method", "is verified")
    wait = await _count_send(tx, user)
    if not wait:
        until = Instant(tx.now + CODE_LASTS_US)
        await contact_methods.set_code(tx, row.id, code_hash(method, code), until)
    return row, wait


async def confirm_code(tx: Tx, principal: Principal, method: UUID, text: str) -> bool:
    """Verifies the method by its code. Returns False for a wrong code, which is counted.

    Raises: Refused forbidden, not_found, and invalid if no code is valid.
    """
    user = await _lock_own(tx, principal)
    row = await _found(tx, user, method)
    if row.verified_at is not None:
        return True
    if not is_open(row.code_expires_at, row.code_attempts, tx.now):
        raise Refused("invalid", "code", "has expired: request a new one")
    if not is_code(method, text, row.code_hash):
        await contact_methods.count_attempt(tx, row.id)
        return False
    await contact_methods.verify_method(tx, row.id)
    await contact_methods.refresh_channels(tx, user)
    target = _target(principal, method, row.kind)
    await audit(tx, principal, INSTANCE, "contact_method.verify", target)
    return True


async def begin_test(tx: Tx, principal: Principal, method: UUID) -> tuple[ContactMethodRow, int]:
    """Counts a test message. Returns the method, and the seconds to wait if the limit is reached.

    Raises: Refused forbidden, not_found, and invalid if the method is not verified.
    """
    user = await _lock_own(tx, principal)
    row = await _found(tx, user, method)
    if row.verified_at is None:
        raise Refused("invalid", "method", "is not verified")
    return row, await _count_send(tx, user)


async def put_rules(
    tx: Tx,
    principal: Principal,
    rules: Mapping[Urgency, Sequence[RuleDraft]],
    quiet: QuietHours | None,
) -> None:
    """Replaces the rules of both severities and the quiet hours. Equal ones are not written.

    Raises: Refused forbidden, invalid with its field.
    """
    user = await _lock_own(tx, principal)
    if quiet is not None and (wrong := quiet_fault(quiet)) is not None:
        raise Refused("invalid", *wrong)
    keys = {row.uid: row.id for row in await contact_methods.select_methods(tx, user)}
    whole: dict[Urgency, list[PersonalRule]] = {}
    for urgency, drafts in rules.items():
        found = [PersonalRule(keys.get(one.method, 0), one.delay_seconds) for one in drafts]
        wrong = rules_fault(found, set(keys.values()))
        if wrong is not None:
            raise Refused("invalid", f"{urgency.value}{wrong[0]}", wrong[1])
        whole[urgency] = found
    if await _are_in_force(tx, user, whole, quiet):
        return
    await contact_methods.replace_rules(tx, user, whole)
    await contact_methods.put_quiet(tx, user, quiet)
    counts = " ".join(f"{urgency.value}={len(whole.get(urgency, ()))}" for urgency in Urgency)
    target = f"user:{principal.user} {counts} quiet={quiet is not None}".lower()
    await audit(tx, principal, INSTANCE, "contact_rules.update", target)


async def _are_in_force(
    tx: Tx, user: int, rules: Mapping[Urgency, list[PersonalRule]], quiet: QuietHours | None
) -> bool:
    """Returns whether the stored rules and quiet hours are these."""
    stored = (await contact_methods.select_rules(tx, [user]))[user]
    found = (await person_channels.select_quiet_hours(tx, [user])).get(user)
    same = all(stored.get(urgency, []) == rules.get(urgency, []) for urgency in Urgency)
    return same and found == quiet


async def _count_send(tx: Tx, user: int) -> int:
    """Counts a message. Returns the seconds to wait instead if the limit is reached."""
    sent = (await contact_methods.select_settings(tx, user)).sent_at
    wait = wait_seconds(sent, tx.now)
    if not wait:
        await contact_methods.put_sent(tx, user, [*recent_sends(sent, tx.now), tx.now])
    return wait


def _label_fault(label: str) -> str | None:
    if not label.strip():
        return "must not be blank"
    if len(label) > LABEL_LONGEST:
        return f"must be at most {LABEL_LONGEST} characters"
    return text_rule_broken(label)


async def _lock_own(tx: Tx, principal: Principal) -> int:
    demand(principal, OWN, None)
    uid = principal.user
    user = await contact_methods.lock_person(tx, uid) if isinstance(uid, UUID) else None
    if user is None:
        raise Refused("unauthorized")
    return user


async def _found(tx: Tx, user: int, method: UUID) -> ContactMethodRow:
    for row in await contact_methods.select_methods(tx, user):
        if row.uid == method:
            return row
    raise Refused(NOT_FOUND)


def _target(principal: Principal, method: UUID, kind: str) -> str:
    return f"contact_method:{method} user:{principal.user} kind={kind}"
