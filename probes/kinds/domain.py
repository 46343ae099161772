"""Probe of a registered domain by RDAP: the time until it expires, its registrar and statuses.

Only an answer about the domain is a result. If the RDAP server gives none or limits its clients,
the state of the domain is unknown: such a run has no result.
"""

from dataclasses import replace
from email.utils import parsedate_to_datetime
from time import time
from typing import Final

from ..check.check import Check
from ..check.condition import DAY_US
from ..check.condition_evaluation import ProbeValues
from ..check.cpu_meter import current_meter
from ..check.failure import LocalFailure, TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.rdap_domain import NotADomain, is_unregistered, read_domain
from ..check.rdap_servers import server_of
from ..check.rdap_traffic import RdapAnswer
from ..check.result import FailureClass, UnknownReason
from ..check.target import BadTarget, Url, read_host, read_url
from ..net.egress import Egress
from ..net.http_client import HttpRequest, HttpResponse, fetch, follow, leads_to

WARN_DAYS = 30
WARN_DAYS_MOST = 365
ANSWER_BYTES_MOST: Final = 256 * 1024
REDIRECTS: Final = 3
# Bounds of the pause after a server has limited its clients. It states the pause itself.
REST_SECONDS: Final = (60.0, 3_600.0)
_LIMITED: Final = frozenset({429, 503})


def _rule(target: str, config: Config) -> list[SpecFault]:
    faults = []
    name, url = read_host(target), str(config.get("rdap_url", ""))
    if ":" in name or "." not in name or name.rpartition(".")[2].isdigit():
        faults.append(SpecFault("target", "must be a registered domain, such as example.com"))
    elif not url and not server_of(name):
        said = f"is required: no RDAP server of .{name.rpartition('.')[2]} is known"
        faults.append(SpecFault("config.rdap_url", said))
    try:
        if url and "?" in read_url(url).path:
            faults.append(SpecFault("config.rdap_url", "must not have a query"))
    except BadTarget as bad:
        faults.append(SpecFault("config.rdap_url", str(bad)))
    return faults


SPEC = Spec(
    type=MonitorType.DOMAIN,
    help="Asks the registry when a domain expires. One that is not about to expire is up.",
    target=TargetForm.NAME,
    fields=(
        Field(
            name="warn_days",
            type=FieldType.INTEGER,
            help="Days before expiry from which a domain fails as domain_expiring.",
            default=WARN_DAYS,
            least=1,
            most=WARN_DAYS_MOST,
        ),
        Field(
            name="rdap_url",
            type=FieldType.TEXT,
            help="Base URL of the RDAP server; default: the server of the top-level domain.",
        ),
    ),
    placeholders=frozenset({"DOMAIN_EXPIRY", "RESULT", "BODY", "RESPONSE_TIME"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    domain = read_host(check.target)
    url = _url(check.text("rdap_url") or server_of(domain), domain)
    answer = shared = reach.rdap.answer(str(url))
    if answer is None:
        answer = await _answer(reach, url, domain, watch)
        reach.rdap.keep(str(url), answer)
    found = answer.facts
    if found is None:
        raise TargetFailure(FailureClass.DOMAIN_UNREGISTERED, answer.code)
    days = check.config.get("warn_days")
    return Observation(
        ProbeValues(connected=True, result="\n".join(found.statuses), body=found.body),
        code=answer.code,
        failure=FailureClass.EXPIRY_UNKNOWN if found.expires_at is None else None,
        took_us=shared.took_us if shared else None,
        domain_ends_at=found.expires_at,
        domain_left_us_least=(days if isinstance(days, int) else WARN_DAYS) * DAY_US,
    )


async def _answer(reach: Egress, url: Url, domain: str, watch: Stopwatch) -> RdapAnswer:
    response = await _asked(reach, url, watch)
    code, took_us = response.status, watch.elapsed_us()
    if response.status == 404 and is_unregistered(
        response.body, response.headers.get("content-type", "")
    ):
        return RdapAnswer(None, code, took_us)
    if not 200 <= response.status <= 299 or not response.whole:
        raise LocalFailure(UnknownReason.RDAP_UNAVAILABLE)
    try:
        return RdapAnswer(read_domain(response.body, domain), code, took_us)
    except NotADomain:
        raise LocalFailure(UnknownReason.RDAP_UNAVAILABLE) from None


async def _asked(reach: Egress, url: Url, watch: Stopwatch) -> HttpResponse:
    """Returns the last response. A server that limits its clients is not asked, at any hop.

    Raises: `LocalFailure`, or `TargetFailure(target_blocked)` if the first server is not allowed.
    """
    request = HttpRequest(
        method="GET",
        url=url,
        headers=[("accept", "application/rdap+json")],
        redirects=REDIRECTS,
        # A registry of an https server stays on https.
        schemes=("https",) if url.scheme == "https" else ("http", "https"),
        body_bytes_most=ANSWER_BYTES_MOST,
    )
    watch.stands_for = UnknownReason.RDAP_UNAVAILABLE
    is_first, meter = True, current_meter()
    for _ in range(REDIRECTS + 1):
        origin = request.url.origin
        if not reach.rdap.admits(meter.org if meter else 0, origin):
            raise LocalFailure(UnknownReason.RATE_LIMITED)
        try:
            # One hop: the next origin is looked at first.
            response = await fetch(reach, replace(request, redirects=0), watch)
            if response.status in _LIMITED:
                _rest(reach, origin, response)
                raise LocalFailure(UnknownReason.RATE_LIMITED)
            location = leads_to(request, response.status, response.headers)
            if location:
                is_first = False
                request = follow(request, response.status, location)
        except TargetFailure as failed:
            if failed.failure is FailureClass.TARGET_BLOCKED and is_first:
                raise
            raise LocalFailure(UnknownReason.RDAP_UNAVAILABLE) from failed
        if not location:
            watch.stands_for = None
            return response
    raise LocalFailure(UnknownReason.RDAP_UNAVAILABLE)


def _url(base: str, domain: str) -> Url:
    found = read_url(base)
    path = f"{found.path.rstrip('/')}/domain/{domain}"
    return Url(found.scheme, found.host, found.port, path)


def _rest(reach: Egress, origin: tuple[str, str, int], response: HttpResponse) -> None:
    """Keeps this process from asking the server for a time: all monitors share its limit."""
    least, most = REST_SECONDS
    seconds = min(max(retry_after_seconds(response.headers.get("retry-after", "")), least), most)
    reach.rdap.rest(origin, seconds)


def retry_after_seconds(stated: str) -> float:
    """Returns the seconds of a Retry-After, a number or a date (RFC 9110, 10.2.3), else 0."""
    stated = stated.strip()
    if stated.isascii() and stated.isdigit():
        return float(stated[:10])
    try:
        return parsedate_to_datetime(stated).timestamp() - time()
    except (ValueError, OverflowError):
        return 0.0
