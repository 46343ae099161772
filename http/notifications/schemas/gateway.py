"""JSON bodies of the gateway for SMS and voice calls. Secrets are write-only."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from ....probes.senders.gateway_settings import BODY_LONGEST, TWILIO_URL, URL_LONGEST
from ...wire.schema import RequestSchema, Schema, SecretText

Url = Annotated[str, Meta(max_length=URL_LONGEST)]
Headers = dict[str, Annotated[str, Meta(max_length=1_024)]]


class GatewayService(Schema, frozen=True, kw_only=True):
    """Request of a generic gateway. `url` and `body` contain {to} and {text}.

    `headers_set`: headers are stored. If no key decrypts them, a write that keeps them is refused.
    """

    url: str
    method: Literal["POST", "PUT", "GET"]
    format: Literal["json", "form", "text"]
    body: str
    headers_set: bool


class GatewayView(Schema, frozen=True, kw_only=True):
    """Gateway of the installation; `provider` is empty without one. No secret is returned."""

    configured: bool
    provider: Literal["", "twilio", "http"]
    account_sid: str
    sender: str
    base_url: str
    sms: GatewayService
    voice: GatewayService
    secrets_set: bool


class AnswerButtonsView(Schema, frozen=True, kw_only=True):
    """Services with buttons, and the URLs to enter there. No secret is returned.

    `configured`: the installation has a secret.
    """

    configured: bool
    slack_set: bool
    slack_url: str
    telegram_set: bool
    telegram_url: str


class SetAnswerButtons(RequestSchema, frozen=True, kw_only=True):
    """Secrets of the services. An absent one is kept, and an empty one removes the buttons."""

    slack_signing_secret: SecretText | UnsetType = UNSET
    telegram_secret: SecretText | UnsetType = UNSET


class SetGatewayService(RequestSchema, frozen=True, kw_only=True):
    """Request of a generic gateway.

    {to} and {text} are encoded for their place. Absent `headers` keep the stored ones; a new URL
    requires them again.
    """

    url: Url = ""
    method: Literal["POST", "PUT", "GET"] = "POST"
    format: Literal["json", "form", "text"] = "json"
    body: Annotated[str, Meta(max_length=BODY_LONGEST)] = ""
    headers: Headers | UnsetType = UNSET


class SetGateway(RequestSchema, frozen=True, kw_only=True):
    """Complete settings. An absent `auth_token` keeps the stored one for the same account."""

    provider: Literal["", "twilio", "http"]
    account_sid: Annotated[str, Meta(max_length=64)] = ""
    sender: Annotated[str, Meta(max_length=64)] = ""
    base_url: Url = TWILIO_URL
    auth_token: SecretText | UnsetType = UNSET
    sms: SetGatewayService = SetGatewayService()
    voice: SetGatewayService = SetGatewayService()
