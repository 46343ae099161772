"""A request on the short path gets the answer that the web framework would give it."""

from typing import Any
from urllib.parse import quote_from_bytes

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.http.server.app import make_app
from leadline.http.server.health import ROUTES as OPS_ROUTES
from leadline.http.server.route_table import ROUTES as API_ROUTES
from leadline.http.server.short_path import ShortPath
from leadline.storage.accounts.rules.access import Need
from tests.support.app.cast import AGENT_TOKEN, EVERYBODY, Api
from tests.support.run.effort import examples

ROUTES = (*OPS_ROUTES, *API_ROUTES)
SHORT = [route for route in ROUTES if route.short]
SEGMENTS = ["nothing", "team", "confirm", "a%20b", "%00", "..", "", "{slug}", "ü", "0", "fail"]
TEXTS = st.one_of(
    st.sampled_from(["up", "down", "12", "rss", "json", "uptime"]), st.text(max_size=8)
)
FIELDS = ["status", "msg", "ping", "token", "component", "show", "format", "other"]


async def answer_of(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, Any, bytes]:
    """Returns status, headers and body of an ASGI application."""
    sent: list[dict[str, Any]] = []
    waiting = [
        {"type": "http.request", "body": body[:5], "more_body": True},
        {"type": "http.request", "body": body[5:], "more_body": False},
    ]

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    headers = dict(start["headers"])
    assert len(headers) == len(start["headers"]), "no header is sent twice"
    return start["status"], headers, b"".join(part.get("body", b"") for part in sent[1:])


def scope_of(
    method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]]
) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"leadline.test"), *headers],
        "client": ("192.0.2.1", 1),
        "extensions": {},
    }


async def expect_same(api: Api, method: str, path: str, **asked: Any) -> tuple[int, Any, bytes]:
    """Sends the request to the short path and to the framework, and compares the answers."""
    framework = asked.get("framework") or make_app(api.context, ROUTES)

    async def refused(*_: Any) -> None:
        raise AssertionError("the short path does not answer this request")

    takes: Any = refused if asked.get("is_short") else framework
    query, headers = asked.get("query", b""), asked.get("headers", [])
    body = asked.get("body", b"")
    answers = [
        await answer_of(app, scope_of(method, path, query, headers), body)
        for app in (ShortPath(takes, api.context, ROUTES), framework)
    ]
    assert answers[0] == answers[1]
    return answers[0]


async def published(api: Api) -> str:
    """Creates a status page with a component and returns the slug."""
    there = f"/api/v1/organizations/{api.org}/status-pages"
    body = {"slug": "team", "title": "Team"}
    made = await api.ask("org_admin", "POST", there, {**body, "project_id": str(api.project)})
    page = (await made.json)["id"]
    component = {"name": "Mail", "manual_status": "operational"}
    there = f"/api/v1/status-pages/{page}/components"
    assert (await api.ask("org_admin", "POST", there, component)).status_code == 201
    return "team"


async def push_token(api: Api) -> str:
    body = {"name": "Backup", "type": "push", "interval_seconds": 60}
    made = await api.ask("editor", "POST", f"/api/v1/projects/{api.project}/monitors", body)
    token: str = (await made.json)["push_token"]
    return token


def test_a_short_route_needs_no_form() -> None:
    assert {route.path for route in SHORT} >= {"/healthz", "/status/{slug}"}
    for route in SHORT:
        # A disconnect does not cancel the answer: a user's write stays in the framework.
        is_users = route.action.need not in (Need.NOBODY, Need.AGENT)
        assert not is_users or route.method == "GET", route.path
        assert not route.form, route.path
        assert route.body is None or route.action.need is Need.AGENT, route.path
        assert not route.takes_slugs, route.path


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/status/confirm/badge.svg"),
        ("GET", "/status/unsubscribe/widget"),
        ("GET", "/status/team/subscribe"),
        ("POST", "/status/team"),
    ],
)
async def test_a_path_that_another_route_also_matches_is_for_the_framework(
    api: Api, method: str, path: str
) -> None:
    passed = []

    async def framework(scope: dict[str, Any], *_: Any) -> None:
        passed.append(scope["path"])

    short = ShortPath(framework, api.context, ROUTES)
    unused: Any = trio.sleep_forever
    await short(scope_of(method, path, b"", []), unused, unused)
    assert passed == [path]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_is_answered_at_once(api: Api, path: str) -> None:
    status, headers, body = await expect_same(api, "GET", path, is_short=True)
    assert status == 200
    assert headers[b"content-type"] == b"application/json"
    assert b"status" in body


@pytest.mark.parametrize(
    "path",
    ["", "/badge.svg", "/widget", "/api/v2/summary.json"],
)
async def test_a_public_page_is_answered_at_once(api: Api, path: str) -> None:
    slug = await published(api)
    where = f"/status/{slug}{path}"
    status, headers, _ = await expect_same(api, "GET", where, is_short=True)
    assert status == 200
    again = [(b"if-none-match", headers[b"etag"])]
    status, _, body = await expect_same(api, "GET", where, headers=again, is_short=True)
    assert (status, body) == (304, b"")
    await expect_same(api, "HEAD", where, is_short=True)
    packed = [(b"accept-encoding", b"gzip")]
    await expect_same(api, "GET", where, headers=packed, is_short=True)
    # A request with a body, and one of another method, are for the framework.
    await expect_same(api, "GET", where, body=b"{}", headers=[(b"content-length", b"2")])
    await expect_same(api, "PUT", where)


async def test_a_push_is_recorded_on_the_short_path(api: Api) -> None:
    token = await push_token(api)
    path = f"/api/v1/public/push/{token}"
    status, _, body = await expect_same(
        api, "POST", path, query=b"status=up&msg=ok&ping=12", body=b"0123456789", is_short=True
    )
    assert (status, body[:10]) == (200, b'{"ok":true')
    async with api.pool.transaction("read", read_only=True) as tx:
        stored = await tx.rows("select up, msg, latency_ms from heartbeats")
    assert stored[0] == (True, "ok", 12)
    await expect_same(api, "GET", f"{path}/fail", is_short=True)
    await expect_same(api, "POST", path, query=b"status=up&status=down", is_short=True)
    await expect_same(api, "POST", f"{path}x", is_short=True)
    long = b"x" * 70_000
    length = [(b"content-length", str(len(long)).encode())]
    await expect_same(api, "POST", path, body=long, headers=length, is_short=True)


@pytest.mark.parametrize("who", [*EVERYBODY, "agent"])
async def test_everybody_reads_monitors_as_from_the_framework(api: Api, who: str) -> None:
    token = await push_token(api)
    uid = (await (await api.ask("editor", "GET", monitors(api))).get_json())[0]["id"]
    credential = [
        (name.lower().encode(), value.encode()) for name, value in api.credentials[who].items()
    ]
    packed = [*credential, (b"accept-encoding", b"gzip")]
    for path in (monitors(api), f"/api/v1/monitors/{uid}", f"/api/v1/monitors/{uid}/heartbeats"):
        status, _, body = await expect_same(api, "GET", path, headers=credential, is_short=True)
        assert status == 200 or token.encode() not in body
        await expect_same(api, "GET", path, headers=packed, is_short=True)
        await expect_same(api, "HEAD", path, headers=credential, is_short=True)
        for query in (b"limit=1", b"limit=0", b"limit=1&limit=2", b"cursor=x"):
            asked = {"headers": credential, "query": query}
            await expect_same(api, "GET", path, is_short=True, **asked)


AGENT = [(b"authorization", f"Bearer {AGENT_TOKEN}".encode())]
JSON = (b"content-type", b"application/json")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("heartbeat", b'{"workflow_kinds": ["check_test@1"], "carrier": 3, "version": "1"}'),
        ("heartbeat", b'{"workflow_kinds": 1}'),
        ("heartbeat", b"{"),
        ("results", b'{"results": []}'),
        ("backfill", b'{"results": [{"job_id": "x"}]}'),
        ("tests", b"{}"),
        ("results", b'{"results": ' + b" " * 1_100_000 + b"[]}"),
    ],
)
async def test_an_agent_reports_as_to_the_framework(api: Api, path: str, body: bytes) -> None:
    where = f"/api/v1/agent/{path}"
    length = (b"content-length", str(len(body)).encode())
    for credential in (AGENT, [], [(b"authorization", b"Bearer of nobody")]):
        for query in (b"region=eu", b"region=moon", b""):
            for kind in ([JSON], []):
                asked = {"headers": [*credential, length, *kind], "query": query, "body": body}
                await expect_same(api, "POST", where, is_short=True, **asked)


async def test_an_empty_report_of_an_issued_token_is_refused_at_once(api: Api) -> None:
    """The token is read from the database; meanwhile the watch could take the body."""
    made = await api.ask(
        "global_admin", "POST", "/api/v1/agent-tokens", {"name": "attic", "region": "eu"}
    )
    bearer = (b"authorization", f"Bearer {(await made.get_json())['token']}".encode())
    for path in ("heartbeat", "results", "backfill", "tests"):
        for length in ([], [(b"content-length", b"0")]):
            for _ in range(3):
                asked = {"headers": [bearer, JSON, *length], "query": b"region=eu"}
                with trio.fail_after(60):
                    await expect_same(api, "POST", f"/api/v1/agent/{path}", is_short=True, **asked)


async def test_a_claim_is_answered_as_by_the_framework(api: Api) -> None:
    for query in (b"region=eu&wait=0", b"region=eu&wait=x", b"region=moon&wait=0", b""):
        for credential in (AGENT, []):
            asked = {"headers": credential, "query": query}
            await expect_same(api, "GET", "/api/v1/agent/jobs", is_short=True, **asked)


async def test_a_claim_ends_with_its_connection(api: Api) -> None:
    gone = trio.Event()
    sent: list[Any] = []
    first = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if first:
            return first.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    short = ShortPath(trio.sleep_forever, api.context, ROUTES)  # type: ignore[arg-type]
    scope = scope_of("GET", "/api/v1/agent/jobs", b"region=eu&wait=20", AGENT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(short, scope, receive, send)
        while not api.context.lookout.waiting:
            await trio.lowlevel.checkpoint()
        gone.set()
    assert api.context.lookout.waiting == 0
    assert sent == []


async def test_the_beginning_of_a_body_does_not_pass_for_all_of_it(api: Api) -> None:
    token = await push_token(api)
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"done, but", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(message)

    short = ShortPath(trio.sleep_forever, api.context, ROUTES)  # type: ignore[arg-type]
    headers = [(b"content-length", b"200")]
    await short(scope_of("POST", f"/api/v1/public/push/{token}", b"", headers), receive, send)
    assert await api.rows("select from heartbeats") == []


def monitors(api: Api) -> str:
    return f"/api/v1/projects/{api.project}/monitors"


async def test_any_request_gets_the_answer_of_the_framework(api: Api) -> None:
    token = await push_token(api)
    await published(api)
    requests = []

    @settings(
        max_examples=examples(400),
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        st.tuples(
            st.sampled_from(SHORT),
            st.lists(st.sampled_from([*SEGMENTS, token]), min_size=3, max_size=3),
            st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"]),
            st.lists(st.tuples(st.sampled_from(FIELDS), TEXTS | st.binary(max_size=4)), max_size=4),
            st.sampled_from(["", "text/html", "*/*"]),
            st.binary(max_size=12),
        )
    )
    def draw(drawn: tuple[Any, ...]) -> None:
        requests.append(drawn)

    draw()
    framework = make_app(api.context, ROUTES)
    for route, segments, method, fields, accept, body in requests:
        path = route.path
        for name, segment in zip(route.parameters, segments, strict=False):
            path = path.replace(f"{{{name}}}", segment)
        query = "&".join(
            f"{name}={quote_from_bytes(text if isinstance(text, bytes) else text.encode())}"
            for name, text in fields
        )
        headers = [(b"content-length", str(len(body)).encode())] if body else []
        if accept:
            headers.append((b"accept", accept.encode()))
        asked = {"query": query.encode(), "headers": headers, "body": body}
        await expect_same(api, method, path, framework=framework, **asked)
