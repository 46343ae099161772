"""PromQL probe: one instant query to the Prometheus HTTP API. The samples are [RESULT].

The order of samples is arbitrary, so a condition must be true for all of them. NaN is the absence
of a number (0/0: no event was counted), and every condition is false for it.
"""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlencode

import msgspec

from ..check.check import Check
from ..check.client_certificate import (
    CLIENT_CERTIFICATE_FIELDS,
    certificate_faults,
    client_certificate,
)
from ..check.condition_evaluation import MISSING, AllOf, ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    basic_authorization,
    basic_faults,
    password_faults,
    username,
)
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.number_parser import read_numeral
from ..check.oauth2 import OAUTH2, OAUTH2_FIELDS, oauth2_faults
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.proxy import PROXY_FIELDS, proxy_faults, proxy_of
from ..check.result import FailureClass
from ..check.target import Url, read_url
from ..net.access_token import fetch_authorized
from ..net.egress import Egress
from ..net.http_client import HttpRequest, HttpResponse

QUERY_LONGEST = 1_024
# Each condition is evaluated on each value on the event loop. Larger results need aggregation.
VALUES_MOST = 500
# Both limit how long decoding the response blocks the event loop. A sample has three parts.
ANSWER_BYTES_MOST = 256 * 1024
PARTS_MOST = 16 * VALUES_MOST
API_PATH = "/api/v1/query"
_DENIED = frozenset({401, 403})


def _rule(target: str, config: Config) -> list[SpecFault]:
    faults = []
    if "?" in target:
        faults.append(SpecFault("target", "is the base address of the server, without a query"))
    if not str(config.get("query", "")).strip():
        faults.append(SpecFault("config.query", "is required"))
    faults += [*basic_faults(config), *password_faults(config)]
    faults += [*certificate_faults(target, config), *oauth2_faults(config)]
    return faults + proxy_faults(config)


SPEC = Spec(
    type=MonitorType.PROMQL,
    help="Evaluates a query now. Without conditions a result that is not empty is up.",
    target=TargetForm.URL,
    schemes=("http", "https"),
    fields=(
        Field(
            name="query",
            type=FieldType.TEXT,
            help="PromQL; conditions on [RESULT] must be true for every sample.",
            required=True,
            multiline=True,
            longest=QUERY_LONGEST,
        ),
        Field(
            name="auth_mode",
            type=FieldType.CHOICE,
            help="Authentication of the request.",
            default="none",
            choices=("none", "basic", OAUTH2),
        ),
        username("For basic authentication."),
        PASSWORD,
        PASSWORD_REF,
        *CLIENT_CERTIFICATE_FIELDS,
        *OAUTH2_FIELDS,
        *PROXY_FIELDS,
    ),
    placeholders=frozenset({"RESULT", "RESPONSE_TIME", "CONNECTED", "CERT_EXPIRY", "IP"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    made = await fetch_authorized(reach, check, _request(check), watch)
    response = made.response
    result = _result(response)
    return Observation(
        ProbeValues(connected=True, ip=response.address or None, result=result, hidden=made.hidden),
        code=response.status,
        failure=FailureClass.CONDITION_FAILED if result == AllOf() else None,
        cert_ends_at=response.cert_ends_at,
    )


def _request(check: Check) -> HttpRequest:
    headers: list[tuple[str, str]] = []
    if check.text("auth_mode") == "basic" and check.text("username"):
        headers.append(("authorization", basic_authorization(check)))
    # The server stops when the run does, and does not compute a result that is not read.
    asked = {"query": check.text("query"), "timeout": f"{check.timeout_seconds}s"}
    return HttpRequest(
        # GET, so that a redirect keeps the query. Caches must not answer.
        method="GET",
        url=_url(read_url(check.target), asked),
        headers=[*headers, ("cache-control", "no-cache"), ("accept", "application/json")],
        secrets=frozenset({"authorization"}),
        body_bytes_most=ANSWER_BYTES_MOST,
        cert_expiry=check.wants("CERT_EXPIRY"),
        identity=client_certificate(check),
        proxy=proxy_of(check),
    )


def _url(base: Url, asked: dict[str, str]) -> Url:
    path = base.path.partition("?")[0].rstrip("/")
    return replace(base, path=f"{path}{API_PATH}?{urlencode(asked)}")


class _Data(msgspec.Struct, rename={"kind": "resultType"}):
    kind: str
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None


class _Series(msgspec.Struct):
    """Time series: its one sample, or the samples of a range. A histogram has neither."""

    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] | None = None


def _result(response: HttpResponse) -> object:
    """Returns text, a number, or `AllOf` the samples. Ignores warnings of the server."""
    if response.status in _DENIED:
        raise TargetFailure(FailureClass.AUTH_FAILED, response.status)
    if not 200 <= response.status <= 299:
        raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
    if not response.whole:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
    try:
        answer = msgspec.json.decode(response.body, type=_Answer)
        if answer.status != "success" or answer.data is None:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR, response.status)
        return _read(answer.data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, response.status) from error


def _read(data: _Data) -> object:
    """Returns the values of a result.

    Raises: `ValueError` or msgspec errors if it is not a result of an instant query.
    """
    if data.kind in ("scalar", "string"):
        _, text = msgspec.json.decode(data.result, type=tuple[float, str])
        return text if data.kind == "string" else read_numeral(text)
    if data.kind not in ("vector", "matrix"):
        raise ValueError("unknown result type")
    raw = bytes(data.result)
    if raw.count(b"[") + raw.count(b"{") > PARTS_MOST:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    found: list[object] = []
    for value in _values(msgspec.json.decode(raw, type=list[_Series])):
        found.append(value)
        if len(found) > VALUES_MOST:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    return found[0] if len(found) == 1 else AllOf(found)


def _values(series: list[_Series]) -> Iterator[object]:
    for one in series:
        if one.value is None and not one.values:
            yield MISSING
        if one.value is not None:
            yield read_numeral(one.value[1])
        for _, text in one.values or ():
            yield read_numeral(text)
