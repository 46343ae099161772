"""Conditional answers of live screens (RFC 9110, 13.1.2).

`live.js` asks for the screen that it shows every few seconds, in every role of the server, and
sends the tag of its last answer. If nothing changed, the answer is 304, after one query. The stream
`/events` makes it ask sooner, and no screen depends on it.
"""

import hashlib
from collections.abc import Collection
from dataclasses import replace
from typing import Final
from uuid import UUID

from ...storage.accounts.rules.access import rank_in
from ...storage.core.instant import SECOND
from ...storage.engine.pools import Tx
from ...storage.results.queries.live_revision import select_live_revision
from ..wire.etags import is_known
from ..wire.route import Request, Response
from ..wire.scope_keys import org_of, project_of
from .render import HEADERS, HTML
from .shown_time import hours_shown, zone_name

# What only the passing of time changes, such as "3 min ago" or a stale result, is at most this old.
# So is what the revision does not contain: who is on call, and changes of services.
RENEWED_US: Final = 30 * SECOND


async def select_tag(
    ask: Request,
    tx: Tx,
    shown: Collection[UUID],
    *,
    services: bool = False,
    view: object = None,
) -> str:
    """Returns the tag of the screen, empty if the request is not conditional.

    `shown` are the monitors whose results are on the screen. `view` determines what the screen
    shows, by default the query. Read the tag before the data: then a
    change in between is in the answer and raises the next tag.
    """
    if "if-none-match" not in ask.headers:
        return ""
    assert ask.scope is not None
    revision = await select_live_revision(
        tx, org_of(ask), project_of(ask), shown, services=services
    )
    said = (
        revision,
        tx.now // RENEWED_US,
        ask.path,
        ask.query if view is None else view,
        ask.who.label,
        rank_in(ask.who, ask.scope),
        ask.context.options.version,
        zone_name(),
        hours_shown(),
    )
    return f'"{hashlib.sha256(repr(said).encode()).hexdigest()[:16]}"'


async def tag_of(ask: Request, shown: Collection[UUID], *, services: bool = False) -> str:
    """Returns the tag as `select_tag`. Only a conditional request needs a transaction."""
    if "if-none-match" not in ask.headers:
        return ""
    async with ask.context.pool.transaction("console_revision", read_only=True) as tx:
        return await select_tag(ask, tx, shown, services=services)


def not_modified(ask: Request, tag: str) -> Response | None:
    """Returns 304 if the client has the screen of this tag."""
    if not tag or not is_known(ask.headers, tag):
        return None
    return Response(
        body=b"", status=304, headers={**HEADERS, "ETag": f"W/{tag}"}, content_type=HTML
    )


def tagged(response: Response, tag: str) -> Response:
    """Returns the response with the tag as its weak ETag."""
    if not tag:
        return response
    return replace(response, headers={**response.headers, "ETag": f"W/{tag}"})
