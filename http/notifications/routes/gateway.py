"""Routes of the gateway for SMS and voice calls. Global admins set it."""

from typing import Final

from ....probes.senders.gateway_settings import GatewayCall, GatewaySettings
from ....storage.notifications.queries.gateway import gateway_in_force, select_gateway_shown
from ....storage.notifications.transactions.put_gateway import (
    EDIT,
    GatewaySecretsDraft,
    put_gateway,
)
from ...wire.route import Request, setting_routes
from ...wire.schema import given
from ..schemas.gateway import GatewayService, GatewayView, SetGateway, SetGatewayService


async def read(ask: Request) -> GatewayView:
    async with ask.context.pool.transaction("read_gateway", read_only=True) as tx:
        settings, secrets_set = await select_gateway_shown(tx)
        gateway = await gateway_in_force(tx, ask.context.keyring)
    if gateway is not None:
        secrets = gateway.secrets
        sms_set, voice_set = bool(secrets.sms_headers), bool(secrets.voice_headers)
    else:
        sms_set, voice_set = (
            secrets_set and bool(one.url) and one.has_headers is not False
            for one in (settings.sms, settings.voice)
        )
    return GatewayView(
        configured=bool(settings.provider),
        provider=settings.provider,
        account_sid=settings.account_sid,
        sender=settings.sender,
        base_url=settings.base_url,
        sms=_service(settings.sms, headers_set=sms_set),
        voice=_service(settings.voice, headers_set=voice_set),
        secrets_set=secrets_set,
    )


async def put(ask: Request) -> GatewayView:
    body: SetGateway = ask.body
    settings = GatewaySettings(
        provider=body.provider,
        account_sid=body.account_sid,
        sender=body.sender,
        base_url=body.base_url,
        sms=_call(body.sms),
        voice=_call(body.voice),
    )
    draft = GatewaySecretsDraft(
        given(body.auth_token), given(body.sms.headers), given(body.voice.headers)
    )
    async with ask.context.pool.transaction("put_gateway") as tx:
        await put_gateway(tx, ask.who, settings, draft, ask.context.keyring)
    return await read(ask)


def _service(call: GatewayCall, *, headers_set: bool) -> GatewayService:
    return GatewayService(
        url=call.url,
        method=call.method,
        format=call.format,
        body=call.body,
        headers_set=headers_set,
    )


def _call(body: SetGatewayService) -> GatewayCall:
    return GatewayCall(url=body.url, method=body.method, format=body.format, body=body.body)


ROUTES: Final = setting_routes(
    "/api/v1/settings/gateway",
    read,
    put,
    EDIT,
    tag="mail_settings",
    body=SetGateway,
    answer=GatewayView,
    summaries=(
        "Read the gateway for SMS and voice calls, without its secrets.",
        "Set the gateway for SMS and voice calls.",
    ),
)
