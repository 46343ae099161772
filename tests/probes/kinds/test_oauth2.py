"""OAuth2 client credentials of checks against oidc-provider and endpoints that misbehave."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any
from urllib.parse import parse_qs

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.oauth2 import TokenSetup, oauth2_faults
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.check.target import read_url
from leadline.probes.check.token_cache import TOKENS_MOST, CachedToken, TokenCache
from leadline.probes.net.access_token import SECONDS_MOST, read_token
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.http_exchange import HttpResponse
from tests.support.openid.provider import Provider, providing
from tests.support.peers.servers import Names, Prober, answer, serving
from tests.support.processes.ports import free_port, refusing_port

HOST = "127.0.0.1"
SECRET = "secret of the client"
TOKEN_ERROR = message(FailureClass.TOKEN_ERROR, HOST)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing(port=free_port(), redirect_uris=[], post_logout_uris=[]) as running:
        yield running


def config(url: str, **more: Any) -> dict[str, Any]:
    return {
        "auth_mode": "oauth2",
        "oauth2_token_url": url,
        "oauth2_client_id": "pipeline",
        "oauth2_client_secret": SECRET,
        **more,
    }


@dataclass
class Endpoint:
    """A token endpoint and a target, which accepts the tokens of `valid`."""

    port: int = 0
    tokens: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    response: bytes | None = None
    # The endpoint answers when it is set.
    may_answer: trio.Event = field(default_factory=trio.Event)
    was_asked: trio.Event = field(default_factory=trio.Event)
    target: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/token"

    @property
    def site(self) -> str:
        return f"http://{HOST}:{self.port}/"

    async def serve(self, stream: trio.SocketStream) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += bytes(await stream.receive_some(65_536))
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode()
        if text.startswith("POST /token "):
            if b"grant_type" not in body:
                body += bytes(await stream.receive_some(65_536))
            self.requests.append((text, body.decode()))
            self.was_asked.set()
            await self.may_answer.wait()
            await stream.send_all(self.response or self._issue())
            return
        token = text.partition("authorization: Bearer ")[2].partition("\r\n")[0]
        self.target.append(token)
        good = token in self.valid
        if "upgrade: websocket" in text.lower():
            await stream.send_all(answer(b"", "403 Forbidden" if good else "401 Unauthorized"))
        elif good:
            result = {"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}}
            body = json.dumps({**result, "token": token}).encode()
            await stream.send_all(answer(body, "200 OK"))
        else:
            await stream.send_all(answer(b"no", "401 Unauthorized"))

    def _issue(self) -> bytes:
        self.tokens += 1
        token = f"token-{self.tokens}"
        self.valid.add(token)
        said = {"access_token": token, "token_type": "bearer", "expires_in": 600}
        return answer(json.dumps(said).encode())


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()
    made.may_answer.set()
    async with serving(made.serve) as port:
        made.port = port
        yield made


@pytest.mark.needs("node")
@pytest.mark.parametrize("how", ["client_secret_basic", "client_secret_post"])
async def test_a_certified_provider_issues_a_token(
    prober: Prober, provider: Provider, how: str
) -> None:
    seen: list[str] = []

    async def site(stream: trio.SocketStream) -> None:
        head = bytes(await stream.receive_some(65_536)).decode()
        seen.append(head.partition("authorization: Bearer ")[2].partition("\r\n")[0])
        await stream.send_all(answer())

    given = config(f"{provider.issuer}/token", oauth2_client_auth=how)
    given["oauth2_client_secret"] = "secret of the pipeline"
    if how == "client_secret_post":
        given["oauth2_client_id"] = "poster"
    async with serving(site) as port:
        for _ in range(2):
            result = await prober.check("http", f"http://{HOST}:{port}/", **given)
            assert result.outcome is RunOutcome.UP, (result, result.bug)
        wrong = {**given, "oauth2_client_secret": "wrong"}
        refused = await prober.check("http", f"http://{HOST}:{port}/", **wrong)
    assert (refused.msg, refused.code) == (TOKEN_ERROR, 401)
    # Both runs used one token.
    assert len(seen) == 2
    assert seen[0] == seen[1] != ""


async def test_the_request_is_that_of_the_standard(prober: Prober) -> None:
    more = {"oauth2_scopes": "read write", "oauth2_audience": "urn:shop"}
    async with endpoint() as made:
        await prober.check("http", made.site, **config(made.url, **more))
        post = {"oauth2_client_auth": "client_secret_post"}
        await prober.check("http", made.site, **config(made.url, **post))
    (basic, form), (bare, posted) = made.requests
    header = basic.partition("authorization: Basic ")[2].partition("\r\n")[0]
    assert b64decode(header) == b"pipeline:secret+of+the+client"
    expected = {"grant_type": ["client_credentials"], "scope": ["read write"]}
    assert parse_qs(form) == {**expected, "audience": ["urn:shop"]}
    assert "authorization:" not in bare
    credentials = {"client_id": ["pipeline"], "client_secret": [SECRET]}
    assert parse_qs(posted) == {"grant_type": ["client_credentials"], **credentials}


async def test_every_type_uses_one_token_until_the_target_refuses_it(prober: Prober) -> None:
    async with endpoint() as made:
        given = config(made.url)
        kinds = [("http", made.site, {}), ("promql", made.site, {"query": "1"})]
        kinds.append(("websocket", made.site.replace("http", "ws"), {}))
        for kind, target, more in kinds:
            result = await prober.check(kind, target, **given, **more)
            # The target refuses the handshake with 403 to a known client.
            assert result.code == (403 if kind == "websocket" else 200), result
        assert made.tokens == 1
        # A withdrawn token is no failure of the target.
        for number, (kind, target, more) in enumerate(kinds, 2):
            made.valid.clear()
            result = await prober.check(kind, target, **given, **more)
            assert result.code == (403 if kind == "websocket" else 200), result
            assert made.tokens == number
        # A new token is refused too: the target is down, and its token is dropped.
        made.response = answer(b'{"access_token":"bad","expires_in":600}')
        made.valid.clear()
        asked = len(made.requests)
        for _ in range(2):
            refused = await prober.check("http", made.site, **given)
            assert (refused.msg, refused.code) == (message(FailureClass.HTTP_STATUS, HOST), 401)
        assert len(made.requests) == asked + 2
        assert len(prober.reach.tokens) == 1


async def test_checks_of_one_set_up_fetch_one_token(prober: Prober) -> None:
    async with endpoint() as made:
        made.may_answer = trio.Event()
        results = []

        async def check() -> None:
            results.append(await prober.check("http", made.site, **config(made.url)))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(check)
            await made.was_asked.wait()
            made.may_answer.set()
    assert [result.outcome for result in results] == [RunOutcome.UP] * 20
    assert len(made.requests) == 1
    assert set(made.target) == {"token-1"}


async def test_the_time_for_the_token_is_no_latency(prober: Prober) -> None:
    async with endpoint() as made:
        made.may_answer = trio.Event()
        results = []

        async def check() -> None:
            results.append(await prober.check("http", made.site, **config(made.url)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(check)
            await made.was_asked.wait()
            answered_ns = perf_counter_ns()
            made.may_answer.set()
        took_us = (perf_counter_ns() - answered_ns) // 1_000
    (result,) = results
    assert result.outcome is RunOutcome.UP
    assert 0 < result.phases.total_us <= took_us


BAD = [
    answer(b"{}"),
    answer(b"no"),
    answer(b'{"access_token":""}'),
    answer(b'{"access_token":"a b"}'),
    answer(b'{"access_token":"a\\nb"}'),
    answer(b'{"access_token":"a","token_type":"mac"}'),
    answer(b'{"access_token":"a"}', "400 Bad Request"),
    answer(b'{"access_token":"' + b"a" * 8_193 + b'"}'),
    answer(b'{"access_token":"a"}' + b" " * 70_000),
    answer(b"", "302 Found", "location: http://127.0.0.1:1/"),
    b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 50_000,
    b"nonsense\r\n\r\n",
    b"",
]


@pytest.mark.parametrize("response", BAD)
async def test_a_bad_answer_of_the_endpoint_is_a_class_of_its_own(
    prober: Prober, response: bytes
) -> None:
    async with endpoint() as made:
        made.response = response or b" "
        result = await prober.check("http", made.site, "[CONNECTED] == false", **config(made.url))
        assert result.msg == TOKEN_ERROR
        assert SECRET not in repr(result)
        assert made.target == []


async def test_an_unreachable_endpoint_is_no_failure_of_the_target(prober: Prober) -> None:
    async with endpoint() as made:
        with refusing_port() as port:
            given = config(f"http://{HOST}:{port}/token")
            result = await prober.check("http", made.site, "[CONNECTED] == false", **given)
        assert result.msg == TOKEN_ERROR
        made.may_answer = trio.Event()
        silent = await prober.check("http", made.site, timeout_seconds=1, **config(made.url))
        assert silent.msg == TOKEN_ERROR
        denied = prober.with_(policy=probe_policy(allow_private=False))
        blocked = await denied.check("http", "http://192.0.2.1/", **config(made.url))
        assert blocked.msg == message(FailureClass.TOKEN_ERROR, "192.0.2.1")
        assert len(made.requests) == 1


async def test_a_dead_resolver_is_a_local_failure_for_all_that_wait(
    prober: Prober, names: Names
) -> None:
    names.root = None
    names.records = {("silent.example", "A"): [None], ("silent.example", "AAAA"): [None]}
    given = config("http://silent.example/token")
    results = []

    async def check(seconds: int) -> None:
        site = f"http://{HOST}:1/"
        results.append(await prober.check("http", site, timeout_seconds=seconds, **given))

    async with trio.open_nursery() as nursery:
        for seconds in (1, 1, 2):
            nursery.start_soon(check, seconds)
    assert {result.unknown_reason for result in results} == {UnknownReason.RESOLVER_DEAD}


async def test_a_token_is_hidden_in_measured_values(prober: Prober) -> None:
    async with endpoint() as made:
        result = await prober.check(
            "http", made.site, "[BODY].token == a", show_values=True, **config(made.url)
        )
    assert result.failed is not None
    assert result.failed.measured == "hidden: contains a secret"


URL = read_url("http://a.example/")


@given(
    st.one_of(st.none(), st.text(), st.floats(allow_nan=True), st.integers()),
    st.text(max_size=20),
)
def test_a_lifetime_is_bounded_whatever_the_endpoint_says(lifetime: Any, token: str) -> None:
    said: dict[str, Any] = {"access_token": token, "expires_in": lifetime}
    body = json.dumps(said).encode()
    response = HttpResponse(status=200, headers={}, body=body, whole=True, address="", url=URL)
    with suppress(TargetFailure):
        found, seconds = read_token(response)
        assert found == token
        assert found.isprintable()
        assert " " not in found
        assert 0 <= seconds < SECONDS_MOST


def test_the_cache_is_bounded_and_keeps_what_is_used() -> None:
    cache = TokenCache()

    def setup(number: int) -> TokenSetup:
        return TokenSetup(str(number), "", SECRET, "", "", "", None)

    first = cache.entry(setup(0))
    first.keep("a", 60)
    for number in range(1, TOKENS_MOST + 5):
        cache.entry(setup(number))
        assert cache.entry(setup(0)) is first
    assert len(cache) == TOKENS_MOST
    cache.drop(setup(0), "another")
    assert first.usable == "a"
    cache.drop(setup(0), "a")
    assert first.usable == ""
    assert SECRET not in repr(setup(0))
    assert "horse" not in repr(CachedToken(token="horse"))


@pytest.mark.parametrize(
    ("change", "field_"),
    [
        ({}, None),
        ({"oauth2_client_secret": "", "oauth2_client_secret_ref": "a"}, None),
        ({"oauth2_scopes": "a b:c"}, None),
        ({"oauth2_token_url": ""}, "oauth2_token_url"),
        ({"oauth2_token_url": "ftp://a"}, "oauth2_token_url"),
        ({"oauth2_token_url": "https://u:p@a.example/"}, "oauth2_token_url"),
        ({"oauth2_client_id": ""}, "oauth2_client_id"),
        ({"oauth2_client_secret": ""}, "oauth2_client_secret"),
        ({"oauth2_client_secret_ref": "a"}, "oauth2_client_secret"),
        ({"oauth2_scopes": "a  b"}, "oauth2_scopes"),
        ({"oauth2_scopes": 'a"'}, "oauth2_scopes"),
        ({"oauth2_client_auth": "none"}, "oauth2_client_auth"),
        ({"auth_mode": "none"}, "oauth2_token_url"),
        ({"headers": {"Authorization": "x"}}, "headers"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "promql", "websocket"])
def test_the_settings_belong_together(
    kind: str, change: dict[str, Any], field_: str | None
) -> None:
    if kind == "promql" and "headers" in change:
        return
    given_ = {**config("https://a.example/token"), **change}
    given_ |= {"query": "1"} if kind == "promql" else {}
    target = "wss://a.example/" if kind == "websocket" else "https://a.example/"
    found = [fault.field for fault in validate(kind, target, None, given_, [])]
    assert found == ([] if field_ is None else [f"config.{field_}"])


@given(st.dictionaries(st.sampled_from(list(config(""))), st.text()))
def test_any_settings_are_judged_without_an_exception(given_: dict[str, str]) -> None:
    for fault in oauth2_faults({"auth_mode": "oauth2", **given_}):
        assert fault.field.startswith("config.oauth2_")
