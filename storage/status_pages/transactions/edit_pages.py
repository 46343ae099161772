"""Status pages of an organization or project. The slug is unique in the installation.

An unlisted page is opened by a token. It is generated whenever the page becomes unlisted, and
deleted when it no longer is, so that shared links expire.
"""

import os
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_row
from ...accounts.transactions.authorize_tenant_write import demand_organization, lock_project_of
from ...accounts.transactions.object_marks import PAGE, expect_unmanaged_object
from ...core.instant import is_timezone
from ...core.refusal import Refused, expect
from ...core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ...incidents.rules.incident import title_fault
from ..queries import status_pages as status_pages_queries
from ..rows import PageRow
from ..rules.branding import PageBranding, page_branding_fault
from ..rules.page_language import language_fault
from ..rules.status_page import Visibility
from ..rules.status_page_edit import PAGES_OF_ORGANIZATION_MOST, PageDraft, page_faults
from ..tables import status_pages
from ..tables.status_pages import Token

EDIT = Permission(Need.ORG_ADMIN)


async def create_page(
    tx: Tx, principal: Principal, organization: UUID, draft: PageDraft, keyring: Keyring
) -> PageRow:
    """Creates a page.

    Raises:
        Refused not_found, forbidden, invalid, page_quota, slug_taken, encryption_key_missing.
    """
    home = await demand_organization(tx, principal, EDIT, organization)
    for field, fault in page_faults(draft):
        raise Refused("invalid", field, fault)
    project = await lock_project_of(tx, home.id, draft.project)
    await status_pages.lock_page_quota(tx, home.id)
    if await status_pages.count_status_pages(tx, home.id) >= PAGES_OF_ORGANIZATION_MOST:
        raise Refused("page_quota")
    uid = uuid7()
    token = new_token(uid, keyring) if draft.visibility is Visibility.UNLISTED else None
    if not await status_pages.insert_status_page(
        tx, home.id, uid, project, draft.slug, draft.title, draft.visibility, token
    ):
        raise Refused("slug_taken")
    row = await written(tx, uid)
    await audit(tx, principal, home.id, "status_page.create", page_target(row))
    return row


async def update_page(
    tx: Tx,
    principal: Principal,
    page: UUID,
    title: str | None,
    visibility: Visibility | None,
    keyring: Keyring,
    branding: PageBranding | None = None,
    time_zone: str | None = None,
    language: str | None = None,
) -> PageRow:
    """Edits a page. None leaves a field unchanged; an edit without changes is not written.

    Raises:
        Refused not_found, forbidden, invalid, encryption_key_missing, managed_by_file.
    """
    before = await lock_page(tx, await find_page(tx, principal, page))
    await expect_unmanaged_page(tx, principal, before)
    if title is not None:
        expect("title", title_fault(title))
    fault = None if branding is None else page_branding_fault(branding)
    if fault is not None:
        raise Refused("invalid", f"branding.{fault[0]}", fault[1])
    if time_zone is not None and not is_timezone(time_zone):
        raise Refused("invalid", "timezone", "must be the name of an IANA time zone")
    spoken = before.language if language is None else language
    expect("language", language_fault(spoken))
    zone = before.time_zone if time_zone is None else time_zone
    new_title = before.title if title is None else title
    shown = Visibility(before.visibility) if visibility is None else visibility
    own = before.branding if branding is None else branding
    old = (before.title, before.visibility, before.branding, before.time_zone, before.language)
    if (new_title, shown, own, zone, spoken) == old:
        return before
    target = page_target(before)
    if zone != before.time_zone:
        await status_pages.set_time_zone(tx, before, zone)
        target += f" timezone={zone}"
    if spoken != before.language:
        await status_pages.set_language(tx, before, spoken)
        target += f" language={spoken}"
    if own != before.branding:
        await status_pages.update_branding(tx, before, own)
        target += " branding"
    if shown == before.visibility:
        await status_pages.update_status_page(tx, before, new_title, shown)
    else:
        token = new_token(before.uid, keyring) if shown is Visibility.UNLISTED else None
        await status_pages.change_visibility(tx, before, new_title, shown, token)
        target += f" visibility={before.visibility}->{shown}"
    await audit(tx, principal, before.org, "status_page.update", target)
    return await written(tx, page)


async def delete_page(tx: Tx, principal: Principal, page: UUID) -> None:
    """Deletes a page with its components.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    row = await lock_page(tx, await find_page(tx, principal, page))
    await expect_unmanaged_page(tx, principal, row)
    await status_pages.delete_status_page(tx, row)
    await audit(tx, principal, row.org, "status_page.delete", page_target(row))


async def demand_page(tx: Tx, principal: Principal, page: UUID) -> PageRow:
    """Returns the page if the principal can edit it.

    Raises:
        Refused not_found, forbidden.
    """
    return demand_row(principal, EDIT, await status_pages_queries.select_status_page(tx, page))


async def find_page(tx: Tx, principal: Principal, page: UUID) -> PageRow:
    """Returns the page as `demand_page` and locks its project against deletion.

    The page itself is not locked. Locks that precede pages are taken after this.

    Raises:
        Refused not_found, forbidden.
    """
    row = await demand_page(tx, principal, page)
    # Deletion of a project deletes services and pages in any order. The lock prevents both.
    if row.project is not None and not await removals.lock_shared_project(tx, row.org, row.project):
        raise Refused(NOT_FOUND)
    return row


async def lock_page(tx: Tx, found: PageRow) -> PageRow:
    """Locks the page and returns its current row.

    Raises:
        Refused not_found if it was deleted.
    """
    row = await status_pages.lock_status_page(tx, found.uid)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def expect_unmanaged_page(tx: Tx, principal: Principal, row: PageRow) -> None:
    """Refuses an edit of a locked page that a bundle manages.

    Raises:
        Refused managed_by_file.
    """
    if row.project is not None:
        await expect_unmanaged_object(tx, principal, row.org, row.project, PAGE, row.uid)


async def written(tx: Tx, page: UUID) -> PageRow:
    row = await status_pages_queries.select_status_page(tx, page)
    assert row is not None, "it is locked or new"
    return row


def page_token(row: PageRow, keyring: Keyring) -> str | None:
    """Returns the token of an unlisted page.

    Returns None if the page is not unlisted or if the ring does not decrypt the token.
    """
    if row.token_ciphertext is None:
        return None
    try:
        return keyring.open(row.token_ciphertext, page_place(row.uid)).decode()
    except CannotOpen:
        return None


def page_target(row: PageRow) -> str:
    """Returns the audit name of a page."""
    return f"status_page:{row.uid}" + (f" project:{row.project_uid}" if row.project_uid else "")


def new_token(page: UUID, keyring: Keyring) -> Token:
    token = token_from(TokenKind.PAGE, os.urandom(RANDOM_BYTES))
    return Token(digest(token), keyring.seal(token.encode(), page_place(page)))


def page_place(page: UUID) -> CipherContext:
    return CipherContext("status_pages", "token_ciphertext", page)
