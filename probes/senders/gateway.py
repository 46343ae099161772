"""Requests to the gateway for SMS and voice calls."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

from ..net.egress_httpx import send_request
from .answer_buttons import KEYS_SAID
from .gateway_settings import PhoneGateway, filled
from .send_result import (
    ANSWER_BYTES_MOST,
    SEND_SECONDS,
    SendContext,
    answer_of,
    by_status,
    url_of,
)


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    method: str
    # It can contain a key of the gateway, the number and the text.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def request_of(
    gateway: PhoneGateway, service: Literal["sms", "voice"], to: str, text: str, call_url: str = ""
) -> GatewayRequest:
    """Returns the request that sends a text to a phone number. The gateway offers the service.

    `call_url` takes the key that the person presses in a call of Twilio; or empty.
    """
    if gateway.settings.provider == "twilio":
        return _twilio(gateway, service, to, text, call_url)
    settings, secrets = gateway.settings, gateway.secrets
    call, headers = (
        (settings.sms, secrets.sms_headers)
        if service == "sms"
        else (settings.voice, secrets.voice_headers)
    )
    types = {"json": "application/json", "form": "application/x-www-form-urlencoded"}
    known = {"content-type": types.get(call.format, "text/plain; charset=utf-8")}
    given = {key.lower(): value for key, value in headers.items()}
    return GatewayRequest(
        call.method,
        filled(call.url, "form", to, text),
        {**known, **given},
        b"" if call.method == "GET" else filled(call.body, call.format, to, text).encode(),
    )


def _twilio(
    gateway: PhoneGateway, service: str, to: str, text: str, call_url: str
) -> GatewayRequest:
    """Source: Twilio REST API 2010-04-01, resources Message and Call."""
    settings = gateway.settings
    account = f"{settings.base_url.rstrip('/')}/2010-04-01/Accounts/{settings.account_sid}"
    form = {"To": to, "From": settings.sender}
    if service == "sms":
        url, form = f"{account}/Messages.json", {**form, "Body": text}
    else:
        # The message is said twice, for a person who has just woken up.
        said = f"<Say>{xml_escape(f'{text}. {KEYS_SAID}' if call_url else text)}</Say>"
        twiml = f'<Response>{said}<Pause length="1"/>{said}</Response>'
        if call_url:
            twiml = gather(call_url, f'{said}<Pause length="1"/>{said}')
        url, form = f"{account}/Calls.json", {**form, "Twiml": twiml}
    secret = f"{settings.account_sid}:{gateway.secrets.auth_token}"
    headers = {
        "authorization": f"Basic {base64.b64encode(secret.encode()).decode()}",
        "content-type": "application/x-www-form-urlencoded",
    }
    return GatewayRequest("POST", url, headers, urlencode(form).encode())


def gather(url: str, content: str) -> str:
    """Returns TwiML that waits for one key and posts it to the URL.

    Source: Twilio, TwiML verb Gather.
    """
    attributes = f'numDigits="1" timeout="10" method="POST" action={quoteattr(url)}'
    return f"<Response><Gather {attributes}>{content}</Gather></Response>"


async def call_gateway(request: GatewayRequest, means: SendContext) -> dict[str, Any]:
    """Sends the request once. Returns the JSON object of the answer, {} if it is not one.

    Raises: `NotDelivered`, `TargetFailure` or `LocalFailure`.
    """
    response = await send_request(
        means.reach,
        request.method,
        url_of(request.url),
        headers=request.headers,
        body=request.body,
        bytes_most=ANSWER_BYTES_MOST,
        seconds=SEND_SECONDS,
    )
    if not response.is_success:
        raise by_status(response.status_code, response.headers.get("retry-after", ""))
    return answer_of(response)
