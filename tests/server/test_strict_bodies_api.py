"""What is sent is taken as it is meant or refused with one field, and a refusal changes nothing."""

from typing import Any

import pytest

from leadline.http.server.route_table import ROUTES
from leadline.http.wire.route import Route
from leadline.storage.accounts.rules.access import Need
from tests.support.app.cast import Api

INVALID = "invalid JSON body"
# Every route that takes a body, by somebody who may call it.
BODIED = [route for route in ROUTES if route.body is not None]

# The one body that its owner may extend. Its unknown fields are the subject of
# tests/incidents/test_alertmanager_api.py.
PASSES_OVER = "/alerts/alertmanager"
UNKNOWN_FIELD = (b'{"nobody', b'{"name"')


async def path_of(api: Api, route: Route) -> str:
    """Returns the path of the route, after making what it names."""
    path = route.path
    if "{channelID}" in path:
        path = path.replace("{channelID}", str(await api.new_channel()))
    if "{webhookID}" in path:
        path = path.replace("{webhookID}", str(await api.new_webhook()))
    if "{monitorID}" in path:
        path = path.replace("{monitorID}", str((await api.new_monitor()).uid))
    if "{incidentID}" in path:
        path = path.replace("{incidentID}", str(await api.new_incident()))
    if "{serviceID}" in path:
        path = path.replace("{serviceID}", str(await api.new_service()))
    if "{policyID}" in path:
        path = path.replace("{policyID}", str(await api.new_policy()))
    if "{scheduleID}" in path:
        path = path.replace("{scheduleID}", str(await api.new_schedule()))
    if "{maintenanceID}" in path:
        path = path.replace("{maintenanceID}", str(await api.new_maintenance()))
    if "{seriesID}" in path:
        path = path.replace("{seriesID}", str(await api.new_series()))
    if "{pageID}" in path:
        path = path.replace("{pageID}", str(await api.new_status_page()))
    if "{componentID}" in path:
        path = path.replace("{componentID}", str(await api.new_component()))
    if "{membershipID}" in path:
        path = path.replace("{membershipID}", str(await api.new_membership()))
    if "{userID}" in path:
        path = path.replace("{userID}", str(api.users["viewer"][1]))
    return path.replace("{orgID}", str(api.org)).replace("{projectID}", str(api.project))


async def send(
    api: Api,
    route: Route,
    path: str,
    data: bytes,
    content_type: str | None = "application/json",
    **headers: str,
) -> Any:
    if content_type is not None:
        headers["Content-Type"] = content_type
    if route.action.need is Need.AGENT:
        return await api.ask("agent", route.method, f"{path}?region=eu", data=data, headers=headers)
    return await api.ask("global_admin", route.method, path, data=data, headers=headers)


async def told(response: Any) -> tuple[int, str]:
    body = await response.get_json()
    assert list(body) == ["error"]
    return response.status_code, body["error"]


async def everything(api: Api) -> Any:
    return [
        await api.rows(f"select t::text from {table} t order by 1")
        for table in (
            "organizations",
            "projects",
            "users",
            "memberships",
            "api_tokens",
            "agent_tokens",
        )
    ]


@pytest.mark.parametrize("route", BODIED, ids=lambda r: f"{r.method} {r.path}")
async def test_every_body_is_refused_for_what_it_is_not(api: Api, route: Route) -> None:
    path = await path_of(api, route)
    before = await everything(api)
    undecodable = [
        b"",
        b"{",
        b"null garbage",
        b'{"a": }',
        b"{'a': 1}",
        b'{"nobody_knows_this": 1}',
        b'{"name": "\xff\xfe"}',
        b'{"name": "a\\u0000b"}',
        b'{"name": "a\x00b"}',
        b'{"name": "\\ud800"}',
        b"[" * 60_000,
        b'{"a":' * 12_000,
    ]
    for data in undecodable:
        if route.body_optional and not data:
            continue
        if route.path.endswith(PASSES_OVER) and data.startswith(UNKNOWN_FIELD):
            continue
        assert await told(await send(api, route, path, data)) == (400, INVALID), data[:40]
    for data in (b"[]", b"1", b'"x"', b"null", b"true"):
        status, error = await told(await send(api, route, path, data))
        assert status == 400, data
        assert error, data
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        response = await send(api, route, path, b"{}", kind)
        assert await told(response) == (415, "unsupported_media_type"), kind
    large = b'{"name": "' + b"x" * route.body_largest + b'"}'
    assert await told(await send(api, route, path, large)) == (413, "body_too_large")
    assert await everything(api) == before


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_is_json_however_it_is_spelt(api: Api, kind: str) -> None:
    path = f"/api/v1/organizations/{api.org}"
    data = b'{"name": "Acme"}'
    response = await api.ask("org_admin", "PATCH", path, data=data, headers={"Content-Type": kind})
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"slug": 1, "name": "x"}, "slug: expected str, got int"),
        ({"slug": "x", "name": None}, "name: expected str, got null"),
        ({"slug": "x", "name": ["x"]}, "name: expected str, got array"),
        ({"slug": "x"}, "name: is required"),
        ({"slug": "x", "name": ""}, "name: expected str of length >= 1"),
        ({"slug": "x", "name": "x", "id": 1}, INVALID),
        ({"slug": "x", "name": "x", "Name": "x"}, INVALID),
    ],
)
async def test_a_wrong_type_or_a_bad_value_names_its_field(api: Api, body: Any, error: str) -> None:
    path = f"/api/v1/organizations/{api.org}/projects"
    assert await told(await api.ask("org_admin", "POST", path, body)) == (400, error)


@pytest.mark.parametrize(
    ("who", "headers", "data", "status"),
    [
        # Each has every later fault too: the first in the order is told.
        ("nobody", {"Sec-Fetch-Site": "cross-site"}, b"x" * (2 << 20), 401),
        ("viewer", {"Sec-Fetch-Site": "cross-site"}, b"x" * (2 << 20), 403),
        ("stranger", {}, b"x" * (1 << 20), 404),
        ("viewer", {}, b"x" * (1 << 20), 403),
        ("org_admin", {}, b"x" * ((1 << 20) + 1), 415),
        ("org_admin", {"Content-Type": "application/json"}, b"x" * ((1 << 20) + 1), 413),
        ("org_admin", {"Content-Type": "application/json"}, b"x", 400),
    ],
)
async def test_the_first_refusal_in_the_order_is_the_one_that_is_told(
    api: Api, who: str, headers: dict[str, str], data: bytes, status: int
) -> None:
    path = f"/api/v1/organizations/{api.org}/projects"
    response = await api.ask(who, "POST", path, data=data, headers=headers)
    assert response.status_code == status


async def test_what_is_no_route_is_a_404_and_what_is_no_method_of_it_a_405(api: Api) -> None:
    for path in ("/api/v1/nothing", "/api/v1/me/", "/api/v1//me", "/api/v2/me", "/auth/nothing"):
        response = await api.ask("viewer", "GET", path)
        assert await told(response) == (404, "not_found"), path
    for who in ("nobody", "viewer"):
        for method in ("PUT", "POST", "DELETE", "OPTIONS", "TRACE"):
            response = await api.ask(who, method, "/api/v1/me")
            assert await told(response) == (405, "method_not_allowed"), method
            assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}


async def test_head_is_answered_as_get_is(api: Api) -> None:
    """The test client shows what the server will leave out; what it says of it is the same."""
    get, head = [await api.ask("viewer", method, "/api/v1/me") for method in ("GET", "HEAD")]
    assert head.status_code == 200
    assert dict(head.headers) == dict(get.headers)


async def test_no_answer_is_kept_by_a_cache(api: Api) -> None:
    for who, path in (("viewer", "/api/v1/me"), ("nobody", "/api/v1/me")):
        response = await api.ask(who, "GET", path)
        assert response.headers["Cache-Control"] == "no-store"
