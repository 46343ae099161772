"""What was learned of an incident: one text, published with its first writing and edited since."""

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import Instant
from ...engine.pools import Tx

_COLUMNS = """
uid, body, declaration_revision, author_label, published_at, created_at, updated_at
"""
_OF = f"select {_COLUMNS} from postmortems where org = %(org)s and incident = %(incident)s"
_PUT = f"""
insert into postmortems (org, incident, uid, body, declaration_revision, author, author_label,
  published_at, created_at, updated_at)
values (%(org)s, %(incident)s, %(uid)s, %(body)s, %(revision)s,
  (select id from users where uid = %(author)s::uuid), %(label)s, at(%(now)s), at(%(now)s),
  at(%(now)s))
on conflict (org, incident) do update
  set body = excluded.body, declaration_revision = excluded.declaration_revision,
    updated_at = excluded.updated_at
returning {_COLUMNS}
"""


class PostmortemRow(msgspec.Struct, frozen=True):
    """`author_label` is who published it."""

    uid: UUID
    body: str
    declaration_revision: int | None
    author_label: str
    published_at: Instant
    created_at: Instant
    updated_at: Instant


async def select_postmortem(tx: Tx, org: int, incident: int) -> PostmortemRow | None:
    return await tx.one(PostmortemRow, _OF, org=org, incident=incident)


async def put_postmortem(
    tx: Tx,
    org: int,
    incident: int,
    *,
    body: str,
    revision: int | None,
    author: UUID | None,
    label: str,
) -> PostmortemRow:
    """The incident is held: one writes at a time."""
    row = await tx.one(
        PostmortemRow,
        _PUT,
        org=org,
        incident=incident,
        uid=uuid7(),
        body=body,
        revision=revision,
        author=author,
        label=label,
        now=tx.now,
    )
    assert row is not None, "an upsert returns what it wrote"
    return row
