"""Routes of the OIDC settings, which global admins set.

If single sign-on is enabled, the settings are stored only if the provider's metadata are available.
"""

from typing import Final

from msgspec import UNSET

from ....probes.oidc.oidc_client import ProviderFault
from ....probes.oidc.oidc_settings import USUAL_SCOPES, OidcSettings
from ....probes.senders.public_address import redirect_outside_base_path
from ....storage.accounts.queries.oidc_settings import select_sign_on_shown
from ....storage.accounts.transactions.put_oidc import EDIT, merged_sign_on, put_sign_on
from ...wire.app_context import AppContext
from ...wire.errors import Problem
from ...wire.mail_config import mailing_now
from ...wire.route import Request, setting_routes
from ...wire.schema import given
from ..schemas.settings import OIDCSettingsView, SetOIDCSettings
from .oidc_login import CALLBACK

_OWN: Final = "/api/v1/settings/oidc"


async def read(ask: Request) -> OIDCSettingsView:
    return await _settings_json(ask.context)


async def put(ask: Request) -> OIDCSettingsView:
    """Stores the settings.

    Raises: Refused as `merged_sign_on`; Problem with the issuer, if the issuer does not answer, or
        with a redirect URL outside the path prefix.
    """
    context = ask.context
    wanted = await _wanted(context, ask.body)
    fault_found = redirect_outside_base_path(wanted.redirect_url, context.options.base_path)
    if fault_found is not None:
        raise Problem(f"redirect_url: {fault_found}")
    secret = given(ask.body.client_secret)
    async with context.pool.transaction("merge_oidc_settings", read_only=True) as tx:
        whole = await merged_sign_on(
            tx, ask.who, wanted, secret, context.options.sign_on, context.keyring
        )
    if whole.enabled:
        try:
            await context.providers.metadata(whole.issuer)
        except ProviderFault as fault:
            raise Problem(f"issuer: could not be asked ({fault.reason})") from None
    async with context.pool.transaction("put_oidc_settings") as tx:
        await put_sign_on(tx, ask.who, whole, context.keyring)
    return await _settings_json(context)


async def _wanted(context: AppContext, body: SetOIDCSettings) -> OidcSettings:
    """Returns the requested settings without the secret. Absent fields are unchanged."""
    async with context.pool.statement("read_oidc_settings") as tx:
        before = (await select_sign_on_shown(tx, context.options.sign_on)).settings
    redirect = body.redirect_url
    redirect_url = before.redirect_url if redirect is UNSET else redirect.strip()
    if not redirect_url and (base := (await mailing_now(context)).base_url):
        redirect_url = base + CALLBACK
    scopes, admins = body.scopes, body.bootstrap_admins
    return OidcSettings(
        enabled=body.enabled,
        issuer=_text(body.issuer, before.issuer),
        client_id=_text(body.client_id, before.client_id),
        redirect_url=redirect_url,
        scopes=before.scopes if scopes is UNSET else tuple(dict.fromkeys(scopes)) or USUAL_SCOPES,
        post_logout_url=_text(body.post_logout_url, before.post_logout_url),
        button_label=_text(body.button_label, before.button_label),
        bootstrap_admins=before.bootstrap_admins
        if admins is UNSET
        else tuple(dict.fromkeys(one.strip() for one in admins)),
    )


def _text(text: object, before: str) -> str:
    return text.strip() if isinstance(text, str) else before


async def _settings_json(context: AppContext) -> OIDCSettingsView:
    async with context.pool.statement("read_oidc_settings") as tx:
        shown = await select_sign_on_shown(tx, context.options.sign_on)
    settings = shown.settings
    fault = redirect_outside_base_path(settings.redirect_url, context.options.base_path)
    is_active = False
    if settings.enabled:
        try:
            await context.providers.metadata(settings.issuer)
            is_active = True
        except ProviderFault:
            is_active = False
    return OIDCSettingsView(
        configured=shown.is_set_here,
        active=is_active,
        enabled=settings.enabled,
        issuer=settings.issuer,
        client_id=settings.client_id,
        client_secret_set=shown.has_secret,
        redirect_url=settings.redirect_url,
        scopes=list(settings.scopes),
        post_logout_url=settings.post_logout_url,
        button_label=settings.button_label,
        bootstrap_admins=list(settings.bootstrap_admins),
        reload_error=context.providers.fault(settings.issuer) if settings.enabled else "",
        redirect_url_fault=UNSET if fault is None else fault,
    )


ROUTES: Final = setting_routes(
    _OWN,
    read,
    put,
    EDIT,
    tag="sign_on_settings",
    body=SetOIDCSettings,
    answer=OIDCSettingsView,
    summaries=(
        "Read the OIDC settings and whether the provider responds.",
        "Set the OIDC settings; if enabled, the provider is checked before saving.",
    ),
)
