"""Audit entries of an organization or of the installation, newest first."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

# Newest entries whose values a filter offers.
FACETS_OF_NEWEST = 10_000

_COLUMNS = """
a.uid, o.uid, u.uid, u.email, a.actor_label, a.via_token, a.action, a.target, a.created_at
"""
_NAMES = "left join organizations o on o.id = a.org left join users u on u.id = a.actor_user"
_MATCHES = """
a.org = %(org)s
  and (%(actors)s::text[] is null or a.actor_label = any(%(actors)s))
  and (%(kinds)s::text[] is null or split_part(a.action, '.', 1) = any(%(kinds)s))
  and (%(actions)s::text[] is null or a.action = any(%(actions)s))
  and (%(since)s::bigint is null or a.created_at >= at(%(since)s))
  and (%(until)s::bigint is null or a.created_at < at(%(until)s))
  and (%(q)s = '' or position(lower(%(q)s) in lower(a.actor_label)) > 0
    or position(lower(%(q)s) in lower(a.target)) > 0
    or position(lower(%(q)s) in a.action) > 0)
"""
# The names of organization and user are joined to the rows of the page only.
_PAGE = f"""
select {_COLUMNS} from (
  select * from audit_entries a where {_MATCHES}
  order by a.id desc offset %(skip)s limit %(most)s) a {_NAMES}
order by a.id desc
"""
_COUNT = f"""
select count(*) from (select from audit_entries a where {_MATCHES} limit %(most)s) found
"""
_CHUNK = f"""
select {_COLUMNS}, a.id from (
  select * from audit_entries a where {_MATCHES} and a.id < %(before)s
  order by a.id desc limit %(most)s) a {_NAMES}
order by a.id desc
"""
_VALUES = """
select a.actor_label, a.action, count(*) from (
  select actor_label, action from audit_entries where org = %(org)s
  order by id desc limit %(most)s) a
group by a.actor_label, a.action
"""
_AFTER_ALL = 2**63 - 1


class AuditRow(msgspec.Struct, frozen=True):
    """Audit entry. `actor_uid` and `actor_email` are None if the user is deleted or unknown."""

    uid: UUID
    org_uid: UUID | None
    actor_uid: UUID | None
    actor_email: str | None
    actor_label: str
    via_token: bool
    action: str
    target: str
    created_at: Instant


class ExportedRow(AuditRow, frozen=True):
    # Position in the log, from which the next chunk continues.
    id: int


class AuditFilter(msgspec.Struct, frozen=True):
    """Conditions on entries, which apply together. An empty set accepts every value.

    A kind is the part of the action before its point: `monitor` of `monitor.update`. The time is
    [`since`, `until`). `q` is part of an actor, an action or a target, regardless of case.
    """

    actors: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()
    since: Instant | None = None
    until: Instant | None = None
    q: str = ""


class AuditValues(msgspec.Struct, frozen=True):
    """How many of the newest entries have an actor and an action."""

    actor: str
    action: str
    many: int


async def select_audit_page(
    tx: Tx, org: int, chosen: AuditFilter, skip: int, most: int
) -> list[AuditRow]:
    """Returns the matching entries after the newest `skip` ones."""
    return await tx.structs(AuditRow, _PAGE, **_params(org, chosen), skip=skip, most=most)


async def count_audit(tx: Tx, org: int, chosen: AuditFilter, most: int) -> int:
    """Returns the number of matching entries, at most `most`."""
    found: int = await tx.value(_COUNT, **_params(org, chosen), most=most)
    return found


async def select_audit_chunk(
    tx: Tx, org: int, chosen: AuditFilter, before: int | None, most: int
) -> Sequence[ExportedRow]:
    """Returns matching entries older than the position, None for the newest.

    `org` INSTANCE selects those of the installation.
    """
    at = _AFTER_ALL if before is None else before
    return await tx.structs(ExportedRow, _CHUNK, **_params(org, chosen), before=at, most=most)


async def select_audit_values(tx: Tx, org: int) -> list[AuditValues]:
    """Returns the values of the newest FACETS_OF_NEWEST entries."""
    return await tx.structs(AuditValues, _VALUES, org=org, most=FACETS_OF_NEWEST)


def _params(org: int, chosen: AuditFilter) -> dict[str, Any]:
    return {
        "org": org,
        "actors": sorted(chosen.actors) or None,
        "kinds": sorted(chosen.kinds) or None,
        "actions": sorted(chosen.actions) or None,
        "since": chosen.since,
        "until": chosen.until,
        "q": chosen.q,
    }
