"""Scenarios run against a shop that has sessions, orders and redirects, and against other peers."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from leadline.probes.check.json_document import WHOLE_CHARACTERS_MOST
from leadline.probes.check.result import Result, RunOutcome, UnknownReason
from leadline.probes.kinds.synthetic.synthetic_probe import VARIABLE_LONGEST
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Prober, answer, serving
from tests.support.processes.ports import refusing_port

PASSWORD = 'canary "pass" 7f3a'
HOST = "127.0.0.1"


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Shop:
    """Accepts a JSON login with the password; a session is a cookie and a token."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    elsewhere: str = ""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def serve(self, stream: trio.SocketStream) -> None:
        asked = await _read(stream)
        self.asked.append(asked)
        await stream.send_all(self._answer(asked))

    def _answer(self, asked: Asked) -> bytes:
        path = urlsplit(asked.path)
        signed_in = "session=s3ss10n" in asked.headers.get("cookie", "")
        match path.path:
            case "/login":
                if json.loads(asked.body).get("password") != PASSWORD:
                    return answer(b"{}", "403 Forbidden")
                said = {"token": "t&k/n", "user": {"roles": ["buyer"]}, "id": 7}
                cookie = "set-cookie: session=s3ss10n; HttpOnly; Path=/"
                return answer(json.dumps(said).encode(), "200 OK", cookie, "x-next: a b")
            case "/orders":
                found = parse_qs(path.query).get("token") == ["t&k/n"]
                return answer(b'{"items": ["tea"]}' if signed_in and found else b"{}", "200 OK")
            case "/moved":
                return answer(b"", "302 Found", "location: /orders?token=t%26k%2Fn")
            case "/away":
                return answer(b"", "307 Temporary Redirect", f"location: {self.elsewhere}/stolen")
            case _:
                return answer(b"not here", "404 Not Found")


async def _read(stream: trio.SocketStream) -> Asked:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await _more(stream)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await _more(stream)
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body.decode())


async def _more(stream: trio.SocketStream) -> bytes:
    data = await stream.receive_some(65_536)
    if not data:
        raise trio.BrokenResourceError
    return bytes(data)


async def _stay_silent(_stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    async with serving(shop.serve) as shop.port:
        yield shop


def login(shop: Shop, **given: Any) -> dict[str, Any]:
    return {
        "method": "POST",
        "url": f"{shop.url}/login",
        "body": '{"user": "mara", "password": "{{secret:login}}"}',
        "extract": [{"var": "token", "from": "json", "path": "token"}],
        **given,
    }


async def played(prober: Prober, *steps: dict[str, Any], **given: Any) -> Result:
    secrets = given.pop("secrets", {"scenario_secret_login": PASSWORD})
    return await prober.check(
        "synthetic", "", scenario={"steps": list(steps)}, secrets=secrets, **given
    )


async def test_variables_and_cookies_reach_the_next_step(prober: Prober, shop: Shop) -> None:
    orders = {
        "url": f"{shop.url}/orders?token={{{{token}}}}",
        "assert": [
            {"kind": "status", "op": "eq", "value": 200},
            {"kind": "json", "op": "eq", "path": "items[0]", "value": "tea"},
            {"kind": "latency_ms", "op": "lt", "value": 60_000},
        ],
    }
    result = await played(prober, login(shop), orders)
    assert (result.outcome, result.code, result.msg) == (RunOutcome.UP, 200, "")
    assert result.phases.first_byte_us is not None
    first, second = shop.asked
    assert json.loads(first.body) == {"user": "mara", "password": PASSWORD}
    assert first.headers["content-type"] == "application/json"
    assert second.headers["cookie"] == "session=s3ss10n"
    assert second.path == "/orders?token=t%26k%2Fn"


async def test_only_a_json_body_gets_a_default_content_type(prober: Prober, shop: Shop) -> None:
    named = {"Content-Type": "application/vnd.shop+json"}
    for changed in ({"headers": named}, {"url": f"{shop.url}/form", "body": "user=mara"}):
        await played(prober, login(shop, extract=[], **changed))
    with_name, form = (asked.headers.get("content-type") for asked in shop.asked)
    assert with_name == "application/vnd.shop+json"
    assert form != "application/json"


async def test_each_run_starts_without_cookies_and_variables(prober: Prober, shop: Shop) -> None:
    for _ in range(2):
        assert (await played(prober, login(shop))).outcome is RunOutcome.UP
    assert all("cookie" not in asked.headers for asked in shop.asked)


async def test_a_cookie_of_a_redirect_is_sent_to_the_next_hop(prober: Prober, shop: Shop) -> None:
    moved = {
        "url": f"{shop.url}/moved",
        "assert": [{"kind": "body_contains", "op": "contains", "value": "tea"}],
    }
    assert (await played(prober, login(shop), moved)).outcome is RunOutcome.UP


async def test_an_asserted_redirect_is_not_followed(prober: Prober, shop: Shop) -> None:
    moved = {
        "url": f"{shop.url}/moved",
        "assert": [{"kind": "status", "op": "eq", "value": 302}],
    }
    result = await played(prober, moved)
    assert (result.outcome, result.code) == (RunOutcome.UP, 302)


@pytest.mark.parametrize(
    ("asserted", "place"),
    [
        ({"kind": "status", "op": "eq", "value": 201}, "status"),
        ({"kind": "status", "op": "lt", "value": 200}, "status"),
        ({"kind": "json", "op": "eq", "path": "token", "value": "other"}, "json"),
        ({"kind": "json", "op": "ne", "path": "missing", "value": "other"}, "json"),
        ({"kind": "json", "op": "eq", "path": "id", "value": "7"}, "json"),
        ({"kind": "json", "op": "gt", "path": "id", "value": 7}, "json"),
        ({"kind": "json", "op": "contains", "path": "user.roles", "value": "seller"}, "json"),
        ({"kind": "body_contains", "op": "contains", "value": "nowhere"}, "body_contains"),
        ({"kind": "body_contains", "op": "ne", "value": "roles"}, "body_contains"),
        ({"kind": "latency_ms", "op": "gt", "value": 60_000}, "latency_ms"),
    ],
)
async def test_a_failed_assertion_reveals_only_step_and_kind(
    prober: Prober, shop: Shop, asserted: dict[str, Any], place: str
) -> None:
    second = login(shop, name="the secret name", **{"assert": [asserted]})
    result = await played(prober, login(shop), second)
    assert result.outcome is RunOutcome.DOWN
    assert result.msg == f"condition_failed step 2 {place} {HOST}"
    assert result.code == 200


@pytest.mark.parametrize(
    "asserted",
    [
        {"kind": "json", "op": "eq", "path": "id", "value": 7},
        {"kind": "json", "op": "eq", "path": "token", "value": "{{token}}"},
        {"kind": "json", "op": "ne", "path": "token", "value": "other"},
        {"kind": "json", "op": "contains", "path": "user.roles", "value": "buyer"},
        {"kind": "json", "op": "lt", "path": "id", "value": 7.5},
        {"kind": "status", "op": "ne", "value": 500},
        {"kind": "body_contains", "op": "ne", "value": "nowhere"},
    ],
)
async def test_a_true_assertion_is_up(prober: Prober, shop: Shop, asserted: dict[str, Any]) -> None:
    second = login(shop, **{"assert": [asserted]})
    assert (await played(prober, login(shop), second)).outcome is RunOutcome.UP


async def test_without_a_status_assertion_only_2xx_is_up(prober: Prober, shop: Shop) -> None:
    result = await played(prober, login(shop), {"url": f"{shop.url}/gone"})
    assert (result.msg, result.code) == (f"http_status step 2 {HOST}", 404)


@pytest.mark.parametrize(
    "extract",
    [
        {"var": "v", "from": "json", "path": "missing.path"},
        {"var": "v", "from": "header", "path": "x-missing"},
    ],
)
async def test_a_failed_extraction_fails_its_step(
    prober: Prober, shop: Shop, extract: dict[str, Any]
) -> None:
    result = await played(prober, login(shop, extract=[extract]))
    assert result.msg == f"condition_failed step 1 extract {HOST}"


async def test_an_oversized_variable_fails_its_step(prober: Prober) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await _read(stream)
        await stream.send_all(answer(b"x" * (VARIABLE_LONGEST + 1)))

    async with serving(serve) as port:
        step = {"url": f"http://{HOST}:{port}/", "extract": [{"var": "v", "from": "body"}]}
        result = await played(prober, step)
    assert result.msg == f"condition_failed step 1 extract {HOST}"


async def test_a_body_with_too_many_parts_is_too_large_for_an_extraction(prober: Prober) -> None:
    large = {"many": [[]] * 60_000, "v": "x" * WHOLE_CHARACTERS_MOST}

    async def serve(stream: trio.SocketStream) -> None:
        await _read(stream)
        await stream.send_all(answer(json.dumps(large).encode()))

    async with serving(serve) as port:
        step = {
            "url": f"http://{HOST}:{port}/",
            "extract": [{"var": "v", "from": "json", "path": "many"}],
        }
        result = await played(prober, step)
    assert (result.msg, result.code) == (f"response_too_large step 1 extract {HOST}", 200)


async def test_a_variable_that_would_split_a_header_fails_the_step(prober: Prober) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await _read(stream)
        await stream.send_all(answer(json.dumps({"v": "a\r\nX-Evil: 1"}).encode()))

    async with serving(serve) as port:
        url = f"http://{HOST}:{port}/"
        first = {"url": url, "extract": [{"var": "v", "from": "json", "path": "v"}]}
        result = await played(prober, first, {"url": url, "headers": {"X-V": "{{v}}"}})
    assert result.msg == f"protocol_error step 2 headers {HOST}"


async def test_missing_and_invalid_secrets_are_local_failures(prober: Prober, shop: Shop) -> None:
    lacking = await played(prober, login(shop), secrets={})
    assert lacking.unknown_reason is UnknownReason.MISSING_REFERENCE
    step = {"url": shop.url, "headers": {"Authorization": "{{secret:login}}"}}
    for value in ("a\r\nb", "a ", " a"):
        split = await played(prober, step, secrets={"scenario_secret_login": value})
        assert split.unknown_reason is UnknownReason.BAD_SECRET
    assert shop.asked == []


async def test_an_unreadable_stored_scenario_is_a_local_failure(
    prober: Prober,
) -> None:
    result = await prober.check("synthetic", "", scenario={"steps": [{"url": "nothing"}]})
    assert result.unknown_reason is UnknownReason.BAD_DEFINITION


async def test_another_origin_gets_no_secrets_variables_or_cookies(
    prober: Prober, shop: Shop
) -> None:
    other = Shop()
    async with serving(other.serve) as other.port:
        shop.elsewhere = f"http://localhost:{other.port}"
        away = {
            "method": "POST",
            "url": f"{shop.url}/away",
            "headers": {
                "X-Api-Key": "{{secret:login}}",
                "X-Mine": "key {{secret:login}}",
                "X-Session": "{{token}}",
                "X-Plain": "kept",
            },
            "body": "{{token}}",
            "assert": [{"kind": "status", "op": "eq", "value": 404}],
        }
        result = await played(prober.with_(), login(shop), away)
    assert result.outcome is RunOutcome.UP, result.msg
    (seen,) = other.asked
    assert seen.headers["x-plain"] == "kept"
    assert not {"x-api-key", "x-mine", "x-session", "cookie"} & set(seen.headers)
    assert seen.body == ""


async def test_an_unanswered_step_times_out_and_is_named(prober: Prober, shop: Shop) -> None:
    async with serving(_stay_silent) as silent:
        result = await played(
            prober, login(shop), {"url": f"http://{HOST}:{silent}/"}, timeout_seconds=1
        )
    assert result.msg == f"timeout step 2 {HOST}"


async def test_a_step_to_a_closed_port_is_refused_and_named(prober: Prober, shop: Shop) -> None:
    with refusing_port(HOST) as closed:
        result = await played(prober, login(shop), {"url": f"http://{HOST}:{closed}/"})
    assert result.msg == f"connect_refused step 2 {HOST}"


async def test_cancelled_scenarios_leave_nothing_open(prober: Prober, shop: Shop) -> None:
    orders = {"url": f"{shop.url}/orders?token={{{{token}}}}"}
    await leaves_nothing(lambda: played(prober, login(shop), orders))
