"""Every route × everybody, through the real app: 401, 404, 403 or an answer, and in that order.

Who may do what is written down a second time here, in the letters of the interface, and judged by
rules of this file's own: neither the route table nor rules/access is believed.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.http.route import Route
from leadline.http.table import ROUTES
from tests.http.cast import PEOPLE, TOKENS, Api

# As the interface has them. /auth and /public ask nobody.
STATED = """
* GET /me
* GET /version
S POST /me/password
* GET /openapi.json
S GET /me/sessions
S DELETE /me/sessions/{sessionID}
* GET /organizations
G POST /organizations
V GET /organizations/{orgID}
O PATCH /organizations/{orgID}
G DELETE /organizations/{orgID}
V GET /organizations/{orgID}/projects
O POST /organizations/{orgID}/projects
O GET /organizations/{orgID}/members
O POST /organizations/{orgID}/members
O GET /organizations/{orgID}/audit
O PATCH /organizations/{orgID}/members/{membershipID}
O DELETE /organizations/{orgID}/members/{membershipID}
V GET /projects/{projectID}
O PATCH /projects/{projectID}
O DELETE /projects/{projectID}
O GET /organizations/{orgID}/tokens
O POST /organizations/{orgID}/tokens
O DELETE /tokens/{tokenID}
* GET /regions
V GET /projects/{projectID}/monitors
E POST /projects/{projectID}/monitors
E POST /projects/{projectID}/monitors/test
V GET /monitors/{monitorID}
E PATCH /monitors/{monitorID}
E DELETE /monitors/{monitorID}
V GET /monitors/{monitorID}/heartbeats
V GET /monitors/{monitorID}/latency
V GET /monitors/{monitorID}/availability
E POST /monitors/{monitorID}/check
E POST /monitors/{monitorID}/push-token
V GET /projects/{projectID}/monitors/{monitorID}/expected-runs
V GET /projects/{projectID}/secrets
E POST /projects/{projectID}/secrets
E PATCH /projects/{projectID}/secrets/{name}
E DELETE /projects/{projectID}/secrets/{name}
O GET /organizations/{orgID}/webhooks
O POST /organizations/{orgID}/webhooks
O PATCH /webhooks/{webhookID}
O DELETE /webhooks/{webhookID}
O POST /webhooks/{webhookID}/test
V GET /projects/{projectID}/notification-channels
E POST /projects/{projectID}/notification-channels
E PATCH /notification-channels/{channelID}
E DELETE /notification-channels/{channelID}
E POST /notification-channels/{channelID}/test
V GET /monitors/{monitorID}/notifications
E POST /monitors/{monitorID}/notifications
E DELETE /monitors/{monitorID}/notifications/{channelID}
* GET /search
* GET /events
G GET /admin/audit
G GET /admin/users
G POST /admin/users
G PATCH /admin/users/{userID}
G DELETE /admin/users/{userID}
"""
LETTERS = {
    (method, f"/api/v1{path}"): letter
    for letter, method, path in (line.split() for line in STATED.strip().splitlines())
}
LADDER = ["viewer", "editor", "project_admin", "org_admin"]
LEAST = {"V": "viewer", "E": "editor", "A": "project_admin", "O": "org_admin"}
# What a token narrowed by its actions may still do, whatever its role.
FOR_NARROW_TOKENS = {("GET", "/api/v1/me"), ("GET", "/api/v1/version")}
MAKES_TOKENS = ("POST", "/api/v1/organizations/{orgID}/tokens")
# Pages have a matrix of their own: they answer people, with pages and with ways to the sign-in.
API = [route for route in ROUTES if not route.page]
ASKED = [route for route in API if route.action.need.value != "-"]
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/organizations"): {"slug": "new-{n}", "name": "New"},
    ("PATCH", "/organizations/{orgID}"): {"name": "Renamed"},
    ("POST", "/organizations/{orgID}/projects"): {"slug": "new-{n}", "name": "New"},
    ("PATCH", "/projects/{projectID}"): {"name": "Renamed"},
    ("POST", "/organizations/{orgID}/members"): {"email": "someone-{n}@x", "role": "viewer"},
    ("PATCH", "/organizations/{orgID}/members/{membershipID}"): {"role": "editor"},
    ("POST", "/organizations/{orgID}/tokens"): {"name": "ci", "role": "viewer"},
    ("POST", "/admin/users"): {"email": "new-{n}@example.com"},
    ("PATCH", "/admin/users/{userID}"): {"is_global_admin": True},
    ("POST", "/me/password"): {"current_password": "x" * 12, "new_password": "y" * 12},
    ("POST", "/projects/{projectID}/monitors"): {"name": "new {n}", "type": "push"},
    ("POST", "/projects/{projectID}/monitors/test"): {
        "name": "new",
        "type": "tcp",
        "target": "127.0.0.1:1",
    },
    ("PATCH", "/monitors/{monitorID}"): {"name": "renamed {n}"},
    ("POST", "/projects/{projectID}/secrets"): {"name": "new-{n}", "value": "v"},
    ("PATCH", "/projects/{projectID}/secrets/{name}"): {"value": "w"},
    ("POST", "/organizations/{orgID}/webhooks"): {"url": "https://hook.example.com/"},
    ("PATCH", "/webhooks/{webhookID}"): {"enabled": False},
    ("POST", "/projects/{projectID}/notification-channels"): {
        "type": "webhook",
        "name": "hook",
        "config": {"url": "https://hook.example.com/"},
    },
    ("PATCH", "/notification-channels/{channelID}"): {"name": "renamed"},
    ("POST", "/monitors/{monitorID}/notifications"): {"channel_id": "{channelID}"},
}
QUERIES: dict[str, dict[str, str]] = {
    "/search": {"q": "shop"},
    "/monitors/{monitorID}/latency": {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
    },
}
# Admitted, and then refused for what it asks: the cast has no passwords, and what is in use stays.
REFUSED_LATER = {
    ("POST", "/me/password"): 400,
    ("DELETE", "/organizations/{orgID}"): 409,
    ("DELETE", "/projects/{projectID}"): 409,
}


def stated(who: str, method: str, path: str) -> int:
    """The status by the text; 0 where an answer is due."""
    letter = LETTERS[method, path]
    if who == "nobody":
        return 401
    hidden = _is_hidden(who, path)
    if hidden:
        return 404
    narrow = who in TOKENS and TOKENS[who][3] is not None
    if narrow and (method, path) not in FOR_NARROW_TOKENS:
        return 403
    if who in TOKENS and (method, path) == MAKES_TOKENS:
        return 403
    if letter == "S" and who not in PEOPLE:
        return 403
    if letter == "G" and who != "global_admin":
        return 403
    if letter in LEAST and _rank(who, path) < LADDER.index(LEAST[letter]):
        return 403
    return 0


def _membership(who: str) -> tuple[str, str | None, str] | None:
    if who in TOKENS:
        tenant, project, role, _ = TOKENS[who]
        return tenant, project, role.value
    place = PEOPLE[who]
    return (place[0], place[1], place[2].value) if place else None


def _scope(path: str) -> str:
    """What the path names, of what the ids in it stand for: all are Acme's, and its shop's."""
    if any(name in path for name in ("{orgID}", "{tokenID}", "{webhookID}")):
        return "organization"
    in_shop = any(name in path for name in ("{projectID}", "{monitorID}", "{channelID}"))
    return "shop" if in_shop else ""


def _is_hidden(who: str, path: str) -> bool:
    if not _scope(path) or who == "global_admin":
        return False
    found = _membership(who)
    if found is None or found[0] != "acme":
        return True
    return _scope(path) == "shop" and found[1] not in (None, "shop")


def _rank(who: str, path: str) -> int:
    if who == "global_admin":
        return LADDER.index("org_admin")
    found = _membership(who)
    assert found is not None
    _, project, role = found
    # On the organization itself only its org_admin is more than somebody who sees it.
    if _scope(path) == "organization" and (project or role != "org_admin"):
        return LADDER.index("viewer")
    return LADDER.index(role)


def test_the_table_holds_exactly_the_routes_that_are_stated_with_their_letters() -> None:
    told = {(r.method, r.path): r.action.need.value for r in ASKED}
    assert told == LETTERS


def test_what_asks_for_no_credential_stands_apart() -> None:
    open_paths = {r.path for r in API if r not in ASKED}
    assert all(path.startswith(("/auth/", "/api/v1/public/")) for path in open_paths)


async def _ids(api: Api, who: str, path: str) -> dict[str, UUID | str]:
    """Fresh ones of what a write may remove."""
    owner = who if who in PEOPLE else "viewer"
    kind = {"type": "push", "target": ""} if path.endswith("/push-token") else {}
    monitor, channel = (await api.new_monitor(**kind)).uid, await api.new_channel()
    if path.endswith("/notifications/{channelID}"):
        await api.attach(monitor, channel)
    return {
        "orgID": api.org,
        "projectID": api.project,
        "membershipID": await api.new_membership(),
        "tokenID": await api.new_token(),
        "sessionID": (await api.new_session(owner))[0],
        "userID": await api.new_user(),
        "monitorID": monitor,
        "channelID": channel,
        "webhookID": await api.new_webhook(),
        "name": await api.new_secret(),
    }


def _filled(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, number) for key, inner in value.items()}
    return value.replace("{n}", str(number)) if isinstance(value, str) else value


async def _call(api: Api, who: str, route: Route, ids: Mapping[str, UUID | str]) -> Any:
    number = next(api.numbers)
    path = route.path
    for name, uid in ids.items():
        path = path.replace(f"{{{name}}}", str(uid))
    short = route.path.removeprefix("/api/v1")
    body = _filled(BODIES.get((route.method, short)), number)
    if body is not None and "channel_id" in body:
        body = {"channel_id": str(ids["channelID"])}
    if short == "/organizations/{orgID}/members" and route.method == "POST":
        await api.new_user(f"someone-{number}@x")
    # A stream would not end by itself; HEAD is its GET without it.
    method = "HEAD" if short == "/events" else route.method
    return await api.ask(who, method, path, body, query=QUERIES.get(short))


@pytest.mark.parametrize("route", ASKED, ids=lambda route: f"{route.method} {route.path}")
async def test_everybody_gets_the_answer_that_the_text_gives(api: Api, route: Route) -> None:
    short = route.path.removeprefix("/api/v1")
    await api.new_monitor()
    for who in ["nobody", *PEOPLE, *TOKENS]:
        ids = await _ids(api, who, route.path)
        audited = await api.rows("select count(*) from audit_entries")
        response = await _call(api, who, route, ids)
        expected = stated(who, route.method, route.path) or REFUSED_LATER.get(
            (route.method, short), route.status
        )
        assert response.status_code == expected, (who, await response.get_data())
        if response.status_code >= 400:
            assert await api.rows("select count(*) from audit_entries") == audited, who
            assert list(await response.get_json()) == ["error"]


@pytest.mark.parametrize(
    "route",
    [route for route in ASKED if _scope(route.path)],
    ids=lambda route: f"{route.method} {route.path}",
)
async def test_a_stranger_cannot_tell_what_exists_from_what_does_not(
    api: Api, route: Route
) -> None:
    ids = await _ids(api, "stranger", route.path)
    nowhere: dict[str, UUID | str] = {name: uuid7() for name in ids}
    answers = [
        await _call(api, who, route, where)
        for who, where in [
            ("stranger", ids),
            ("stranger", nowhere),
            ("org_admin", nowhere),
            ("global_admin", nowhere),
            ("foreign_token", ids),
            ("foreign_token", nowhere),
        ]
    ]
    seen = {(a.status_code, await a.get_data(), tuple(sorted(a.headers.items()))) for a in answers}
    assert len(seen) == 1
    assert next(iter(seen))[:2] == (404, b'{"error":"not_found"}')


@pytest.mark.parametrize("bad", ["1", "not-a-uuid", "{uid}x", "{hex}", "%00", "..%2f.."])
async def test_an_id_that_is_none_is_a_404(api: Api, bad: str) -> None:
    text = bad.replace("{uid}", str(api.org)).replace("{hex}", api.org.hex)
    response = await api.ask("org_admin", "GET", f"/api/v1/organizations/{text}")
    assert response.status_code == 404
    assert await response.get_data() == b'{"error":"not_found"}'


async def test_a_membership_of_another_organization_is_not_found_under_this_one(api: Api) -> None:
    membership = await api.new_membership()
    for method, body in (("PATCH", {"role": "editor"}), ("DELETE", None)):
        path = f"/api/v1/organizations/{api.orgs['other'][1]}/members/{membership}"
        response = await api.ask("stranger", method, path, body)
        assert response.status_code == 404
    assert await api.rows("select role::text from memberships where uid = %(u)s", u=membership) == [
        ("viewer",)
    ]


async def test_a_monitor_is_not_found_under_a_project_that_it_is_not_in(api: Api) -> None:
    monitor = (await api.new_monitor()).uid
    for place in ("acme/mill", "other/shop"):
        path = f"/api/v1/projects/{api.projects[place][1]}/monitors/{monitor}/expected-runs"
        assert (await api.ask("org_admin", "GET", path)).status_code == 404, place
