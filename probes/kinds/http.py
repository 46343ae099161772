"""HTTP and HTTPS probe: one request with redirects. Without conditions a 2xx status is up."""

from ..check.check import Check
from ..check.client_certificate import (
    CLIENT_CERTIFICATE_FIELDS,
    certificate_faults,
    client_certificate,
)
from ..check.condition_evaluation import ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS_SKIP_VERIFY,
    TOKEN_REF,
    CredentialEncoding,
    basic_authorization,
    basic_faults,
    demanded_secret,
    password_faults,
    username,
)
from ..check.failure import TargetFailure
from ..check.monitor_spec import (
    BODY_LONGEST,
    CREDENTIAL_HEADERS,
    Config,
    Field,
    FieldType,
    MonitorType,
    Spec,
    SpecFault,
    TargetForm,
)
from ..check.oauth2 import OAUTH2, OAUTH2_FIELDS, oauth2_faults
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.proxy import PROXY_FIELDS, proxy_faults, proxy_of
from ..check.result import FailureClass
from ..check.target import read_url
from ..net.access_token import fetch_authorized
from ..net.egress import Egress
from ..net.http_client import REDIRECTS_MOST, HttpRequest, Version
from ..net.resolver import Family


def _rule(target: str, config: Config) -> list[SpecFault]:
    """Validates the settings that the authentication mode requires."""
    mode = config.get("auth_mode")
    faults = [*basic_faults(config), *password_faults(config)]
    faults += [*certificate_faults(target, config), *oauth2_faults(config), *proxy_faults(config)]
    if mode == "bearer" and not config.get("token_ref"):
        faults.append(SpecFault("config.token_ref", "is required when auth_mode is bearer"))
    headers = config.get("headers")
    named = {str(name).lower() for name in headers} if isinstance(headers, dict) else set()
    if mode in ("basic", "bearer", OAUTH2) and "authorization" in named:
        faults.append(SpecFault("config.headers", "must not set authorization with auth_mode"))
    return faults


SPEC = Spec(
    type=MonitorType.HTTP,
    help="Sends one request. Without conditions any 2xx answer is up.",
    target=TargetForm.URL,
    schemes=("http", "https"),
    methods=("GET", "POST", "HEAD", "PUT", "DELETE"),
    fields=(
        Field(
            name="headers",
            type=FieldType.HEADERS,
            help="Sent with the request; credential-bearing ones are stored encrypted.",
            secret=True,
        ),
        Field(
            name="body",
            type=FieldType.TEXT,
            help="Request body, sent unchanged; set content-type in headers.",
            multiline=True,
            longest=BODY_LONGEST,
        ),
        Field(
            name="auth_mode",
            type=FieldType.CHOICE,
            help="Authentication of the request.",
            default="none",
            choices=("none", "basic", "bearer", OAUTH2),
        ),
        username("For basic authentication."),
        PASSWORD,
        PASSWORD_REF,
        TOKEN_REF,
        Field(
            name="follow_redirects",
            type=FieldType.BOOLEAN,
            help=f"Follows up to {REDIRECTS_MOST} redirects; credentials stay with the origin.",
            default=True,
        ),
        TLS_SKIP_VERIFY,
        Field(
            name="ip_family",
            type=FieldType.CHOICE,
            help="Address family to connect to.",
            default=Family.ANY.value,
            choices=tuple(Family),
        ),
        Field(
            name="http_version",
            type=FieldType.CHOICE,
            help="HTTP version; with 2 a server without HTTP/2 is down.",
            default="1.1",
            choices=("1.1", "2"),
        ),
        *CLIENT_CERTIFICATE_FIELDS,
        *OAUTH2_FIELDS,
        *PROXY_FIELDS,
    ),
    placeholders=frozenset(
        {"STATUS", "RESPONSE_TIME", "CONNECTED", "CERT_EXPIRY", "BODY", "IP", "HEADER"}
    ),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    # The request is made once, and the certificate can end later.
    client_certificate(check)
    request = check.made(_request)
    made = await fetch_authorized(reach, check, request, watch)
    response = made.response
    if request.keep_body and not response.whole:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
    facts = ProbeValues(
        connected=True,
        status=response.status,
        body=response.text if request.keep_body else None,
        headers=response.headers,
        ip=response.address or None,
        hidden=made.hidden,
    )
    good = 200 <= response.status <= 299
    return Observation(
        facts,
        code=response.status,
        failure=None if good else FailureClass.HTTP_STATUS,
        cert_ends_at=response.cert_ends_at,
    )


def _request(check: Check) -> HttpRequest:
    given = check.config.get("headers")
    headers = [(str(n), str(v)) for n, v in given.items()] if isinstance(given, dict) else []
    mode = check.text("auth_mode")
    credential = ""
    if mode == "basic":
        credential = demanded_secret(check, "password", CredentialEncoding.BASIC)
        headers.append(("authorization", basic_authorization(check)))
    elif mode == "bearer":
        credential = demanded_secret(check, "token", CredentialEncoding.HEADER)
        headers.append(("authorization", f"Bearer {credential}"))
    body = check.text("body")
    values = [credential, *(v for n, v in headers if n.lower() in CREDENTIAL_HEADERS)]
    return HttpRequest(
        method=check.method,
        url=read_url(check.target),
        headers=headers,
        body=body.encode(),
        secrets=CREDENTIAL_HEADERS,
        body_is_secret=any(value and value in body for value in values),
        redirects=REDIRECTS_MOST if check.flag("follow_redirects") else 0,
        keep_body=check.wants("BODY"),
        verify=not check.flag("tls_skip_verify"),
        cert_expiry=check.wants("CERT_EXPIRY"),
        family=Family(check.text("ip_family") or Family.ANY),
        identity=client_certificate(check),
        proxy=proxy_of(check),
        version=Version.TWO if check.text("http_version") == "2" else Version.ONE,
    )
