"""Status pages. The token of an unlisted page is already encrypted.

An edit of a page or its components locks the page and increments its generation. Therefore a
deletion removes all components, and a reader of a generation can detect later edits.
"""

from dataclasses import asdict
from uuid import UUID

import msgspec

from ...engine.pools import LockRank, Tx
from ..rows import PageRow
from ..rules.branding import PageBranding

_COLUMNS = """
g.accent_color, g.logo_url, g.footer_text, g.support_url,
g.org, g.id, g.uid, o.uid, g.project, p.uid, g.slug, g.title, g.visibility, n.domain,
g.token_ciphertext, g.generation, g.created_at, g.updated_at,
n.token is not null, c.domain, c.token, c.checked_at, c.reason, g.time_zone, g.language
"""
_FROM = """
from status_pages g join organizations o on o.id = g.org
  left join projects p on p.org = g.org and p.id = g.project
  left join status_page_domains n on n.org = g.org and n.page = g.id
  left join status_page_domain_claims c on c.org = g.org and c.page = g.id
"""
_BY_UID = f"select {_COLUMNS} {_FROM} where g.uid = %(uid)s"
# Edits of a page and of its components are serialized.
_LOCK = f"{_BY_UID} for no key update of g"
_HOLD_BY_KEY = "select uid from status_pages where org = %(org)s and id = %(id)s for key share"
_COUNT = "select count(*) from status_pages where org = %(org)s"
# First key of the advisory locks. The second key is the organization.
QUOTA_LOCK_CLASS = 1_279_610_188
_LOCK_QUOTA = f"select pg_advisory_xact_lock({QUOTA_LOCK_CLASS}, %(org)s::int)"
_INSERT = """
insert into status_pages
  (org, uid, project, slug, title, visibility, token_hash, token_ciphertext, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(slug)s, %(title)s, %(visibility)s, %(hashed)s, %(sealed)s,
  at(%(now)s), at(%(now)s))
on conflict (slug) do nothing
returning id
"""
_UPDATE = """
update status_pages set title = %(title)s, visibility = %(visibility)s,
  generation = generation + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_UPDATE_WITH_TOKEN = """
update status_pages set title = %(title)s, visibility = %(visibility)s, token_hash = %(hashed)s,
  token_ciphertext = %(sealed)s, generation = generation + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_BRAND = """
update status_pages set accent_color = %(accent_color)s, logo_url = %(logo_url)s,
  footer_text = %(footer_text)s, support_url = %(support_url)s,
  generation = generation + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_SET_ZONE = """
update status_pages set time_zone = %(zone)s, generation = generation + 1,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_SET_LANGUAGE = """
update status_pages set language = %(language)s, generation = generation + 1,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_RAISE = """
update status_pages set generation = generation + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from status_pages where org = %(org)s and id = %(id)s"


class Token(msgspec.Struct, frozen=True):
    """Token of an unlisted page: its hash for lookups and its encrypted form for display."""

    hashed: bytes
    sealed: bytes


async def lock_status_page(tx: Tx, uid: UUID) -> PageRow | None:
    tx.lock_rank(LockRank.PAGE, "a status page that changes")
    return await tx.one(PageRow, _LOCK, uid=uid)


async def lock_shared_page(tx: Tx, org: int, page: int) -> UUID | None:
    """Locks a page against deletion, not against edits.

    Returns its id, None if it does not exist.
    """
    tx.lock_rank(LockRank.PAGE, "a status page with subscribers")
    uid: UUID | None = await tx.value(_HOLD_BY_KEY, org=org, id=page)
    return uid


async def set_time_zone(tx: Tx, row: PageRow, zone: str) -> None:
    await tx.execute(_SET_ZONE, org=row.org, id=row.id, zone=zone, now=tx.now)


async def set_language(tx: Tx, row: PageRow, language: str) -> None:
    await tx.execute(_SET_LANGUAGE, org=row.org, id=row.id, language=language, now=tx.now)


async def count_status_pages(tx: Tx, org: int) -> int:
    count: int = await tx.value(_COUNT, org=org)
    return count


async def lock_page_quota(tx: Tx, org: int) -> None:
    """Serializes new pages of an organization until the commit, so that its quota is exact."""
    tx.lock_rank(LockRank.PAGE, "the number of status pages")
    await tx.execute(_LOCK_QUOTA, org=org)


async def insert_status_page(
    tx: Tx,
    org: int,
    uid: UUID,
    project: int | None,
    slug: str,
    title: str,
    visibility: str,
    token: Token | None,
) -> bool:
    """Inserts a page. Returns False if the slug is taken in the installation."""
    key = await tx.value(
        _INSERT,
        org=org,
        uid=uid,
        project=project,
        slug=slug,
        title=title,
        visibility=visibility,
        hashed=None if token is None else token.hashed,
        sealed=None if token is None else token.sealed,
        now=tx.now,
    )
    return key is not None


async def update_status_page(tx: Tx, row: PageRow, title: str, visibility: str) -> None:
    """Updates a locked page without a change of its token."""
    values = {"title": title, "visibility": visibility, "now": tx.now}
    count = await tx.execute(_UPDATE, org=row.org, id=row.id, **values)
    assert count == 1, "the page is locked"


async def change_visibility(
    tx: Tx, row: PageRow, title: str, visibility: str, token: Token | None
) -> None:
    """Updates a locked page and replaces its token, or removes it."""
    count = await tx.execute(
        _UPDATE_WITH_TOKEN,
        org=row.org,
        id=row.id,
        title=title,
        visibility=visibility,
        hashed=None if token is None else token.hashed,
        sealed=None if token is None else token.sealed,
        now=tx.now,
    )
    assert count == 1, "the page is locked"


async def update_branding(tx: Tx, row: PageRow, own: PageBranding) -> None:
    """Replaces the branding of a locked page."""
    count = await tx.execute(_BRAND, org=row.org, id=row.id, now=tx.now, **asdict(own))
    assert count == 1, "the page is locked"


async def raise_generation(tx: Tx, row: PageRow) -> None:
    """Increments the generation of a locked page after an edit of a component."""
    count = await tx.execute(_RAISE, org=row.org, id=row.id, now=tx.now)
    assert count == 1, "the page is locked"


async def delete_status_page(tx: Tx, row: PageRow) -> None:
    """Deletes a page with its components."""
    await tx.execute(_DELETE, org=row.org, id=row.id)
