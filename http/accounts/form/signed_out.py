"""Page after a sign-out. It leads OIDC users to the sign-out of their provider.

It is not a redirect, because the policy forbids a form to end at another site.
"""

from typing import Final

from ....probes.oidc.oidc_client import ProviderFault, sign_out_address
from ....storage.accounts.rules.access import Need, Permission
from ...ui.form_routes import page_route
from ...ui.render import page
from ...wire.route import Request, Response
from ..routes.local_login import SIGNED_OUT
from ..routes.oidc_login import Stopped, settings_in_force


async def render_signed_out(ask: Request) -> Response:
    return page("accounts/form/signed_out.html", onward=await _onward(ask))


async def _onward(ask: Request) -> str:
    """Returns the sign-out URL of the provider, empty if it is unknown."""
    try:
        settings = await settings_in_force(ask.context)
        metadata = await ask.context.providers.metadata(settings.issuer)
    except (Stopped, ProviderFault):
        return ""
    return sign_out_address(metadata, settings.client_id, settings.post_logout_url)


ROUTES: Final = (
    page_route(
        method="GET",
        path=SIGNED_OUT,
        action=Permission(Need.NOBODY),
        handler=render_signed_out,
        summary="The page after a sign-out of single sign-on.",
    ),
)
