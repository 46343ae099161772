"""A body is accepted as documented or refused with one field, and a refusal changes nothing."""

import logging
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from leadline.http.server.route_table import ROUTES
from leadline.http.wire.route import Route
from leadline.storage.accounts.rules.access import Need, Role
from leadline.storage.core.decode_error import field_fault
from tests.support.app.cast import Api

INVALID = "invalid JSON body"
# Every route with a body, called by a user with the permission.
BODIED = [route for route in ROUTES if route.body is not None]

# The sender can extend this body. tests/incidents/test_alertmanager_api.py tests its unknown
# fields.
PASSES_OVER = "/alerts/alertmanager"
UNKNOWN_FIELD = (b'{"nobody', b'{"name"')


async def path_of(api: Api, route: Route) -> str:
    """Returns the path of the route, and creates the objects that it names."""
    path = route.path
    if "{channelID}" in path:
        path = path.replace("{channelID}", str(await api.new_channel()))
    if "{templateID}" in path:
        path = path.replace("{templateID}", str(await api.new_incident_template()))
    if "{muteID}" in path:
        path = path.replace("{muteID}", str(await api.new_mute()))
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
    if "{tokenID}" in path:
        path = path.replace("{tokenID}", str(await api.new_token()))
    if "{methodID}" in path:
        path = path.replace("{methodID}", str(await api.new_contact_method("global_admin")))
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


async def error_of(response: Any) -> tuple[int, str]:
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


# Routes that ask one application: to make it costs more than the answers to one route.
SHARES = [BODIED[first : first + 8] for first in range(0, len(BODIED), 8)]


@pytest.mark.parametrize("routes", SHARES, ids=lambda routes: f"{routes[0].path} and more")
async def test_every_route_refuses_malformed_bodies(api: Api, routes: list[Route]) -> None:
    for route in routes:
        await _refuses_malformed_bodies(api, route)


async def _refuses_malformed_bodies(api: Api, route: Route) -> None:
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
        answer = await error_of(await send(api, route, path, data))
        assert answer == (400, INVALID), (path, data[:40])
    for data in (b"[]", b"1", b'"x"', b"null", b"true"):
        status, error = await error_of(await send(api, route, path, data))
        assert status == 400, (path, data)
        assert error, (path, data)
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        response = await send(api, route, path, b"{}", kind)
        assert await error_of(response) == (415, "unsupported_media_type"), (path, kind)
    large = b'{"name": "' + b"x" * route.body_largest + b'"}'
    assert await error_of(await send(api, route, path, large)) == (413, "body_too_large"), path
    assert await everything(api) == before, path


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_content_type_variants_are_accepted(api: Api, kind: str) -> None:
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
    assert await error_of(await api.ask("org_admin", "POST", path, body)) == (400, error)


@pytest.mark.parametrize(
    ("who", "headers", "data", "status"),
    [
        # Each request also has all later faults: the first fault in the order is reported.
        ("nobody", {"Sec-Fetch-Site": "cross-site"}, b"x" * (2 << 20), 401),
        ("viewer", {"Sec-Fetch-Site": "cross-site"}, b"x" * (2 << 20), 403),
        ("stranger", {}, b"x" * (1 << 20), 404),
        ("viewer", {}, b"x" * (1 << 20), 403),
        ("org_admin", {}, b"x" * ((1 << 20) + 1), 415),
        ("org_admin", {"Content-Type": "application/json"}, b"x" * ((1 << 20) + 1), 413),
        ("org_admin", {"Content-Type": "application/json"}, b"x", 400),
    ],
)
async def test_the_first_fault_in_the_order_is_reported(
    api: Api, who: str, headers: dict[str, str], data: bytes, status: int
) -> None:
    path = f"/api/v1/organizations/{api.org}/projects"
    response = await api.ask(who, "POST", path, data=data, headers=headers)
    assert response.status_code == status


async def test_an_unknown_route_is_404_and_an_unknown_method_is_405(api: Api) -> None:
    for path in ("/api/v1/nothing", "/api/v1/me/", "/api/v1//me", "/api/v2/me", "/auth/nothing"):
        response = await api.ask("viewer", "GET", path)
        assert await error_of(response) == (404, "not_found"), path
    for who in ("nobody", "viewer"):
        for method in ("PUT", "POST", "DELETE", "OPTIONS", "TRACE"):
            response = await api.ask(who, method, "/api/v1/me")
            assert await error_of(response) == (405, "method_not_allowed"), method
            assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}


async def test_head_has_the_headers_of_get(api: Api) -> None:
    """The test client shows the body that the server will omit; the headers are equal."""
    get, head = [await api.ask("viewer", method, "/api/v1/me") for method in ("GET", "HEAD")]
    assert head.status_code == 200
    assert dict(head.headers) == dict(get.headers)


async def test_responses_are_not_cacheable(api: Api) -> None:
    for who, path in (("viewer", "/api/v1/me"), ("nobody", "/api/v1/me")):
        response = await api.ask(who, "GET", path)
        assert response.headers["Cache-Control"] == "no-store"


class Step(msgspec.Struct):
    kind: Literal["a", "b"] | UnsetType = UNSET


class First(msgspec.Struct, tag="first"):
    role: Annotated[Role, msgspec.Meta(description="x")] | None = None


class Second(msgspec.Struct, tag="second"):
    steps: list[Step] = []
    named: dict[str, Step] = {}


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b'{"kind": "z"}', Step, ("kind", "must be one of a, b")),
        (b'{"type": "z"}', First | Second, ("type", "must be one of first, second")),
        (
            b'{"type": "first", "role": "z"}',
            First | Second,
            ("role", "must be one of viewer, editor, project_admin, org_admin"),
        ),
        (
            b'{"type": "second", "steps": [{}, {"kind": 1}]}',
            First | Second,
            ("steps[1].kind", "expected `str`, got `int`".replace("`", "")),
        ),
        (
            b'{"type": "second", "steps": [{}, {"kind": "z"}]}',
            First | Second,
            ("steps[1].kind", "must be one of a, b"),
        ),
        (
            b'{"type": "second", "named": {"x": {"kind": "z"}}}',
            First | Second,
            ("named[...].kind", "must be one of a, b"),
        ),
    ],
)
def test_a_refused_value_is_answered_with_its_path_and_what_is_allowed(
    body: bytes, kind: Any, said: tuple[str, str]
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)
    assert field_fault(str(caught.value), kind) == said


async def test_the_access_log_names_the_field_of_an_invalid_body(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "leadline.access")
    path = f"/api/v1/projects/{api.project}/services"
    answer = await api.ask("editor", "POST", path, {"slug": "a", "managed_by": "files"})
    assert await answer.get_json() == {"error": INVALID}
    (record,) = [one for one in caplog.records if one.levelno == logging.DEBUG]
    seen = vars(record)
    caplog.clear()
    await api.ask("editor", "POST", path, {"slug": "a", "Hunter2.x": "y"})
    (other,) = [one for one in caplog.records if one.levelno == logging.DEBUG]
    assert vars(other)["field"] == ""
    assert "Hunter2" not in str(vars(other))
    assert record.message == INVALID
    assert (seen["field"], seen["fault"]) == ("managed_by", "is not known here")
    assert seen["route"] == "/api/v1/projects/{projectID}/services"
