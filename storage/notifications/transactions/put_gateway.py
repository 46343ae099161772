"""Gateway for SMS and voice calls, set by global admins. Secrets are write-only."""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from ....probes.senders.gateway_settings import (
    GatewayCall,
    GatewaySecrets,
    GatewaySettings,
    PhoneGateway,
    gateway_faults,
)
from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand
from ...accounts.transactions.write_setting import write_setting
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..queries.gateway import NAME, select_gateway, select_gateway_shown

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


@dataclass(frozen=True, slots=True)
class GatewaySecretsDraft:
    """Requested secrets. None keeps the stored value."""

    auth_token: str | None = None
    sms_headers: dict[str, str] | None = None
    voice_headers: dict[str, str] | None = None


async def put_gateway(
    tx: Tx,
    principal: Principal,
    given: GatewaySettings,
    draft: GatewaySecretsDraft,
    keyring: Keyring,
) -> None:
    """Stores the gateway. A change of an address requires its secrets again.

    Raises: Refused forbidden, encryption_key_missing, invalid with its field: also if a secret is
        kept that no key decrypts.
    """
    demand(principal, EDIT, None)
    try:
        before = await select_gateway(tx, keyring)
    except CannotOpen:
        before = None
        _expect_replaced(given, draft, (await select_gateway_shown(tx))[0])
    secrets = GatewaySecrets(
        auth_token=draft.auth_token or _kept_token(given, before),
        sms_headers=_kept_headers("sms", given, draft.sms_headers, before),
        voice_headers=_kept_headers("voice", given, draft.voice_headers, before),
    )
    if not given.provider:
        secrets = GatewaySecrets()
    for field, rule in gateway_faults(PhoneGateway(given, secrets)):
        raise Refused("invalid", field, rule)
    sms = replace(given.sms, has_headers=bool(secrets.sms_headers))
    voice = replace(given.voice, has_headers=bool(secrets.voice_headers))
    value = msgspec.json.encode(replace(given, sms=sms, voice=voice)).decode()
    secret = "" if secrets == GatewaySecrets() else msgspec.json.encode(secrets).decode()
    if await write_setting(tx, NAME, value, secret, keyring):
        target = f"settings:gateway provider={given.provider or 'none'}"
        await audit(tx, principal, INSTANCE, "settings.gateway", target)


def _expect_replaced(
    given: GatewaySettings, draft: GatewaySecretsDraft, stored: GatewaySettings
) -> None:
    """Checks that a write replaces or removes all stored secrets, which no key decrypts.

    Raises: Refused invalid with the field of a secret that the write would keep.
    """
    if not given.provider:
        return
    account = (given.base_url, given.account_sid)
    if (
        stored.account_sid
        and account == (stored.base_url, stored.account_sid)
        and not draft.auth_token
    ):
        raise Refused("invalid", "auth_token", "must be given again, as no configured key opens it")
    services: tuple[tuple[str, GatewayCall, GatewayCall, dict[str, str] | None], ...] = (
        ("sms", given.sms, stored.sms, draft.sms_headers),
        ("voice", given.voice, stored.voice, draft.voice_headers),
    )
    for service, new, old, headers in services:
        may_have = bool(old.url) and old.has_headers is not False
        if new.url and may_have and headers is None:
            fault = "must be given again or removed, as no configured key opens them"
            raise Refused("invalid", f"{service}.headers", fault)


def _kept_token(given: GatewaySettings, before: PhoneGateway | None) -> str:
    """Returns the stored token, empty if the account or the address changed."""
    if before is None:
        return ""
    kept = before.settings
    same = (given.base_url, given.account_sid) == (kept.base_url, kept.account_sid)
    return before.secrets.auth_token if same else ""


def _kept_headers(
    service: str,
    given: GatewaySettings,
    headers: dict[str, str] | None,
    before: PhoneGateway | None,
) -> dict[str, str]:
    """Returns the requested or the stored headers.

    Raises: Refused invalid if the URL changed and stored headers would be sent there.
    """
    if headers is not None:
        return headers
    if before is None:
        return {}
    stored = before.secrets.sms_headers if service == "sms" else before.secrets.voice_headers
    old = before.settings.sms if service == "sms" else before.settings.voice
    new = given.sms if service == "sms" else given.voice
    if stored and old.url != new.url and new.url:
        raise Refused("invalid", f"{service}.headers", "must be given again, as the URL changed")
    return stored if new.url else {}
