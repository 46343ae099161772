"""Contact methods of people, their personal rules and quiet hours.

Locks: an edit locks the account, so that the edits of a person follow each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import LockRank, Tx
from ..rows import ContactMethodRow, ContactSettingsRow
from ..rules.personal_rules import PersonalRule, QuietHours, Urgency

COLUMNS: Final = """
m.id, m.uid, m.user_id, m.kind, m.label, m.config::text, m.config_ciphertext, m.enabled,
m.verified_at, m.code_hash, m.code_expires_at, m.code_attempts, m.created_at, m.proposed_by
"""
_LOCK_PERSON = "select id from users where uid = %(uid)s for no key update"
_OF_USER = f"""
select {COLUMNS} from contact_methods m where m.user_id = %(user)s order by m.id
"""
_INSERT = """
insert into contact_methods
  (uid, user_id, kind, label, config, config_ciphertext, enabled, created_at)
values (%(uid)s, %(user)s, %(kind)s, %(label)s, %(config)s::jsonb, %(sealed)s, true, at(%(now)s))
"""
_UPDATE = "update contact_methods set label = %(label)s, enabled = %(enabled)s where id = %(id)s"
_DELETE = "delete from contact_methods where id = %(id)s"
_SET_CODE = """
update contact_methods set code_hash = %(hash)s, code_expires_at = at(%(until)s), code_attempts = 0
where id = %(id)s
"""
_COUNT_ATTEMPT = "update contact_methods set code_attempts = code_attempts + 1 where id = %(id)s"
_VERIFY = """
update contact_methods set verified_at = at(%(now)s), code_hash = null, code_expires_at = null
where id = %(id)s
"""
_SETTINGS = """
select quiet_from, quiet_until, quiet_zone, sent_at from contact_settings where user_id = %(user)s
"""
_PUT_SENT = """
insert into contact_settings (user_id, sent_at)
values (%(user)s, array(select at(us) from unnest(%(sent_at)s::bigint[]) us))
on conflict (user_id) do update set sent_at = excluded.sent_at
"""
_PUT_QUIET = """
insert into contact_settings (user_id, quiet_from, quiet_until, quiet_zone)
values (%(user)s, %(from)s, %(until)s, %(zone)s)
on conflict (user_id) do update set quiet_from = excluded.quiet_from,
  quiet_until = excluded.quiet_until, quiet_zone = excluded.quiet_zone
"""
_DROP_RULES = "delete from contact_rules where user_id = %(user)s"
_ADD_RULES = """
insert into contact_rules (user_id, severity, place, method, delay_seconds)
select %(user)s, r.severity, r.place, r.method, r.delay
from unnest(%(severities)s::text[], %(places)s::int[], %(methods)s::int[], %(delays)s::int[])
  as r(severity, place, method, delay)
"""
_RULES = """
select user_id, severity, method, delay_seconds from contact_rules
where user_id = any(%(users)s::int[]) order by user_id, severity, place
"""
# A person takes part with the state of the methods; a method receives pages while it is usable.
_REFRESH = """
update notification_channels c set enabled = s.enabled, updated_at = at(%(now)s)
from (
  select c.org, c.id, exists (select from contact_methods m
    where m.user_id = c.person and (c.contact_method is null or m.id = c.contact_method)
      and m.verified_at is not null and m.enabled) as enabled
  from notification_channels c where c.person = %(user)s) s
where c.org = s.org and c.id = s.id and c.enabled <> s.enabled
"""


async def lock_person(tx: Tx, uid: UUID) -> int | None:
    """Locks the account against other edits of its contact methods. Returns its key."""
    key: int | None = await tx.value(_LOCK_PERSON, uid=uid)
    return key


async def select_methods(tx: Tx, user: int) -> list[ContactMethodRow]:
    """Returns the methods of a person in the order of creation."""
    return await tx.structs(ContactMethodRow, _OF_USER, user=user)


async def insert_method(tx: Tx, values: Mapping[str, Any]) -> None:
    await tx.execute(_INSERT, **values, now=tx.now)


async def update_method(tx: Tx, method: int, *, label: str, enabled: bool) -> None:
    await tx.execute(_UPDATE, id=method, label=label, enabled=enabled)


async def delete_method(tx: Tx, method: int) -> None:
    """Deletes a method with its rules, and with its messages that wait in the outbox."""
    await tx.execute(_DELETE, id=method)


async def set_code(tx: Tx, method: int, code_hash: bytes, until: Instant) -> None:
    """Stores the hash of a new code. The former code becomes invalid."""
    await tx.execute(_SET_CODE, id=method, hash=code_hash, until=until)


async def count_attempt(tx: Tx, method: int) -> None:
    await tx.execute(_COUNT_ATTEMPT, id=method)


async def verify_method(tx: Tx, method: int) -> None:
    await tx.execute(_VERIFY, id=method, now=tx.now)


async def select_settings(tx: Tx, user: int) -> ContactSettingsRow:
    row = await tx.one(ContactSettingsRow, _SETTINGS, user=user)
    return ContactSettingsRow(None, None, "", []) if row is None else row


async def put_sent(tx: Tx, user: int, sent_at: Sequence[Instant]) -> None:
    """Stores the instants of the recent codes and test messages."""
    await tx.execute(_PUT_SENT, user=user, sent_at=list(sent_at))


async def put_quiet(tx: Tx, user: int, quiet: QuietHours | None) -> None:
    await tx.execute(
        _PUT_QUIET,
        user=user,
        **{"from": None if quiet is None else quiet.from_minute},
        until=None if quiet is None else quiet.until_minute,
        zone="" if quiet is None else quiet.zone,
    )


async def replace_rules(tx: Tx, user: int, rules: Mapping[Urgency, Sequence[PersonalRule]]) -> None:
    flat = [
        (urgency.value, place, rule)
        for urgency, of_urgency in rules.items()
        for place, rule in enumerate(of_urgency)
    ]
    await tx.execute(_DROP_RULES, user=user)
    await tx.execute(
        _ADD_RULES,
        user=user,
        severities=[severity for severity, _, _ in flat],
        places=[place for _, place, _ in flat],
        methods=[rule.method for _, _, rule in flat],
        delays=[rule.delay_seconds for _, _, rule in flat],
    )


async def select_rules(
    tx: Tx, users: Sequence[int]
) -> dict[int, dict[Urgency, list[PersonalRule]]]:
    """Returns the rules of each person."""
    found: dict[int, dict[Urgency, list[PersonalRule]]] = {user: {} for user in users}
    for user, severity, method, delay in await tx.rows(_RULES, users=list(users)):
        found[user].setdefault(Urgency(severity), []).append(PersonalRule(method, delay))
    return found


async def refresh_channels(tx: Tx, user: int) -> None:
    """Enables and disables the channels of a person after an edit of the methods."""
    tx.lock_rank(LockRank.CHANNEL, "the channels of a person")
    await tx.execute(_REFRESH, user=user, now=tx.now)
