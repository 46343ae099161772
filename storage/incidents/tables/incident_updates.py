"""What was written of incidents, one after the other by seq; none of it ever changes."""

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx

_COLUMNS = "seq, uid, status, body, public, author_label, created_at"
_OF = f"""
select {_COLUMNS} from incident_updates where org = %(org)s and incident = %(incident)s order by seq
"""
_INSERT = f"""
insert into incident_updates
  (org, incident, seq, uid, status, body, public, author, author_label, created_at)
values (%(org)s, %(incident)s, %(seq)s, %(uid)s, %(status)s, %(body)s, %(public)s,
  (select id from users where uid = %(author)s::uuid), %(label)s, at(%(now)s))
returning {_COLUMNS}
"""


class UpdateRow(msgspec.Struct, frozen=True):
    """`status` is None for a plain note; `author_label` is empty where a machine wrote it."""

    seq: int
    uid: UUID
    status: str | None
    body: str
    public: bool
    author_label: str
    created_at: Instant


async def select_updates(tx: Tx, org: int, incident: int) -> list[UpdateRow]:
    """In the order in which they were written."""
    return await tx.structs(UpdateRow, _OF, org=org, incident=incident)


async def insert_update(
    tx: Tx,
    org: int,
    incident: int,
    seq: int,
    *,
    status: str | None,
    body: str,
    public: bool,
    author: UUID | None,
    label: str,
) -> UpdateRow:
    row = await tx.one(
        UpdateRow,
        _INSERT,
        org=org,
        incident=incident,
        seq=seq,
        uid=uuid7(),
        status=status,
        body=body,
        public=public,
        author=author,
        label=label,
        now=tx.now,
    )
    assert row is not None, "an insert returns what it wrote"
    return row
