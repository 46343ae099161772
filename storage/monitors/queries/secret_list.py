"""Secrets of a project as shown: names, ages, and the number of referring monitors."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.secret import REFERENCE_SUFFIX

# Computed from the settings themselves, so that the count is always correct.
_REFERRING = f"""
select c.value as name, count(distinct m.id) as monitors
from monitors m, jsonb_each(m.config) c
where m.org = %(org)s and m.project = %(project)s
  and right(c.key, {len(REFERENCE_SUFFIX)}) = '{REFERENCE_SUFFIX}'
  and jsonb_typeof(c.value) = 'string'
group by c.value
"""
_LIST = f"""
select s.uid, s.name, s.created_at, s.rotated_at, coalesce(r.monitors, 0)
from project_secrets s left join ({_REFERRING}) r on r.name = to_jsonb(s.name)
where s.org = %(org)s and s.project = %(project)s
order by s.name
"""
_IN_USE = f"""
select exists (select from ({_REFERRING}) r where r.name = to_jsonb(%(name)s::text))
"""


class ListedSecret(msgspec.Struct, frozen=True):
    uid: UUID
    name: str
    created_at: Instant
    rotated_at: Instant | None
    used_by: int


async def select_secrets(tx: Tx, org: int, project: int) -> list[ListedSecret]:
    return await tx.structs(ListedSecret, _LIST, org=org, project=project)


async def is_referred_to(tx: Tx, org: int, project: int, name: str) -> bool:
    found: bool = await tx.value(_IN_USE, org=org, project=project, name=name)
    return found
