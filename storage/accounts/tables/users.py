"""Users and memberships."""

from uuid import UUID

from ...engine.pools import LockRank, Tx
from ..rows import MembershipRow, UserRow

_COLUMNS = """
u.id, u.uid, u.email, u.display_name, u.is_global_admin, u.password, u.created_at, u.updated_at,
u.last_active_at, u.email_verified,
(select i.subject from user_identities i where i.user_id = u.id order by i.created_at limit 1)
"""
_BY_UID = f"select {_COLUMNS} from users u where u.uid = %(uid)s"
_BY_ID = f"select {_COLUMNS} from users u where u.id = %(id)s"
_ANY = "select exists (select from users)"
# Of several processes that start on an empty database, one creates the first account.
_LOCK_FOUNDING = "lock table users in share row exclusive mode"
_SEARCH = f"""
select {_COLUMNS} from users u
where %(q)s = '' or position(lower(%(q)s) in lower(u.email)) > 0
  or position(lower(%(q)s) in lower(u.display_name)) > 0
order by lower(u.email) limit %(most)s
"""
_INSERT = """
insert into users (uid, email, display_name, is_global_admin, password, email_verified, created_at,
  updated_at)
values (%(uid)s, %(email)s, %(display_name)s, %(admin)s, %(password)s, %(verified)s, at(%(now)s),
  at(%(now)s))
on conflict ((lower(email))) where email_verified and email <> '' do nothing returning id
"""
_SET_PASSWORD = """
update users set password = %(password)s, updated_at = at(%(now)s) where id = %(id)s
"""
_NOTE_ACTIVE = """
update users set last_active_at = at(%(now)s) where id = %(id)s
  and coalesce(last_active_at, '-infinity') < at(%(now)s) - interval '1 minute'
"""
_LOCK_ADMINS = "select id from users where is_global_admin order by id for update"
_SET_ADMIN = """
update users set is_global_admin = %(admin)s, updated_at = at(%(now)s) where id = %(id)s
"""
_SET_FROM_PROVIDER = """
update users set email = %(email)s, email_verified = %(verified)s, display_name = %(name)s,
  updated_at = at(%(now)s)
where id = %(id)s
"""
_SET_TIME_PREFERENCE = """
update users set time_zone = %(zone)s, hour_clock = %(hours)s where uid = %(uid)s
"""
_DELETE = "delete from users where id = %(id)s"

_MEMBER_COLUMNS = """
m.org, m.id, m.uid, o.uid, m.user_id, u.uid, m.project, p.uid, m.role::text, m.created_at,
u.email, u.display_name, u.last_active_at, m.group_issuer
"""
_MEMBER_FROM = """
from memberships m join users u on u.id = m.user_id join organizations o on o.id = m.org
  left join projects p on p.org = m.org and p.id = m.project
"""
_MEMBERSHIPS_OF_USER = f"""
select {_MEMBER_COLUMNS} {_MEMBER_FROM} where m.user_id = %(user)s order by m.org, m.id
"""
_MEMBERSHIP = f"""
select {_MEMBER_COLUMNS} {_MEMBER_FROM} where m.org = %(org)s and m.uid = %(uid)s for update of m
"""
_INSERT_MEMBERSHIP = """
insert into memberships (org, uid, user_id, project, role, created_at, group_issuer)
values (%(org)s, %(uid)s, %(user)s, %(project)s, %(role)s::role, at(%(now)s), %(group_issuer)s)
on conflict do nothing returning id
"""
_SET_ROLE = """
update memberships set role = %(role)s::role where org = %(org)s and id = %(id)s
"""
_TAKE_FROM_GROUPS = """
update memberships set group_issuer = null where org = %(org)s and id = %(id)s
"""
_LOCK_USER = "select id from users where id = %(id)s for update"
_DELETE_MEMBERSHIP = "delete from memberships where org = %(org)s and id = %(id)s"
# Where no other membership remains: with their messages that wait, and their threads.
_DROP_CONTACTS = """
delete from notification_channels c
where c.person = %(user)s and c.org = %(org)s and c.contact_method is not null
  and not exists (select from memberships m
    where m.user_id = c.person and m.org = c.org and (m.project is null or m.project = c.project))
"""
# Locked during a removal, so that concurrent removals cannot remove the last two.
_LOCK_ORG_ADMINS = """
select id from memberships where org = %(org)s and role = 'org_admin' order by id for update
"""


async def set_time_preference(tx: Tx, uid: UUID, time_zone: str, hour_clock: int) -> bool:
    """Returns whether the user exists."""
    many = await tx.execute(_SET_TIME_PREFERENCE, uid=uid, zone=time_zone, hours=hour_clock)
    return many == 1


async def select_user(tx: Tx, uid: UUID) -> UserRow | None:
    return await tx.one(UserRow, _BY_UID, uid=uid)


async def select_user_by_id(tx: Tx, user: int) -> UserRow | None:
    return await tx.one(UserRow, _BY_ID, id=user)


async def has_users(tx: Tx) -> bool:
    found: bool = await tx.value(_ANY)
    return found


async def lock_bootstrap(tx: Tx) -> None:
    await tx.execute(_LOCK_FOUNDING)


async def search_users(tx: Tx, q: str, most: int) -> list[UserRow]:
    return await tx.structs(UserRow, _SEARCH, q=q, most=most)


async def insert_user(
    tx: Tx,
    uid: UUID,
    email: str,
    display_name: str,
    password: str | None,
    *,
    admin: bool,
    verified: bool = True,
) -> int | None:
    """Returns the new key, None if the verified address is taken.

    Unverified ones never conflict.
    """
    key: int | None = await tx.value(
        _INSERT,
        uid=uid,
        email=email,
        display_name=display_name,
        password=password,
        admin=admin,
        verified=verified,
        now=tx.now,
    )
    return key


async def set_password(tx: Tx, user: int, password: str) -> None:
    await tx.execute(_SET_PASSWORD, id=user, password=password, now=tx.now)


async def update_from_provider(tx: Tx, user: int, email: str, name: str, *, verified: bool) -> None:
    """Writes the provider's current data of a user."""
    await tx.execute(
        _SET_FROM_PROVIDER, id=user, email=email, verified=verified, name=name, now=tx.now
    )


async def record_active(tx: Tx, user: int) -> None:
    await tx.execute(_NOTE_ACTIVE, id=user, now=tx.now)


async def lock_global_admins(tx: Tx) -> list[int]:
    return [key for (key,) in await tx.rows(_LOCK_ADMINS)]


async def set_global_admin(tx: Tx, user: int, *, admin: bool) -> None:
    await tx.execute(_SET_ADMIN, id=user, admin=admin, now=tx.now)


async def delete_user(tx: Tx, user: int) -> None:
    await tx.execute(_DELETE, id=user)


async def select_memberships(tx: Tx, user: int) -> list[MembershipRow]:
    return await tx.structs(MembershipRow, _MEMBERSHIPS_OF_USER, user=user)


async def lock_membership(tx: Tx, org: int, uid: UUID) -> MembershipRow | None:
    return await tx.one(MembershipRow, _MEMBERSHIP, org=org, uid=uid)


async def insert_membership(
    tx: Tx,
    org: int,
    uid: UUID,
    user: int,
    project: int | None,
    role: str,
    group_issuer: str | None = None,
) -> int | None:
    """Returns the new key, None if the membership exists.

    `group_issuer` is the issuer whose groups give the membership, None if a person gives it.
    """
    values = {"org": org, "uid": uid, "user": user, "project": project, "role": role}
    key: int | None = await tx.value(
        _INSERT_MEMBERSHIP, now=tx.now, group_issuer=group_issuer, **values
    )
    return key


async def set_role(tx: Tx, org: int, membership: int, role: str) -> None:
    await tx.execute(_SET_ROLE, org=org, id=membership, role=role)


async def take_from_groups(tx: Tx, org: int, membership: int) -> None:
    """Makes a membership that groups gave one that a person gave."""
    await tx.execute(_TAKE_FROM_GROUPS, org=org, id=membership)


async def lock_user(tx: Tx, user: int) -> None:
    await tx.execute(_LOCK_USER, id=user)


async def delete_membership(tx: Tx, row: MembershipRow) -> None:
    """Deletes a membership, and the messages that the person can no longer read."""
    await tx.execute(_DELETE_MEMBERSHIP, org=row.org, id=row.id)
    tx.lock_rank(LockRank.CHANNEL, "the contact methods of a former member")
    await tx.execute(_DROP_CONTACTS, org=row.org, user=row.user_id)


async def lock_org_admins(tx: Tx, org: int) -> list[int]:
    return [key for (key,) in await tx.rows(_LOCK_ORG_ADMINS, org=org)]
