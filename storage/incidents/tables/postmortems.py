"""Postmortems of incidents. A write replaces the text; only a published one is public."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...engine.pools import Tx
from ..rows import PostmortemRow

_COLUMNS = """
uid, body, declaration_revision, author_label, published, published_at, created_at, updated_at
"""
_PUT = f"""
insert into postmortems (org, incident, uid, body, declaration_revision, author, author_label,
  published, published_at, created_at, updated_at)
values (%(org)s, %(incident)s, %(uid)s, %(body)s, %(revision)s,
  (select id from users where uid = %(author)s::uuid), %(label)s, %(published)s,
  at(%(now)s), at(%(now)s), at(%(now)s))
on conflict (org, incident) do update
  set body = excluded.body, declaration_revision = excluded.declaration_revision,
    published = excluded.published, updated_at = excluded.updated_at,
    published_at = case when excluded.published and not postmortems.published
      then excluded.published_at else postmortems.published_at end
returning {_COLUMNS}
"""


async def put_postmortem(
    tx: Tx,
    org: int,
    incident: int,
    *,
    body: str,
    revision: int | None,
    published: bool,
    author: UUID | None,
    label: str,
) -> PostmortemRow:
    """Inserts or replaces the postmortem. The caller has locked the incident."""
    row = await tx.one(
        PostmortemRow,
        _PUT,
        org=org,
        incident=incident,
        uid=uuid7(),
        body=body,
        revision=revision,
        published=published,
        author=author,
        label=label,
        now=tx.now,
    )
    assert row is not None, "upsert returned no row"
    return row
