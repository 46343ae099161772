"""Expiry of domains against an RDAP server over HTTPS that the test plays."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import monotonic
from typing import Any

import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check import rdap_traffic
from leadline.probes.check.check import validate
from leadline.probes.check.rdap_domain import DomainFacts, NotADomain, read_domain
from leadline.probes.check.rdap_servers import SERVERS, server_of
from leadline.probes.check.rdap_traffic import (
    ASKED_SECONDS,
    SHARED_SECONDS,
    RdapAnswer,
    RdapTraffic,
)
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.check.target import read_url
from leadline.probes.kinds.domain import retry_after_seconds
from leadline.probes.net.egress_policy import probe_policy
from tests.probes.net.test_proxy_tunnel import secure
from tests.support.peers.servers import Prober, answer, read_head, serving
from tests.support.processes.ports import refusing_port

HOST, DOMAIN = "127.0.0.1", "shop.example"
JSON = "content-type: application/rdap+json"


def down(failure: FailureClass) -> str:
    return message(failure, DOMAIN)


def document(days: float | None = 90, **more: Any) -> dict[str, Any]:
    """A response as registries give it (RFC 9083, 5.3)."""
    events = [{"eventAction": "registration", "eventDate": "2001-01-01T00:00:00Z"}]
    if days is not None:
        at = datetime.now(UTC) + timedelta(days=days)
        events.append({"eventAction": "expiration", "eventDate": at.isoformat()})
    card = ["vcard", [["version", {}, "text", "4.0"], ["fn", {}, "text", "Names & Co"]]]
    return {
        "rdapConformance": ["rdap_level_0"],
        "objectClassName": "domain",
        "ldhName": "SHOP.EXAMPLE.",
        "status": ["client transfer prohibited", "active"],
        "events": events,
        "entities": [
            {"objectClassName": "entity", "roles": ["abuse"]},
            {"objectClassName": "entity", "roles": ["registrar"], "vcardArray": card},
        ],
        **more,
    }


@dataclass
class Registry:
    """An RDAP server. `responses` are used in order, the last one repeats."""

    url: str = ""
    responses: list[bytes] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    def says(self, body: Any, status: str = "200 OK", *headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.responses = [answer(data, status, *(headers or (JSON,)))]


@asynccontextmanager
async def registry(certificate: trustme.LeafCert) -> AsyncIterator[Registry]:
    made = Registry()

    async def serve(stream: trio.SocketStream) -> None:
        made.heads.append((await read_head(stream)).decode())
        said = made.responses.pop(0) if len(made.responses) > 1 else made.responses[0]
        await stream.send_all(said)

    async with serving(secure(certificate, serve)) as port:
        made.url = f"https://{HOST}:{port}/rdap/"
        yield made


@pytest.fixture
async def rdap(authority: trustme.CA) -> AsyncIterator[Registry]:
    async with registry(authority.issue_cert(HOST)) as made:
        yield made


@pytest.mark.parametrize(
    ("days", "config", "failure"),
    [
        (90, {}, None),
        (29, {}, FailureClass.DOMAIN_EXPIRING),
        (29, {"warn_days": 7}, None),
        (6, {"warn_days": 7}, FailureClass.DOMAIN_EXPIRING),
        (-1, {"warn_days": 1}, FailureClass.DOMAIN_EXPIRING),
        (None, {}, FailureClass.EXPIRY_UNKNOWN),
    ],
)
async def test_the_expiry_decides(
    prober: Prober,
    rdap: Registry,
    days: float | None,
    config: dict[str, Any],
    failure: FailureClass | None,
) -> None:
    rdap.says(document(days))
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url, **config)
    assert (result.msg, result.code) == (down(failure) if failure else "", 200), result.bug
    assert "GET /rdap/domain/shop.example HTTP/1.1" in rdap.heads[0]
    assert "accept: application/rdap+json" in rdap.heads[0]


async def test_conditions_read_what_the_registry_says(prober: Prober, rdap: Registry) -> None:
    rdap.says(document(20))
    wants = [
        "[DOMAIN_EXPIRY] > 19d",
        "[DOMAIN_EXPIRY] < 21",
        '[BODY].registrar == "Names & Co"',
        "[BODY].statuses[0] == active",
        '[RESULT] contains "client transfer prohibited"',
    ]
    result = await prober.check("domain", DOMAIN, *wants, rdap_url=rdap.url)
    assert result.outcome is RunOutcome.UP, result.failed
    late = await prober.check("domain", DOMAIN, "[DOMAIN_EXPIRY] > 60d", rdap_url=rdap.url)
    assert late.failed is not None
    assert late.failed.text.startswith("[DOMAIN_EXPIRY] > 60d (19 d")
    rdap.says(document(None))
    prober = prober.with_(rdap=RdapTraffic())
    unknown = await prober.check("domain", DOMAIN, "[DOMAIN_EXPIRY] > 1d", rdap_url=rdap.url)
    assert unknown.failed is not None
    assert unknown.failed.text == "[DOMAIN_EXPIRY] > 1d (no value)"
    status = await prober.check("domain", DOMAIN, "[RESULT] contains active", rdap_url=rdap.url)
    assert status.outcome is RunOutcome.UP


PLAIN, HTML = "content-type: application/json", "content-type: text/html"
ERROR = {"errorCode": 404, "rdapConformance": ["rdap_level_0"], "title": "Not Found"}


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (b"{}", JSON),
        (b"", "content-type: application/rdap+json; charset=utf-8"),
        (ERROR, JSON),
        (ERROR, PLAIN),
    ],
)
async def test_an_unregistered_domain_is_down(
    prober: Prober, rdap: Registry, body: Any, header: str
) -> None:
    rdap.says(body, "404 Not Found", header)
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert (result.msg, result.code) == (down(FailureClass.DOMAIN_UNREGISTERED), 404)


@pytest.mark.parametrize(
    ("body", "status", "header"),
    [
        (b"<html>", "404 Not Found", HTML),
        (b"{}", "404 Not Found", PLAIN),
        (b"[]", "404 Not Found", PLAIN),
        (b"no", "404 Not Found", PLAIN),
        ({"errorCode": 404}, "404 Not Found", PLAIN),
        ({**ERROR, "errorCode": 500}, "404 Not Found", PLAIN),
        (b"", "304 Not Modified", JSON),
        (b"{}", "400 Bad Request", JSON),
        (b"{}", "401 Unauthorized", JSON),
        (b"{}", "403 Forbidden", JSON),
        (b"{}", "408 Request Timeout", JSON),
        (b"<html>", "200 OK", HTML),
        (b"no", "200 OK", JSON),
        (b"[" * 100_000, "200 OK", JSON),
        (document(ldhName="other.example"), "200 OK", JSON),
        (document(objectClassName="entity"), "200 OK", JSON),
        (b" " * 300_000, "200 OK", JSON),
        (b"", "302 Found", "location: http://169.254.169.254/"),
        (b"", "302 Found", "location: https://169.254.169.254/"),
        (b"", "302 Found", "location: https://[/"),
        (b"", "302 Found", "location: /rdap/domain/shop.example"),
    ],
)
async def test_an_answer_about_nothing_has_no_result(
    prober: Prober, rdap: Registry, body: Any, status: str, header: str
) -> None:
    rdap.says(body, status, header)
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert result.outcome is RunOutcome.UNKNOWN
    assert result.unknown_reason is UnknownReason.RDAP_UNAVAILABLE, result.bug
    assert len(rdap.heads) <= 4


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize(
    "retry_after", ["120", "x", "99999999999", "Sat, 28 Nov 2026 20:00:00 GMT"]
)
async def test_a_server_that_limits_its_clients_is_left_alone(
    prober: Prober, rdap: Registry, status: str, retry_after: str
) -> None:
    rdap.says({}, status, JSON, f"retry-after: {retry_after}")
    for _ in range(3):
        result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
        assert result.unknown_reason is UnknownReason.RATE_LIMITED
        assert result.outcome is RunOutcome.UNKNOWN
    assert len(rdap.heads) == 1
    # Another server is not affected.
    (until,) = prober.reach.rdap.resting.values()
    assert until > 0


async def test_the_server_that_limits_its_clients_rests(
    prober: Prober, authority: trustme.CA
) -> None:
    certificate = authority.issue_cert(HOST)
    async with registry(certificate) as first, registry(certificate) as other:
        other.says({}, "429 Too Many Requests", JSON, "retry-after: 3600")
        leads = answer(b"", "302 Found", f"location: {other.url}domain/a.example")
        first.responses = [leads]
        for _ in range(2):
            result = await prober.check("domain", "a.example", rdap_url=first.url)
            assert result.unknown_reason is UnknownReason.RATE_LIMITED
        assert (len(first.heads), len(other.heads)) == (2, 1)
        # The domains of the first server are asked on.
        first.says(document())
        result = await prober.check("domain", DOMAIN, rdap_url=first.url)
    assert result.outcome is RunOutcome.UP
    assert list(prober.reach.rdap.resting) == [read_url(other.url).origin]


async def test_an_answer_is_shared_for_some_minutes(
    prober: Prober, rdap: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    rdap.says(document(20))
    first = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    again = await prober.check("domain", DOMAIN, "[DOMAIN_EXPIRY] > 19d", rdap_url=rdap.url)
    assert first.msg == down(FailureClass.DOMAIN_EXPIRING)
    assert (again.outcome, again.code) == (RunOutcome.UP, 200)
    rdap.says({}, "404 Not Found")
    for _ in range(2):
        gone = await prober.check("domain", "other.example", rdap_url=rdap.url)
        assert gone.msg == message(FailureClass.DOMAIN_UNREGISTERED, "other.example")
    assert len(rdap.heads) == 2
    monkeypatch.setattr(rdap_traffic, "monotonic", lambda: monotonic() + SHARED_SECONDS)
    gone = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert gone.msg == down(FailureClass.DOMAIN_UNREGISTERED)


async def test_a_failure_is_neither_shared_nor_repeated(prober: Prober, rdap: Registry) -> None:
    rdap.says({}, "500 Internal Server Error")
    await prober.check("domain", DOMAIN, rdap_url=rdap.url, retries=5)
    assert len(rdap.heads) == 1
    rdap.says(document())
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert result.outcome is RunOutcome.UP
    faults = validate("domain", "example.com", None, {}, [], retries=1, interval_seconds=3_600)
    assert [fault.field for fault in faults] == ["retries"]


async def test_an_organization_has_its_part_of_a_server(
    prober: Prober, rdap: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdap_traffic, "ASKED_MOST", 1)
    rdap.says({}, "404 Not Found")
    for name, reason in (("a.example", None), ("b.example", UnknownReason.RATE_LIMITED)):
        result = await prober.check("domain", name, rdap_url=rdap.url)
        assert result.unknown_reason is reason
    assert len(rdap.heads) == 1
    traffic = prober.reach.rdap
    origin = read_url(rdap.url).origin
    # Another organization, and a later minute.
    assert traffic.admits(2, origin)
    assert not traffic.admits(2, origin)
    monkeypatch.setattr(rdap_traffic, "monotonic", lambda: monotonic() + ASKED_SECONDS)
    assert traffic.admits(2, origin)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_what_is_kept_of_servers_is_bounded(asked: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for bound in ("ASKED_MOST", "COUNTS_MOST", "ANSWERS_MOST", "RESTING_MOST"):
            patch.setattr(rdap_traffic, bound, 3)
        traffic = RdapTraffic()
        for org, number in asked:
            origin = ("https", "rdap.example", number)
            traffic.admits(org, origin)
            traffic.keep(str(number), RdapAnswer(None, org, 0))
            found = traffic.answer(str(number))
            assert found is not None
            assert found.code == org
            if org == 0:
                traffic.rest(origin, 60)
                assert not traffic.admits(org, origin)
        for kept in (traffic.resting, traffic._answers, traffic._counts):
            assert len(kept) <= 3


def test_a_retry_after_is_a_number_or_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    assert 500 < retry_after_seconds(later) <= 600
    for text, seconds in (("120", 120), (" 7 ", 7), ("x", 0), ("", 0), ("-1", 0), ("\u00b2", 0)):
        assert retry_after_seconds(text) == seconds
    assert retry_after_seconds("9" * 5_000) > 3_600
    assert retry_after_seconds("Sat, 28 Nov 2020 20:00:00 GMT") < 0


@given(st.text() | st.from_regex(r"\w{3}, \d{1,2} \w{3} \d{1,5} \d\d:\d\d:\d\d [-+]?\w{1,6}"))
def test_any_retry_after_is_read_without_an_exception(text: str) -> None:
    assert isinstance(retry_after_seconds(text), float)


async def test_a_server_without_an_answer_says_nothing_about_the_domain(
    prober: Prober, rdap: Registry
) -> None:
    unavailable = UnknownReason.RDAP_UNAVAILABLE
    with refusing_port() as port:
        url = f"https://{HOST}:{port}/"
        refused = await prober.check("domain", DOMAIN, rdap_url=url)
    gone = await prober.check("domain", DOMAIN, rdap_url="https://gone.example/")
    rdap.says({}, "500 Internal Server Error")
    broken = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert {one.unknown_reason for one in (refused, gone, broken)} == {unavailable}
    async with registry(trustme.CA().issue_cert(HOST)) as strange:
        strange.says(document())
        untrusted = await prober.check("domain", DOMAIN, rdap_url=strange.url)
    assert untrusted.unknown_reason is unavailable

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with serving(silent) as port:
        url = f"http://{HOST}:{port}/"
        slow = await prober.check("domain", DOMAIN, rdap_url=url, timeout_seconds=1)
    assert slow.unknown_reason is unavailable
    closed = prober.with_(policy=probe_policy(allow_private=False))
    blocked = await closed.check("domain", DOMAIN, rdap_url=rdap.url)
    assert blocked.msg == down(FailureClass.TARGET_BLOCKED)


async def test_redirects_stay_on_https(prober: Prober, rdap: Registry) -> None:
    rdap.says(document())
    found = rdap.responses[0]
    there = rdap.url.replace("/rdap/", "/other")
    rdap.responses = [answer(b"", "302 Found", f"location: {there}"), found]
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert result.outcome is RunOutcome.UP
    plain = there.replace("https", "http")
    prober = prober.with_(rdap=RdapTraffic())
    rdap.responses = [answer(b"", "302 Found", f"location: {plain}")]
    result = await prober.check("domain", DOMAIN, rdap_url=rdap.url)
    assert result.unknown_reason is UnknownReason.RDAP_UNAVAILABLE


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_an_expiry_beyond_the_calendar_is_its_end(when: str) -> None:
    events = [{"eventAction": "expiration", "eventDate": when}]
    found = read_domain(json.dumps(document(events=events)).encode(), DOMAIN)
    assert json.loads(found.body)["expires_at"].startswith(when[:4])


@pytest.mark.parametrize(
    ("target", "config", "field_"),
    [
        ("example.com", {}, None),
        ("bücher.com", {}, None),
        ("shop.example", {"rdap_url": "https://a.example/rdap"}, None),
        ("shop.example", {}, "config.rdap_url"),
        ("com", {}, "target"),
        ("192.0.2.1", {}, "target"),
        ("::1", {}, "target"),
        ("https://example.com/", {}, "target"),
        ("example.com", {"rdap_url": "ftp://a"}, "config.rdap_url"),
        ("example.com", {"rdap_url": "https://a.example/?a=b"}, "config.rdap_url"),
        ("example.com", {"warn_days": 0}, "config.warn_days"),
        ("example.com", {"warn_days": 366}, "config.warn_days"),
    ],
)
def test_the_settings_are_judged(target: str, config: dict[str, Any], field_: str | None) -> None:
    faults = validate("domain", target, None, config, [], interval_seconds=21_600)
    assert [fault.field for fault in faults] == ([] if field_ is None else [field_])


def test_a_registry_is_asked_at_most_hourly() -> None:
    for interval, fault in ((3_599, True), (3_600, False), (86_400, False), (86_401, True)):
        found = validate("domain", "example.com", None, {}, [], interval_seconds=interval)
        assert [one.field for one in found] == (["interval_seconds"] if fault else [])


def test_every_known_server_is_a_base_url() -> None:
    for tld, url in SERVERS.items():
        assert url.endswith("/")
        assert read_url(url).scheme == "https"
        assert server_of(f"a.b.{tld}") == url
    assert server_of("shop.example") == ""


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30)
    | st.sampled_from(["expiration", "registrar", "fn", "2030-01-01T00:00:00Z", "9999-12-31"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["eventAction", "eventDate", "roles", "vcardArray", "a"]), inner
        )
    ),
    max_leaves=30,
)


@given(VALUES, VALUES, VALUES)
def test_any_document_is_read_without_an_exception(events: Any, entities: Any, status: Any) -> None:
    said = document(events=events, entities=entities, status=status)
    found = read_domain(json.dumps(said).encode(), DOMAIN)
    assert json.loads(found.body)["registrar"] == found.registrar
    assert found.expires_at is None or isinstance(found.expires_at, int)


@given(st.binary(max_size=200))
def test_any_bytes_are_judged_without_an_exception(data: bytes) -> None:
    try:
        read_domain(data, DOMAIN)
    except NotADomain:
        return


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=1, max_size=4))
def test_the_first_expiry_counts(instants: list[datetime]) -> None:
    events = [{"eventAction": "expiration", "eventDate": at.isoformat()} for at in instants]
    found = read_domain(json.dumps(document(events=events)).encode(), DOMAIN)
    first = (min(instants) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert isinstance(found, DomainFacts)
    assert found.expires_at == first
