"""API tokens, the audit logs, finding, and the regions."""

from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.storage.accounts.tables.api_tokens import purge_expired_tokens
from leadline.storage.core.instant import SECOND, Instant, to_text
from leadline.storage.core.token import TokenKind, digest, kind_of
from leadline.storage.scheduling.tables import presences
from tests.support.app.cast import Api


async def make_token(api: Api, who: str = "org_admin", **body: Any) -> Any:
    path = f"/api/v1/organizations/{api.org}/tokens"
    return await api.ask(who, "POST", path, {"name": "ci", "role": "editor", **body})


async def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, (await response.get_json())["error"]


async def test_the_secret_of_a_token_is_shown_once_and_kept_nowhere(api: Api) -> None:
    response = await make_token(api)
    assert response.status_code == 201
    made = await response.get_json()
    token = made["token"]
    assert kind_of(token) is TokenKind.API
    assert {k: made["api_token"][k] for k in ("name", "role", "actions", "created_by_email")} == {
        "name": "ci",
        "role": "editor",
        "actions": None,
        "created_by_email": "org_admin@example.com",
    }
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/tokens")
    assert made["api_token"] in await listed.get_json()
    assert token not in str(await listed.get_json())
    stored = await api.rows("select t::text, token_hash from api_tokens t")
    assert not any(token in row[0] for row in stored)
    assert digest(token) in [bytes(row[1]) for row in stored]


async def test_a_token_has_the_rights_of_its_role_until_its_revocation(api: Api) -> None:
    made = await (await make_token(api, project_id=str(api.project))).get_json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert (await api.ask(bearer, "GET", f"/api/v1/projects/{api.project}")).status_code == 200
    mill = f"/api/v1/projects/{api.projects['acme/mill'][1]}"
    assert (await api.ask(bearer, "GET", mill)).status_code == 404
    used = await api.rows(
        "select last_used_at from api_tokens where uid = %(u)s", u=UUID(made["api_token"]["id"])
    )
    assert used == [(api.context.clock(),)]
    path = f"/api/v1/tokens/{made['api_token']['id']}"
    assert (await api.ask("org_admin", "DELETE", path)).status_code == 204
    assert (await api.ask(bearer, "GET", "/api/v1/me")).status_code == 401
    assert (await api.ask("org_admin", "DELETE", path)).status_code == 404


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"actions": []}, "action_unknown"),
        ({"actions": ["gate:evaluate", "monitor:write"]}, "action_unknown"),
        ({"actions": ["change:record"], "role": "viewer"}, "action_not_granted"),
        (
            {"role": "org_admin", "project_id": "shop"},
            "project_id: must be omitted for org_admin, whose scope is the organization",
        ),
        ({"project_id": "foreign"}, "project_id: is not a project of this organization"),
        ({"project_id": "missing"}, "project_id: is not a project of this organization"),
        ({"name": " "}, "name: must not be blank"),
    ],
)
async def test_a_token_that_cannot_be_is_refused(api: Api, body: Any, error: str) -> None:
    places = {"shop": api.project, "foreign": api.projects["other/shop"][1], "missing": uuid7()}
    if "project_id" in body:
        body = {**body, "project_id": str(places[body["project_id"]])}
    before = await api.rows("select count(*) from api_tokens")
    assert await error_of(await make_token(api, **body)) == (400, error)
    assert await api.rows("select count(*) from api_tokens") == before


@pytest.mark.parametrize("actions", [["gate:evaluate"], ["change:record", "gate:evaluate"], None])
async def test_actions_are_kept_as_they_were_given(api: Api, actions: Any) -> None:
    response = await make_token(api, actions=actions)
    assert (await response.get_json())["api_token"]["actions"] == actions


async def test_a_token_cannot_create_a_token_with_any_role(api: Api) -> None:
    assert (await make_token(api, "token")).status_code == 403


async def test_each_write_has_one_audit_row_with_its_actor_and_without_the_body(api: Api) -> None:
    org = f"/api/v1/organizations/{api.org}"
    await api.ask("org_admin", "PATCH", org, {"name": "Secret name"})
    project = await api.ask("token", "POST", f"{org}/projects", {"slug": "third", "name": "Third"})
    uid = (await project.get_json())["id"]
    await make_token(api)
    entries = await (await api.ask("org_admin", "GET", f"{org}/audit")).get_json()
    assert [(e["action"], e["actor_name"], e["via_token"]) for e in entries] == [
        ("token.create", "org_admin", False),
        ("project.create", "t", True),
        ("organization.update", "org_admin", False),
    ]
    assert entries[1]["target"] == f"project:{uid} slug=third"
    assert entries[2]["org_id"] == str(api.org)
    assert entries[2]["actor_user_id"] == str(api.users["org_admin"][1])
    assert entries[2]["actor_email"] == "org_admin@example.com"
    assert "Secret" not in str(entries)
    # Entries of an organization are not in the log of the installation, and the reverse.
    body = {"email": "new@example.com"}
    assert (await api.ask("global_admin", "POST", "/api/v1/admin/users", body)).status_code == 201
    instance = await (await api.ask("global_admin", "GET", "/api/v1/admin/audit")).get_json()
    assert [(e["action"], e["actor_name"]) for e in instance] == [("user.create", "global_admin")]
    assert "org_id" not in instance[0]


async def test_the_audit_log_is_as_long_as_asked_for_and_never_over_500(api: Api) -> None:
    path = f"/api/v1/organizations/{api.org}/audit"
    async with api.pool.transaction("many") as tx:
        await tx.execute(
            "insert into audit_entries (org, uid, actor_label, via_token, action, target, "
            "created_at) select %(org)s, gen_random_uuid(), 'x', false, 'a.b', n::text, "
            "at(%(now)s) from generate_series(1, 510) n",
            org=api.orgs["acme"][0],
            now=tx.now,
        )

    async def targets(limit: str | None) -> list[str]:
        query = None if limit is None else {"limit": limit}
        response = await api.ask("org_admin", "GET", path, query=query)
        assert response.status_code == 200
        return [entry["target"] for entry in await response.get_json()]

    assert await targets("2") == ["510", "509"]
    assert len(await targets(None)) == 100
    assert len(await targets("500")) == len(await targets("9" * 30)) == 500
    for bad in ("0", "-1"):
        response = await api.ask("org_admin", "GET", path, query={"limit": bad})
        assert await error_of(response) == (400, "limit_invalid")
    found, following = [], f"{path}?limit=200"
    while following:
        response = await api.ask("org_admin", "GET", following)
        found += [entry["target"] for entry in await response.get_json()]
        link = response.headers.get("Link", "")
        following = f"/api/{link.partition('/api/')[2].partition('>')[0]}" if link else ""
    assert found == [str(number) for number in range(510, 0, -1)]
    of_mine = await api.ask("org_admin", "GET", f"{path}?limit=1")
    foreign = of_mine.headers["Link"].partition("cursor=")[2].partition(">")[0]
    response = await api.ask("global_admin", "GET", f"/api/v1/admin/audit?cursor={foreign}")
    assert await error_of(response) == (400, "cursor_invalid")
    for bad in ("x", "", "1.5"):
        response = await api.ask("org_admin", "GET", path, query={"limit": bad})
        assert response.status_code == 400
    response = await api.ask("org_admin", "GET", f"{path}?limit=1&limit=2")
    assert response.status_code == 400
    assert (await api.ask("org_admin", "GET", f"{path}?limit=1&other=1")).status_code == 200


async def find(api: Api, who: str, q: str) -> set[tuple[str, str, str]]:
    response = await api.ask(who, "GET", "/api/v1/search", query={"q": q})
    assert response.status_code == 200
    found = await response.get_json()
    assert found["query"] == q
    return {(hit["type"], hit["label"], hit["sub"]) for hit in found["hits"]}


async def test_only_what_one_sees_is_found(api: Api) -> None:
    for project in ("acme/shop", "acme/mill", "other/shop"):
        await api.new_monitor(project, name=f"Needle {project}")
    needles = {
        p: ("monitor", f"Needle {p}", p.replace("/", " "))
        for p in ("acme/shop", "acme/mill", "other/shop")
    }
    for who, expected in {
        "viewer": ["acme/shop", "acme/mill"],
        "neighbour": ["acme/mill"],
        "shop_token": ["acme/shop"],
        "stranger": ["other/shop"],
        "global_admin": list(needles),
    }.items():
        assert await find(api, who, "needle") == {needles[p] for p in expected}, who
    assert await find(api, "neighbour", "SHOP") == set()
    assert ("project", "acme shop", "Acme") in await find(api, "viewer", "SHOP")


async def test_a_search_text_is_not_a_pattern(api: Api) -> None:
    await api.new_monitor(name="100% sure_thing")
    assert len(await find(api, "viewer", "0% s")) == 1
    for pattern in ("%%", "__", "1_0", ".*", "'; --", "\\%"):
        assert await find(api, "viewer", pattern) == set(), pattern


async def test_a_search_takes_two_characters(api: Api) -> None:
    for query in ({"q": "x"}, {"q": ""}, {}, {"q": "x" * 201}, {"q": "\0x"}, {"q": "\0"}):
        response = await api.ask("viewer", "GET", "/api/v1/search", query=query)
        assert response.status_code == 400, query
        assert (await response.get_json())["error"].startswith("q: "), query


async def test_a_region_is_live_while_a_prober_runs_there(api: Api) -> None:
    now = api.context.clock()

    async def live() -> dict[str, bool]:
        found = await (await api.ask("viewer", "GET", "/api/v1/regions")).get_json()
        return {region["name"]: region["live"] for region in found["regions"]}

    async def present(region: str, role: str, ago_seconds: int) -> None:
        async with api.pool.transaction("present") as tx:
            await presences.begin_presence(
                tx,
                uuid7(),
                Instant(now - ago_seconds * SECOND),
                "host",
                [role],
                [region],
                "0",
                accepts_pushes=True,
            )

    async def insert_agent(region: str, ago_seconds: int) -> None:
        async with api.pool.transaction("heard") as tx:
            await tx.execute(
                "insert into agents (credential, region, instance, name, holder, first_seen_at,"
                " last_seen_at) values ('catch-all', %(region)s, gen_random_uuid(), '',"
                " gen_random_uuid(), at(%(at)s), at(%(at)s))",
                region=region,
                at=now - ago_seconds * SECOND,
            )

    assert await live() == {"core": False, "eu": False}
    await present("core", "all", 60)
    await present("eu", "api", 0)
    assert await live() == {"core": False, "eu": False}
    await present("core", "worker", 5)
    await present("moon", "worker", 5)
    assert await live() == {"core": True, "eu": False, "moon": True}
    await insert_agent("eu", 46)
    assert await live() == {"core": True, "eu": False, "moon": True}
    await insert_agent("eu", 44)
    await insert_agent("mars", 0)
    assert await live() == {"core": True, "eu": True, "mars": True, "moon": True}


async def test_all_regions_of_a_process_are_live(api: Api) -> None:
    async with api.pool.transaction("present") as tx:
        await presences.begin_presence(
            tx, uuid7(), tx.now, "host", ["worker"], ["core", "eu"], "0", accepts_pushes=False
        )
    found = await (await api.ask("viewer", "GET", "/api/v1/regions")).get_json()
    assert found["regions"] == [{"name": name, "live": True} for name in ("core", "eu")]


async def rotate(api: Api, uid: str, overlap: int, who: str = "org_admin") -> Any:
    path = f"/api/v1/tokens/{uid}/rotate"
    return await api.ask(who, "POST", path, {"overlap_seconds": overlap})


async def accepted(api: Api, token: str) -> bool:
    response = await api.ask({"Authorization": f"Bearer {token}"}, "GET", "/api/v1/me")
    return int(response.status_code) == 200


async def test_a_successor_has_the_same_rights_and_the_old_token_ends(api: Api) -> None:
    old = await (await make_token(api, actions=["gate:evaluate"])).get_json()
    uid = old["api_token"]["id"]
    response = await rotate(api, uid, 3_600)
    assert response.status_code == 201
    new = await response.get_json()
    for field in ("name", "role", "actions", "org_id"):
        assert new["api_token"][field] == old["api_token"][field]
    assert new["token"].startswith(new["api_token"]["start"])
    assert "expires_at" not in new["api_token"]
    assert await accepted(api, old["token"])
    assert await accepted(api, new["token"])
    end = api.context.clock() + 3_600 * SECOND
    listed = await (
        await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/tokens")
    ).get_json()
    assert {one["id"]: one.get("expires_at") for one in listed}[uid] == to_text(Instant(end))
    # A second rotation never postpones the end of the old token.
    assert (await rotate(api, uid, 604_800)).status_code == 201
    assert await api.rows("select expires_at from api_tokens where uid = %(u)s", u=UUID(uid)) == [
        (end,)
    ]


async def test_a_token_is_refused_from_its_end_on(api: Api) -> None:
    old = await (await make_token(api)).get_json()
    uid = old["api_token"]["id"]
    async with api.pool.transaction("end") as tx:
        await tx.execute(
            "update api_tokens set expires_at = at(%(at)s) where uid = %(u)s",
            at=api.context.clock(),
            u=UUID(uid),
        )
    assert not await accepted(api, old["token"])
    assert (await rotate(api, uid, 0)).status_code == 404
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/tokens")
    assert uid not in {one["id"] for one in await listed.get_json()}
    async with api.pool.transaction("purge") as tx:
        assert await purge_expired_tokens(tx) == 1


async def test_a_rotation_without_overlap_ends_the_old_token_immediately(api: Api) -> None:
    old = await (await make_token(api)).get_json()
    new = await (await rotate(api, old["api_token"]["id"], 0)).get_json()
    assert not await accepted(api, old["token"])
    assert await accepted(api, new["token"])


async def test_an_overlap_is_at_most_seven_days(api: Api) -> None:
    old = await (await make_token(api)).get_json()
    assert (await rotate(api, old["api_token"]["id"], 604_801)).status_code == 400
    assert (await rotate(api, old["api_token"]["id"], -1)).status_code == 400
    assert (await rotate(api, old["api_token"]["id"], 0, "token")).status_code == 403


async def edit(api: Api, uid: str, who: Any = "org_admin", **body: Any) -> Any:
    return await api.ask(who, "PATCH", f"/api/v1/tokens/{uid}", body)


def after(api: Api, seconds: int) -> str:
    return to_text(Instant(api.context.clock() + seconds * SECOND))


async def actions_of(api: Api) -> list[tuple[str, str]]:
    return [(a, t) for a, t in await api.rows("select action, target from audit_entries")]


async def test_a_chosen_end_is_stored_and_refuses_the_token(api: Api) -> None:
    made = await (await make_token(api, expires_at=after(api, 3_600))).get_json()
    assert made["api_token"]["expires_at"] == after(api, 3_600)
    assert made["api_token"]["rotated"] is False
    assert await accepted(api, made["token"])
    async with api.pool.transaction("later") as tx:
        await tx.execute(
            "update api_tokens set expires_at = expires_at - interval '1 hour' where uid = %(u)s",
            u=UUID(made["api_token"]["id"]),
        )
    # As a notification of the write does.
    api.context.forget()
    assert not await accepted(api, made["token"])


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0, "must be in the future"),
        (-60, "must be in the future"),
        (3_650 * 86_400 + 1, "must be at most 3,650 days from now"),
    ],
)
async def test_an_end_outside_its_bounds_is_refused(api: Api, seconds: int, message: str) -> None:
    end = after(api, seconds)
    refusal = (400, f"expires_at: {message}")
    assert await error_of(await make_token(api, expires_at=end)) == refusal
    uid = (await (await make_token(api)).get_json())["api_token"]["id"]
    assert await error_of(await edit(api, uid, expires_at=end)) == refusal
    assert (await edit(api, uid, expires_at=after(api, 3_650 * 86_400))).status_code == 200


async def test_an_end_that_is_no_instant_is_refused_with_the_field(api: Api) -> None:
    refusal = (400, "expires_at: must be an RFC 3339 instant")
    uid = (await (await make_token(api)).get_json())["api_token"]["id"]
    for end in ("tomorrow", "2026-12-31", "2026-12-31T00:00:00"):
        assert await error_of(await make_token(api, expires_at=end)) == refusal
        assert await error_of(await edit(api, uid, expires_at=end)) == refusal


async def test_an_edit_changes_the_name_and_the_end_only(api: Api) -> None:
    made = await (
        await make_token(api, project_id=str(api.project), actions=["gate:evaluate"])
    ).get_json()
    uid = made["api_token"]["id"]
    response = await edit(api, uid, name="deploy", expires_at=after(api, 60))
    assert response.status_code == 200
    assert await response.get_json() == {
        **made["api_token"],
        "name": "deploy",
        "expires_at": after(api, 60),
    }
    assert await accepted(api, made["token"])
    # Null removes the end; an absent field changes nothing.
    edited = await (await edit(api, uid, expires_at=None)).get_json()
    assert "expires_at" not in edited
    assert edited["name"] == "deploy"
    for fixed in ("role", "actions", "project_id"):
        assert (await edit(api, uid, **{fixed: None})).status_code == 400
    assert await error_of(await edit(api, uid, name=" ")) == (400, "name: must not be blank")


async def test_an_edit_of_a_token_is_audited_once_and_only_if_it_changes(api: Api) -> None:
    made = await (await make_token(api)).get_json()
    uid = made["api_token"]["id"]
    end = after(api, 60)
    for body in ({"name": "x", "expires_at": end}, {"name": "x"}, {"expires_at": end}, {}):
        assert (await edit(api, uid, **body)).status_code == 200
    assert [t for a, t in await actions_of(api) if a == "token.update"] == [
        f"token:{uid} role=editor name expires_at={end}"
    ]


async def test_a_token_cannot_prolong_its_life_or_that_of_another(api: Api) -> None:
    made = await (await make_token(api, role="org_admin", expires_at=after(api, 60))).get_json()
    uid = made["api_token"]["id"]
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert (await edit(api, uid, bearer, expires_at=None)).status_code == 403
    assert (await edit(api, uid, "viewer", name="x")).status_code == 403
    assert (await edit(api, uid, "stranger", name="x")).status_code == 404


async def test_the_end_of_a_rotated_token_stays(api: Api) -> None:
    old = await (await make_token(api, expires_at=after(api, 86_400))).get_json()
    uid = old["api_token"]["id"]
    new = await (await rotate(api, uid, 3_600)).get_json()
    for end in (None, after(api, 7_200), after(api, 60)):
        assert await error_of(await edit(api, uid, expires_at=end)) == (409, "token_rotated")
    edited = await edit(api, uid, name="old ci", expires_at=after(api, 3_600))
    assert (await edited.get_json())["name"] == "old ci"
    assert (await edited.get_json())["rotated"] is True
    assert (await edit(api, new["api_token"]["id"], expires_at=None)).status_code == 200


async def test_the_rotation_of_an_earlier_version_is_recognised(api: Api) -> None:
    uid = (await (await make_token(api)).get_json())["api_token"]["id"]
    async with api.pool.transaction("earlier") as tx:
        await tx.execute(
            "update api_tokens set expires_at = at(%(at)s) where uid = %(u)s",
            at=Instant(api.context.clock() + 60 * SECOND),
            u=UUID(uid),
        )
    assert await error_of(await edit(api, uid, expires_at=None)) == (409, "token_rotated")


async def test_a_successor_lives_as_long_as_the_old_token_was_to(api: Api) -> None:
    """Also after a second rotation: the overlap does not shorten the life of the successor."""
    made = await (await make_token(api, expires_at=after(api, 30 * 86_400))).get_json()
    uid = made["api_token"]["id"]
    async with api.pool.transaction("age") as tx:
        await tx.execute(
            "update api_tokens set created_at = created_at - interval '10 days',"
            " expires_at = expires_at - interval '10 days',"
            " chosen_expiry = chosen_expiry - interval '10 days' where uid = %(u)s",
            u=UUID(uid),
        )
    for overlap in (3_600, 0):
        new = await (await rotate(api, uid, overlap)).get_json()
        assert new["api_token"]["expires_at"] == after(api, 30 * 86_400)
        assert new["api_token"]["rotated"] is False
