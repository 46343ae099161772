"""Loading of public pages: lookup by address, access check and a short cache.

A page that the caller may not open is not found: internal pages, and unlisted pages without their
token.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hmac import compare_digest
from typing import Final, Literal

import msgspec

from ....storage.core.instant import Instant
from ....storage.core.token import digest
from ....storage.engine.pools import Isolation, Tx
from ....storage.status_pages.queries.branding import page_branding
from ....storage.status_pages.queries.status_page_incidents import (
    FIRST,
    IncidentCursor,
    select_incidents_within,
)
from ....storage.status_pages.queries.status_pages import (
    StatusPageRow,
    about_of,
    select_bindings,
    select_frame,
    select_page_by_slug,
    select_page_facts,
)
from ....storage.status_pages.rules.branding import Branding
from ....storage.status_pages.rules.page_language import AUTO
from ....storage.status_pages.rules.status_page import (
    Audience,
    Incident,
    Page,
    Visibility,
    render,
    shown_incidents,
)
from ....storage.status_pages.rules.status_page_history import PAGE_MOST, Month, month_of
from ...wire.content_encoding import takes_gzip
from ...wire.cursor import read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.etags import is_known
from ...wire.own_paths import base_path_now
from ...wire.response_cache import FRESH_SECONDS, CachedResponse, LoadedContent
from ...wire.route import Request, Response
from .language import (
    ENGLISH_READER,
    Reader,
    accepted_language,
    language_of,
    reader_now,
    speaking,
)
from .urls import Addresses, addresses_at

# Smallest body in bytes that is compressed. A smaller body fits in one packet anyway.
PACKED_LEAST: Final = 1_000


class TokenQuery(msgspec.Struct, frozen=True):
    """`token` opens an unlisted page."""

    token: str | None = None


class LanguageQuery(msgspec.Struct, frozen=True):
    lang: Literal["en", "de"] | None = None


class ReaderQuery(TokenQuery, frozen=True):
    """`lang` is the language of the fixed words, by default that of the page or of the reader."""

    lang: Literal["en", "de"] | None = None


class FeedQuery(ReaderQuery, frozen=True):
    format: Literal["rss", "atom", "json"] = "rss"


class MonthQuery(msgspec.Struct, frozen=True):
    """`month` is YYYY-MM, by default the current month."""

    month: str | None = None
    cursor: str | None = None


class HistoryQuery(MonthQuery, frozen=True):
    token: str | None = None


class ReaderMonthQuery(HistoryQuery, frozen=True):
    lang: Literal["en", "de"] | None = None


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """Data of a public response."""

    page: Page
    branding: Branding
    addresses: Addresses
    reader: Reader = ENGLISH_READER


@dataclass(frozen=True, slots=True)
class LoadedMonth:
    """Incidents of a month, as an audience may see them. `following` is the next cursor."""

    month: Month
    incidents: Sequence[Incident]
    following: str | None


@asynccontextmanager
async def snapshot(ask: Request) -> AsyncIterator[Tx]:
    """Opens a read-only snapshot, so that a page is consistent as of one instant."""
    async with ask.context.pool.transaction(
        "read_status_page", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        yield tx


@asynccontextmanager
async def public_page(ask: Request) -> AsyncIterator[tuple[Tx, StatusPageRow]]:
    """Yields the addressed page within one snapshot.

    Raises: Problem `not_found`, if the page is not open to the caller.
    """
    async with snapshot(ask) as tx:
        page = await select_page_by_slug(tx, ask.words["slug"])
        if page is None or not is_open(page, ask.query.token):
            raise Problem("not_found")
        yield tx, page


def is_open(page: StatusPageRow, token: str | None) -> bool:
    match Visibility(page.visibility):
        case Visibility.LISTED:
            return True
        case Visibility.UNLISTED:
            assert page.token_hash is not None, "an unlisted page has a token"
            return token is not None and compare_digest(digest(token), bytes(page.token_hash))
        case Visibility.INTERNAL:
            return False


def addresses_of(ask: Request, page: StatusPageRow, token: str | None) -> Addresses:
    """Returns the URLs of a page. `token` is the one that the request used."""
    opens = token if page.token_hash is not None else None
    domain = page.domain if _is_listed(page) else None
    return addresses_at(_base_of(ask), page.slug, opens, domain, _chosen(ask))


def _chosen(ask: Request) -> str | None:
    """Returns the language of the URL; None on routes that have no words."""
    chosen: str | None = getattr(ask.query, "lang", None)
    return chosen


def _accepted(ask: Request) -> str:
    return accepted_language(ask.headers.get("accept-language", ""))


def reader_of(ask: Request, setting: str) -> Reader:
    """Returns the reader of a page. `setting` is the language of the page."""
    if not hasattr(ask.query, "lang"):
        return ENGLISH_READER
    chosen = _chosen(ask)
    given = msgspec.to_builtins(ask.query)
    return Reader(
        language=language_of(setting, chosen, _accepted(ask)),
        chosen=chosen,
        query=tuple((name, str(given[name])) for name in given if name != "lang" and given[name]),
        path=ask.path,
        varies=chosen is None and setting == AUTO,
    )


def in_language() -> dict[str, str]:
    """Returns the headers of an answer in the language of the reader."""
    return {"Content-Language": reader_now().language}


def _is_listed(page: StatusPageRow) -> bool:
    return page.visibility == Visibility.LISTED


def _base_of(ask: Request) -> str:
    return ask.base_url


async def kept_page(
    ask: Request, what: str, write: Callable[[LoadedPage], bytes], *, latency: bool = False
) -> tuple[CachedResponse, LoadedPage]:
    """Returns a form of the page from the cache, with `latency` if the form shows it.

    Raises: Problem as `public_page`.
    """

    async def read() -> LoadedContent:
        async with public_page(ask) as (tx, page):
            facts = await select_page_facts(tx, page, Audience.PUBLIC, latency=latency)
            branding = await page_branding(tx, page.branding)
        rendered = render(facts, Audience.PUBLIC)
        addresses = addresses_of(ask, page, ask.query.token)
        reader = reader_of(ask, page.language)
        shown = LoadedPage(rendered, branding, addresses, reader)
        # The render instant does not count as a change of content.
        said = replace(shown, page=replace(rendered, updated_at=Instant(0)))
        return LoadedContent(said, lambda: _spoken(shown, write))

    token = ask.query.token
    opened = None if token is None else digest(token)
    spoken = (_chosen(ask), _accepted(ask)) if hasattr(ask.query, "lang") else None
    key = (ask.words["slug"], what, _base_of(ask), base_path_now(), opened, spoken)
    answer = await ask.context.kept.answer(key, read)
    assert isinstance(answer.said, LoadedPage), "it is what was read"
    return answer, answer.said


def _spoken(shown: LoadedPage, write: Callable[[LoadedPage], bytes]) -> bytes:
    with speaking(shown.reader):
        return write(shown)


def kept_reply(ask: Request, answer: CachedResponse, content_type: str, **headers: str) -> Response:
    """Returns a response that a cache can use for one second, and must revalidate afterwards.

    A page, an incident or a component can be withdrawn, so no cache uses a stale response. If a
    token opened the page, shared caches must not store the response.
    """
    whose = "public" if ask.query.token is None else "private"
    fresh = f"max-age={int(FRESH_SECONDS)}, must-revalidate"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    packs = len(answer.body) >= PACKED_LEAST and takes_gzip(ask.headers)
    tag = answer.packed_tag if packs else answer.tag
    reader = answer.said.reader if isinstance(answer.said, LoadedPage) else ENGLISH_READER
    # No cache gives a reader the language of another.
    varies = "Accept-Encoding, Accept-Language" if reader.varies else "Accept-Encoding"
    named |= {"ETag": tag, "Cache-Control": f"{whose}, {fresh}", "Vary": varies}
    if is_known(ask.headers, tag):
        return Response(status=304, headers=named)
    if packs:
        packed = {**named, "Content-Encoding": "gzip"}
        return Response(body=answer.packed(), headers=packed, content_type=content_type)
    return Response(body=answer.body, headers=named, content_type=content_type)


def asked_month(ask: Request) -> Month:
    """Returns the month of the query. Raises Problem `invalid_month`, `month_outside_history`."""
    found = month_of(ask.query.month, ask.context.clock())
    if isinstance(found, str):
        raise Problem(found)
    return found


async def read_month(
    ask: Request, tx: Tx, page: StatusPageRow, month: Month, audience: Audience
) -> LoadedMonth:
    """Returns a part of the month. Raises Problem `cursor_invalid`."""
    bound = ("status_page_history", page.uid, month.name, audience)
    after = read_cursor(ask.query.cursor, bound, 2)
    before = FIRST if after is None else IncidentCursor(Instant(after[0]), after[1])
    about = about_of(page, await select_bindings(tx, page))
    found, following = await select_incidents_within(
        tx, about, audience, month.shown, before, PAGE_MOST
    )
    frame = await select_frame(tx, page)
    return LoadedMonth(
        month,
        shown_incidents(frame, found, audience),
        None if following is None else write_cursor((following.started_at, following.id), bound),
    )


@asynccontextmanager
async def public_month(ask: Request) -> AsyncIterator[tuple[Tx, StatusPageRow, LoadedMonth]]:
    """Yields the month of the query within one snapshot.

    Raises: Problem `history_busy`, if the limit of concurrent history requests is reached; also the
    problems of `asked_month`, `public_page` and `read_month`.
    """
    month = asked_month(ask)
    context = ask.context
    with context.histories.permit(ask.client, context.clock(), takes_token=False):
        async with public_page(ask) as (tx, page):
            yield tx, page, await read_month(ask, tx, page, month, Audience.PUBLIC)
