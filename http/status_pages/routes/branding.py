"""Public branding of the installation: set by global admins, readable by everyone."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.status_pages.queries.branding import select_branding, shown_branding
from ....storage.status_pages.rules import branding as rules
from ....storage.status_pages.transactions.put_branding import EDIT, put_branding
from ...ui.form_routes import page_route
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route, setting_routes
from ...wire.schema import given
from ..schemas.branding import Announcement, Branding, PublicBranding, PutBranding

_OWN: Final = "/api/v1/settings/branding"
# A colour always has the same style sheet.
_FOR_GOOD: Final = "public, max-age=31536000, immutable"


async def read_public(ask: Request) -> PublicBranding:
    async with ask.context.pool.transaction("read_branding", read_only=True) as tx:
        found = await shown_branding(tx)
    told = found.announcement
    return PublicBranding(
        product_name=found.product_name,
        accent_color=found.accent_color,
        logo_url=found.logo_url,
        footer_text=found.footer_text,
        support_url=found.support_url,
        **({"announcement": _announcement(told)} if told.enabled else {}),
    )


async def read(ask: Request) -> Branding:
    async with ask.context.pool.transaction("read_branding", read_only=True) as tx:
        found = await select_branding(tx)
    return _branding_json(found or rules.NO_BRANDING, configured=found is not None)


async def put(ask: Request) -> Branding:
    branding = _branding_of(ask.body)
    async with ask.context.pool.transaction("put_branding") as tx:
        await put_branding(tx, ask.who, branding)
    return _branding_json(branding, configured=True)


async def read_theme(ask: Request) -> Response:
    """Returns the style sheet of an accent colour of six digits.

    Pages link it, because the policy forbids inline styles.
    """
    color = f"#{ask.words['color']}"
    if rules.branding_fault(rules.Branding(accent_color=color)) is not None:
        raise Problem("not_found")
    return Response(
        body=f":root {{ --accent: {color}; }}\n".encode(),
        headers={"Cache-Control": _FOR_GOOD},
        content_type="text/css; charset=utf-8",
    )


def _branding_of(body: PutBranding) -> rules.Branding:
    told = given(body.announcement)
    announcement = rules.Announcement()
    if told is not None:
        announcement = rules.Announcement(enabled=told.enabled, text=told.text, level=told.level)
    return rules.Branding(
        product_name=body.product_name,
        accent_color=body.accent_color,
        logo_url=body.logo_url,
        footer_text=body.footer_text,
        support_url=body.support_url,
        announcement=announcement,
    )


def _branding_json(found: rules.Branding, *, configured: bool) -> Branding:
    return Branding(
        configured=configured,
        product_name=found.product_name,
        accent_color=found.accent_color,
        logo_url=found.logo_url,
        footer_text=found.footer_text,
        support_url=found.support_url,
        announcement=_announcement(found.announcement),
    )


def _announcement(told: rules.Announcement) -> Announcement:
    return Announcement(enabled=told.enabled, text=told.text, level=told.level)


_ANYBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/public/branding",
        action=_ANYBODY,
        handler=read_public,
        summary="Read the public branding of the installation.",
        tag="branding",
        answer=PublicBranding,
    ),
    *setting_routes(
        _OWN,
        read,
        put,
        EDIT,
        tag="branding",
        body=PutBranding,
        answer=Branding,
        summaries=(
            "Read the branding and whether it is configured.",
            "Set the whole branding.",
        ),
    ),
    page_route(
        method="GET",
        path="/theme/{color}",
        action=_ANYBODY,
        handler=read_theme,
        summary="The style sheet of an accent colour.",
    ),
)
