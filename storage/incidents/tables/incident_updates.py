"""Updates of incidents in the order of `seq`.

Invariant: an update is never changed, except that a withdrawal makes it internal.
"""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...engine.pools import Tx
from ..rows import UpdateRow

_COLUMNS = "seq, uid, status, body, public, author_label, created_at, withdraws"
_INSERT = f"""
insert into incident_updates
  (org, incident, seq, uid, status, body, public, author, author_label, created_at, withdraws)
values (%(org)s, %(incident)s, %(seq)s, %(uid)s, %(status)s, %(body)s, %(public)s,
  (select id from users where uid = %(author)s::uuid), %(label)s, at(%(now)s),
  %(withdraws)s)
returning {_COLUMNS}
"""
_HIDE = """
update incident_updates set public = false
where org = %(org)s and incident = %(incident)s and seq = %(seq)s
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
    withdraws: int | None = None,
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
        withdraws=withdraws,
        now=tx.now,
    )
    assert row is not None, "insert returned no row"
    return row


async def hide_update(tx: Tx, org: int, incident: int, seq: int) -> None:
    """Makes an update internal. The caller has locked its incident."""
    await tx.execute(_HIDE, org=org, incident=incident, seq=seq)
