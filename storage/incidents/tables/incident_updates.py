"""Updates of incidents in the order of `seq`. Invariant: an update is never changed."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...engine.pools import Tx
from ..rows import UpdateRow

_COLUMNS = "seq, uid, status, body, public, author_label, created_at"
_INSERT = f"""
insert into incident_updates
  (org, incident, seq, uid, status, body, public, author, author_label, created_at)
values (%(org)s, %(incident)s, %(seq)s, %(uid)s, %(status)s, %(body)s, %(public)s,
  (select id from users where uid = %(author)s::uuid), %(label)s, at(%(now)s))
returning {_COLUMNS}
"""


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
    assert row is not None, "insert returned no row"
    return row
