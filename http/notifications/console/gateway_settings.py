"""Form of the gateway for SMS and voice calls, with a preview of its request and a test."""

from typing import Final, Literal
from urllib.parse import urlsplit

from ....probes.check.failure import LocalFailure, TargetFailure
from ....probes.senders.gateway import GatewayRequest, call_gateway, request_of
from ....probes.senders.gateway_settings import PHONE, PhoneGateway
from ....probes.senders.phone import plain_number
from ....probes.senders.send_result import NotDelivered
from ....storage.notifications.queries.gateway import gateway_in_force
from ....storage.notifications.transactions.put_gateway import EDIT
from ...ui.form_values import stripped, value_of
from ...ui.shell.settings_form import Of, SettingField, SettingForm, TestResult
from ...wire.mail_config import mailing_in
from ...wire.route import Request, Route
from ..routes import gateway as api
from ..schemas.gateway import GatewayService, GatewayView, SetGateway

Service = Literal["sms", "voice"]

_METHODS: Final = (("POST", "POST"), ("PUT", "PUT"), ("GET", "GET"))
_FORMATS: Final = (
    ("json", "JSON"),
    ("form", "Form (application/x-www-form-urlencoded)"),
    ("text", "Plain text"),
)
_WORDS: Final[dict[Service, str]] = {"sms": "the SMS", "voice": "the call"}
_TEXT: Final = "Leadline: test of the gateway."


def _service_rows(service: Service, title: str) -> tuple[SettingField, ...]:
    """Returns the rows of the request of another HTTP API."""
    return (
        SettingField(
            f"{service}_url",
            "URL",
            Of.TEXT,
            "Empty if the gateway has no such service. {to} and {text} are percent-encoded.",
            path=f"{service}.url",
            group=title,
        ),
        SettingField(
            f"{service}_method", "Method", Of.CHOICE, choices=_METHODS, path=f"{service}.method"
        ),
        SettingField(
            f"{service}_format",
            "Format of the body",
            Of.CHOICE,
            choices=_FORMATS,
            path=f"{service}.format",
        ),
        SettingField(
            f"{service}_body",
            "Body",
            Of.LINES,
            "A template with {to} and {text}, in JSON inside quotation marks. A GET has no body.",
            path=f"{service}.body",
        ),
        SettingField(
            f"{service}_headers",
            "Headers",
            Of.HEADERS,
            "One in each line, such as Authorization: Bearer KEY. Leave blank to keep stored ones,"
            " a dash removes them. A new URL requires them again.",
            path=f"{service}.headers",
            is_stored=lambda found: bool(getattr(found, service).headers_set),
        ),
    )


_ROWS: Final = (
    SettingField(
        "provider",
        "Gateway",
        Of.CHOICE,
        "Only the fields of the chosen gateway apply.",
        choices=(("", "None"), ("twilio", "Twilio"), ("http", "Another HTTP API")),
    ),
    SettingField("account_sid", "Account SID", Of.TEXT, group="Twilio"),
    SettingField(
        "auth_token",
        "Auth token",
        Of.SECRET,
        "Leave blank to keep it while the account and the API address are unchanged.",
        is_stored=lambda found: bool(found.secrets_set and found.provider == "twilio"),
    ),
    SettingField("sender", "Sender", Of.TEXT, "Phone number of the account, such as +4930123456."),
    SettingField("base_url", "API address", Of.TEXT, "https://api.twilio.com, or a relay of it."),
    *_service_rows("sms", "Another HTTP API: SMS"),
    *_service_rows("voice", "Another HTTP API: calls"),
)
_TEST_ROWS: Final = (
    SettingField("test_to", "Phone number", Of.TEXT, "With the country code, such as +4930123456."),
    SettingField("test_service", "Service", Of.CHOICE, choices=(("sms", "SMS"), ("voice", "Call"))),
)


def _says(found: GatewayView) -> str:
    match found.provider:
        case "twilio":
            return f"SMS and calls are sent by Twilio, from {found.sender}."
        case "http":
            parts = (("SMS", found.sms), ("calls", found.voice))
            told = [f"{name} by {_host(service)}" for name, service in parts if service.url]
            return f"Another HTTP API sends {' and '.join(told)}."
        case _:
            return "SMS and calls are off: people cannot add them as contact methods."


def _host(service: GatewayService) -> str:
    return urlsplit(service.url).hostname or service.url


async def _test(ask: Request) -> TestResult:
    """Shows the request of the saved settings, or sends it once."""
    to, service = plain_number(stripped(ask, "test_to")), _service_of(ask)
    if not PHONE.fullmatch(to):
        wrong = {"test_to": "Phone number: must be a number such as +4930123456."}
        return TestResult(ok=False, text="Nothing was sent.", wrong=wrong)
    context = ask.context
    async with context.pool.transaction("console_test_gateway", read_only=True) as tx:
        gateway = await gateway_in_force(tx, context.keyring)
        mailing = await mailing_in(tx, context)
    if gateway is None or not gateway.can(service):
        what = "calls" if service == "voice" else "SMS"
        text = f"Nothing was sent: no gateway for {what} is saved, or no key decrypts it."
        return TestResult(ok=False, text=text)
    request = request_of(gateway, service, to, _TEXT)
    if value_of(ask, "act") == "preview":
        text = "This request would be sent. Secrets are hidden."
        return TestResult(ok=True, text=text, sent=_shown(request, gateway))
    async with context.test_permits:
        try:
            await call_gateway(request, mailing.means)
        except NotDelivered as why:
            reason = why.reason
        except TargetFailure as failure:
            reason = failure.failure.value
        except LocalFailure as failure:
            reason = failure.reason.value
        else:
            return TestResult(ok=True, text=f"The gateway accepted {_WORDS[service]} to {to}.")
    return TestResult(
        ok=False, text=f"The gateway did not accept {_WORDS[service]} to {to}: {reason}."
    )


def _service_of(ask: Request) -> Service:
    return "voice" if stripped(ask, "test_service") == "voice" else "sms"


def _shown(request: GatewayRequest, gateway: PhoneGateway) -> str:
    """Returns the request as text, without the values of headers that are secret."""
    open_ = {"content-type"} - {
        name.lower() for name in (*gateway.secrets.sms_headers, *gateway.secrets.voice_headers)
    }
    lines = [f"{request.method} {request.url}"]
    for name, value in request.headers.items():
        lines.append(f"{name}: {value if name in open_ else '…'}")
    return "\n".join([*lines, "", request.body.decode()]).rstrip()


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/gateway",
    title="SMS and calls",
    section="gateway",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=SetGateway,
    action=EDIT,
    says=_says,
    otherwise={
        "encryption_key_missing": ("provider", "Secrets need security.encryption_key."),
    },
    unset="No gateway is set",
    after_save="Applies to the next message.",
    test=_test,
    test_label="Send test",
    test_about="Shows or sends one message with the saved settings. The gateway may charge for it.",
    test_rows=_TEST_ROWS,
    more_tests=(("preview", "Preview request"),),
).routes()
