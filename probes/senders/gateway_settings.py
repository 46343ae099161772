"""Settings of the gateway for SMS and voice calls: the API of Twilio, or any other HTTP API.

The settings belong to the installation. A template contains {to} and {text}, which are encoded for
their place: percent-encoded in the URL and in a form body, escaped in a JSON body.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote, urlsplit

import msgspec

from ..check.target import BadTarget, read_url

URL_LONGEST: Final = 2_048
BODY_LONGEST: Final = 4_096
HEADERS_MOST: Final = 20
HEADER_LONGEST: Final = 1_024
TWILIO_URL: Final = "https://api.twilio.com"
PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_SID: Final = re.compile(r"[A-Za-z0-9]{2,64}")

BodyFormat = Literal["json", "form", "text"]
Method = Literal["POST", "PUT", "GET"]


class GatewayCall(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a generic gateway. An empty `url` means that the gateway has no such service.

    `has_headers`: whether secret headers are stored for it, None if a version that did not note it
    stored the settings.
    """

    url: str = ""
    method: Method = "POST"
    format: BodyFormat = "json"
    body: str = ""
    has_headers: bool | None = None

    def __repr__(self) -> str:
        return f"GatewayCall({self.method})"


class GatewaySecrets(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets: the auth token of Twilio, and the headers of generic requests by service."""

    auth_token: str = ""
    sms_headers: dict[str, str] = {}
    voice_headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return "GatewaySecrets()"


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings without secrets. `sender` is the phone number or name that messages come from."""

    provider: Literal["", "twilio", "http"] = ""
    account_sid: str = ""
    sender: str = ""
    base_url: str = TWILIO_URL
    sms: GatewayCall = GatewayCall()
    voice: GatewayCall = GatewayCall()


@dataclass(frozen=True, slots=True)
class PhoneGateway:
    """Gateway in force, with its secrets."""

    settings: GatewaySettings
    secrets: GatewaySecrets = field(repr=False)

    def can(self, service: Literal["sms", "voice"]) -> bool:
        if self.settings.provider == "twilio":
            return True
        call = self.settings.sms if service == "sms" else self.settings.voice
        return self.settings.provider == "http" and bool(call.url)


def gateway_faults(gateway: PhoneGateway) -> Iterator[tuple[str, str]]:
    """Yields (field, rule) of each invalid setting."""
    settings, secrets = gateway.settings, gateway.secrets
    if settings.provider == "twilio":
        yield from _twilio_faults(settings, secrets)
    if settings.provider == "http":
        if not settings.sms.url and not settings.voice.url:
            yield "sms.url", "is required, or voice.url"
        for name, call, headers in (
            ("sms", settings.sms, secrets.sms_headers),
            ("voice", settings.voice, secrets.voice_headers),
        ):
            if call.url:
                yield from _call_faults(name, call, headers)


def _twilio_faults(settings: GatewaySettings, secrets: GatewaySecrets) -> Iterator[tuple[str, str]]:
    if not _SID.fullmatch(settings.account_sid):
        yield "account_sid", "must be the SID of the account"
    if not secrets.auth_token or not _VALUE.fullmatch(secrets.auth_token):
        yield "auth_token", "is required"
    if not PHONE.fullmatch(settings.sender):
        yield "sender", "must be a phone number such as +4930123456"
    if (wrong := _url_fault(settings.base_url)) is not None:
        yield "base_url", wrong


def _call_faults(
    name: str, call: GatewayCall, headers: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if (wrong := _template_url_fault(call.url)) is not None:
        yield f"{name}.url", wrong
    if len(call.body) > BODY_LONGEST:
        yield f"{name}.body", f"must be at most {BODY_LONGEST} characters"
    # A GET has no body, and a fragment is not sent.
    sent = call.url.partition("#")[0] + ("" if call.method == "GET" else call.body)
    if "{to}" not in sent or "{text}" not in sent:
        yield f"{name}.body", "must contain {to} and {text}, or the URL must; a GET has no body"
    if call.format == "json" and call.body and not _is_json_template(call.body):
        yield f"{name}.body", "must be JSON, with {to} and {text} inside strings"
    if len(headers) > HEADERS_MOST:
        yield f"{name}.headers", f"must have at most {HEADERS_MOST} entries"
    if len({key.lower() for key in headers}) < len(headers):
        yield f"{name}.headers", "must name each header once, in any case of its letters"
    for key, value in headers.items():
        if not _HEADER.fullmatch(key) or len(value) > HEADER_LONGEST or not _VALUE.fullmatch(value):
            yield f"{name}.headers", "must be names and values of HTTP headers"
            return


def _is_json_template(body: str) -> bool:
    """Returns whether the body is JSON with any values. A quote is JSON inside strings only."""
    try:
        for value in ("1", '"'):
            msgspec.json.decode(filled(body, "json", value, value).encode())
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _template_url_fault(url: str) -> str | None:
    """Returns the fault of a URL with placeholders, which must not choose the server."""
    wrong = _url_fault(url.replace("{to}", "1").replace("{text}", "1"))
    if wrong is None and "{" in urlsplit(url).netloc:
        return "must contain {to} and {text} in the path or the query only"
    return wrong


def _url_fault(url: str) -> str | None:
    if len(url) > URL_LONGEST:
        return f"must be at most {URL_LONGEST} characters"
    try:
        read_url(url)
    except BadTarget as fault:
        return str(fault)
    return None


def filled(template: str, format_: BodyFormat, to: str, text: str) -> str:
    """Returns the template with both values, each inserted once and never read as a template."""
    values = {"{to}": _encoded(to, format_), "{text}": _encoded(text, format_)}
    return re.sub(r"\{to\}|\{text\}", lambda found: values[found[0]], template)


def _encoded(value: str, format_: BodyFormat) -> str:
    if format_ == "json":
        return msgspec.json.encode(value).decode()[1:-1]
    return quote(value, safe="") if format_ == "form" else value
