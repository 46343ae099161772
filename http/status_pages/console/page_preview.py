"""Preview of the public page for editors, also of an internal page.

The renderer of the public page writes the response. Only the editor may frame it, and only at this
path.
"""

from typing import Final

from ....storage.engine.pools import Isolation
from ....storage.status_pages.queries.branding import page_branding
from ....storage.status_pages.queries.status_pages import select_page_facts
from ....storage.status_pages.rules.page_language import ENGLISH
from ....storage.status_pages.rules.status_page import Audience, render
from ....storage.status_pages.transactions.edit_pages import page_token
from ...ui.render import HEADERS, HTML
from ...ui.shown_time import times_in_utc
from ...wire.route import Request, Response, Route
from ..public.html_renderer import page_html, policy
from ..public.language import Reader, language_of, speaking
from ..public.page_loader import addresses_of
from .page_access import ONE, reached, route


async def render_page_preview(ask: Request) -> Response:
    async with ask.context.pool.transaction(
        "console_page_preview", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        found = await reached(ask, tx)
        facts = await select_page_facts(tx, found.shown, Audience.PUBLIC, latency=True)
        branding = await page_branding(tx, found.shown.branding)
    token = page_token(found.row, ask.context.keyring)
    addresses = addresses_of(ask, found.shown, token)
    told = render(facts, Audience.PUBLIC)
    framed = policy(branding).replace("frame-ancestors 'none'", "frame-ancestors 'self'")
    headers = {**HEADERS, "Content-Security-Policy": framed}
    language = language_of(found.shown.language, None, ENGLISH)
    opens = (("token", token),) if token and found.shown.token_hash is not None else ()
    spoken = Reader(language, query=opens, path=f"/status/{found.shown.slug}")
    with times_in_utc(), speaking(spoken):
        body = page_html(told, branding, addresses, framed=True)
    return Response(body=body, headers=headers, content_type=HTML)


ROUTES: Final[tuple[Route, ...]] = (
    route("GET", f"{ONE}/preview", render_page_preview, "The preview of a status page."),
)
