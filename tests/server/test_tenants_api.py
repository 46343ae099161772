"""Organizations, projects, members and users: lists, refusals, and the admins that cannot be
removed.
"""

from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Principal
from leadline.storage.accounts.transactions.edit_members import remove_member
from leadline.storage.accounts.transactions.edit_project import create_project
from leadline.storage.core.refusal import Refused
from tests.support.app.cast import Api
from tests.support.worlds.deletion import delete_organization


async def slugs(api: Api, who: str, path: str) -> list[str]:
    response = await api.ask(who, "GET", path)
    assert response.status_code == 200
    return [item["slug"] for item in await response.get_json()]


async def refusal(response: Any) -> tuple[int, str]:
    body = await response.get_json()
    assert list(body) == ["error"]
    return response.status_code, body["error"]


async def test_lists_contain_only_the_tenants_of_the_reader(api: Api) -> None:
    organizations = "/api/v1/organizations"
    for who, expected in {
        "viewer": ["acme"],
        "neighbour": ["acme"],
        "stranger": ["other"],
        "shop_token": ["acme"],
        "foreign_token": ["other"],
        "global_admin": ["acme", "other"],
    }.items():
        assert await slugs(api, who, organizations) == expected, who
    projects = f"{organizations}/{api.org}/projects"
    for who, expected in {
        "viewer": ["mill", "shop"],
        "neighbour": ["mill"],
        "shopkeeper": ["shop"],
        "shop_token": ["shop"],
        "global_admin": ["mill", "shop"],
    }.items():
        assert await slugs(api, who, projects) == expected, who


async def test_creating_an_organization_and_its_unique_slug(api: Api) -> None:
    body = {"slug": "new", "name": "New one"}
    response = await api.ask("global_admin", "POST", "/api/v1/organizations", body)
    assert response.status_code == 201
    made = await response.get_json()
    assert (made["slug"], made["name"]) == ("new", "New one")
    shown = await api.ask("global_admin", "GET", f"/api/v1/organizations/{made['id']}")
    assert await shown.get_json() == made
    members = await api.ask("global_admin", "GET", f"/api/v1/organizations/{made['id']}/members")
    assert [(m["email"], m["role"]) for m in await members.get_json()] == [
        ("global_admin@example.com", "org_admin")
    ]
    again = await api.ask("global_admin", "POST", "/api/v1/organizations", body)
    assert await refusal(again) == (409, "slug_taken")


async def test_a_project_slug_is_unique_in_its_organization(api: Api) -> None:
    path = f"/api/v1/organizations/{api.org}/projects"
    response = await api.ask("org_admin", "POST", path, {"slug": "shop", "name": "Shop"})
    assert await refusal(response) == (409, "slug_taken")
    response = await api.ask("org_admin", "POST", path, {"slug": "third", "name": "Third"})
    assert response.status_code == 201
    made = await response.get_json()
    assert made["org_id"] == str(api.org)
    elsewhere = f"/api/v1/organizations/{api.orgs['other'][1]}/projects"
    response = await api.ask("stranger", "POST", elsewhere, {"slug": "third", "name": "Third"})
    assert response.status_code == 201


@pytest.mark.parametrize("path", ["/api/v1/organizations/{org}", "/api/v1/projects/{project}"])
async def test_a_name_can_change_and_a_slug_cannot(api: Api, path: str) -> None:
    path = path.format(org=api.org, project=api.project)
    before = await (await api.ask("org_admin", "GET", path)).get_json()
    response = await api.ask("org_admin", "PATCH", path, {"name": "Ünlü & Söhne"})
    assert response.status_code == 200
    assert await response.get_json() == {**before, "name": "Ünlü & Söhne"}
    for body in ({"slug": "new"}, {"name": "x", "slug": "new"}, {}):
        assert (await api.ask("org_admin", "PATCH", path, body)).status_code == 400
    assert (await (await api.ask("org_admin", "GET", path)).get_json())["slug"] == before["slug"]


@pytest.mark.parametrize(
    ("slug", "name", "field"),
    [
        ("Upper", "x", "slug"),
        ("1st", "x", "slug"),
        ("", "x", "slug"),
        ("a" * 64, "x", "slug"),
        ("newline\n", "x", "slug"),
        ("ok", "", "name"),
        ("ok", "   ", "name"),
        ("ok", "a\nb", "name"),
        ("ok", "a\x7f", "name"),
        ("ok", "a" * 201, "name"),
    ],
)
async def test_an_invalid_name_or_slug_is_reported_with_its_field(
    api: Api, slug: str, name: str, field: str
) -> None:
    body = {"slug": slug, "name": name}
    for who, path in (
        ("global_admin", "/api/v1/organizations"),
        ("org_admin", f"/api/v1/organizations/{api.org}/projects"),
    ):
        status, error = await refusal(await api.ask(who, "POST", path, body))
        assert status == 400
        assert error.startswith(f"{field}: "), error
    assert await api.rows("select count(*) from audit_entries") == [(0,)]


async def test_a_deletion_deletes_contents_and_memberships(api: Api) -> None:
    shop = f"/api/v1/projects/{api.project}"
    acme = f"/api/v1/organizations/{api.org}"
    await api.new_monitor()
    for path in (shop, f"/api/v1/projects/{api.projects['acme/mill'][1]}"):
        assert (await api.ask("org_admin", "DELETE", path)).status_code == 204
        assert (await api.ask("org_admin", "GET", path)).status_code == 404
    # Deleting the project deleted its tokens and memberships.
    assert (await api.ask("shop_token", "GET", "/api/v1/me")).status_code == 401
    assert (await api.ask("shopkeeper", "GET", acme)).status_code == 404
    assert (await api.ask("global_admin", "DELETE", acme)).status_code == 204
    assert (await api.ask("token", "GET", "/api/v1/me")).status_code == 401
    assert await slugs(api, "viewer", "/api/v1/organizations") == []
    assert await slugs(api, "stranger", "/api/v1/organizations") == ["other"]
    assert await api.rows("select from monitors") == []


async def test_no_project_outlives_the_deletion_of_its_organization(api: Api) -> None:
    """A creation during a deletion is refused, or its project is deleted too."""
    god = Principal(
        CredentialKind.SESSION, (), user=api.users["global_admin"][1], is_global_admin=True
    )
    fates: list[str] = []

    async def create() -> None:
        async with api.pool.transaction("create") as tx:
            await create_project(tx, god, api.orgs["empty"][1], "late", "Late")
        fates.append("created")

    async def delete() -> None:
        async with api.pool.transaction("delete") as tx:
            await delete_organization(tx, god, api.orgs["empty"][1])
        fates.append("deleted")

    async def collect_refusal(work: Any) -> None:
        try:
            await work()
        except Refused as refused:
            fates.append(refused.code)

    for _ in range(10):
        fates.clear()
        body = {"slug": f"empty-{next(api.numbers)}", "name": "Empty"}
        response = await api.ask("global_admin", "POST", "/api/v1/organizations", body)
        api.orgs["empty"] = 0, UUID((await response.get_json())["id"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect_refusal, create)
            nursery.start_soon(collect_refusal, delete)
        assert sorted(fates) in (["created", "deleted"], ["deleted", "not_found"])


class Members:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.path = f"/api/v1/organizations/{api.org}/members"

    async def list(self) -> dict[str, dict[str, Any]]:
        response = await self.api.ask("org_admin", "GET", self.path)
        return {m["email"].partition("@")[0]: m for m in await response.get_json()}

    async def add(self, body: Any, who: str = "org_admin") -> Any:
        return await self.api.ask(who, "POST", self.path, body)

    async def one(self, who: str, method: str, membership: str, body: Any = None) -> Any:
        return await self.api.ask(who, method, f"{self.path}/{membership}", body)


async def test_members_are_listed_with_their_user(api: Api) -> None:
    found = await Members(api).list()
    assert set(found) == {
        *("neighbour", "shopkeeper", "viewer", "editor", "project_admin", "org_admin")
    }
    assert found["shopkeeper"]["project_id"] == str(api.project)
    assert "project_id" not in found["viewer"]
    assert found["viewer"]["user_id"] == str(api.users["viewer"][1])
    assert found["viewer"]["role"] == "viewer"


async def test_a_new_member_has_the_rights_of_the_role(api: Api) -> None:
    members = Members(api)
    acme = f"/api/v1/organizations/{api.org}"
    assert (await api.ask("stranger", "GET", acme)).status_code == 404
    user = str(api.users["stranger"][1])
    assert await refusal(await members.add({"user_id": user, "role": "viewer"})) == (
        400,
        "user_id: is no member of this organization: invite the person by e-mail",
    )
    response = await members.add({"user_id": user, "role": "viewer"}, "global_admin")
    assert response.status_code == 201
    made = await response.get_json()
    assert made["user_id"] == str(api.users["stranger"][1])
    assert (await api.ask("stranger", "GET", acme)).status_code == 200
    assert (await api.ask("stranger", "PATCH", acme, {"name": "x"})).status_code == 403
    response = await members.one("org_admin", "PATCH", made["id"], {"role": "org_admin"})
    assert response.status_code == 200
    assert (await response.get_json())["role"] == "org_admin"
    assert (await api.ask("stranger", "PATCH", acme, {"name": "x"})).status_code == 200
    response = await members.one("org_admin", "DELETE", made["id"])
    assert response.status_code == 204
    assert (await api.ask("stranger", "GET", acme)).status_code == 404


async def test_a_user_has_one_membership_per_project(api: Api) -> None:
    members = Members(api)
    user = str(api.users["neighbour"][1])
    body = {"user_id": user, "role": "viewer", "project_id": str(api.project)}
    assert (await members.add(body)).status_code == 201
    assert await refusal(await members.add(body)) == (409, "member_exists")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"role": "viewer"}, "user_id: give one of user_id and email"),
        (
            {"role": "viewer", "email": "a@b.c", "user_id": str(uuid7())},
            "user_id: give one of user_id and email",
        ),
        (
            {"role": "viewer", "user_id": str(uuid7())},
            "user_id: is no member of this organization: invite the person by e-mail",
        ),
        (
            {"role": "org_admin", "email": "stranger@example.com", "project_id": "shop"},
            "project_id: must be omitted for org_admin, whose scope is the organization",
        ),
        (
            {"role": "viewer", "email": "stranger@example.com", "project_id": "foreign"},
            "project_id: is not a project of this organization",
        ),
        (
            {"role": "owner", "email": "stranger@example.com"},
            "role: must be one of viewer, editor, project_admin, org_admin",
        ),
        ({"email": "stranger@example.com"}, "role: is required"),
    ],
)
async def test_an_invalid_membership_is_refused(api: Api, body: Any, error: str) -> None:
    places = {"shop": api.project, "foreign": api.projects["other/shop"][1]}
    if body.get("project_id") in places:
        body = {**body, "project_id": str(places[body["project_id"]])}
    before = await api.rows("select count(*) from memberships")
    assert await refusal(await Members(api).add(body)) == (400, error)
    assert await api.rows("select count(*) from memberships") == before


async def test_a_project_has_no_org_admin(api: Api) -> None:
    members = Members(api)
    shopkeeper = (await members.list())["shopkeeper"]["id"]
    response = await members.one("org_admin", "PATCH", shopkeeper, {"role": "org_admin"})
    assert response.status_code == 400


@pytest.mark.parametrize("who", ["org_admin", "global_admin", "token"])
async def test_the_last_org_admin_cannot_be_removed(api: Api, who: str) -> None:
    members = Members(api)
    last = (await members.list())["org_admin"]["id"]
    last_one = (400, "last_org_admin")
    assert await refusal(await members.one(who, "DELETE", last)) == last_one
    assert await refusal(await members.one(who, "PATCH", last, {"role": "editor"})) == last_one
    response = await members.one(who, "PATCH", last, {"role": "org_admin"})
    assert response.status_code == 200
    # With a second org admin the first can be removed.
    second = (await members.list())["editor"]["id"]
    response = await members.one(who, "PATCH", second, {"role": "org_admin"})
    assert response.status_code == 200
    assert (await members.one(who, "DELETE", last)).status_code == 204


async def test_two_org_admins_cannot_remove_each_other_concurrently(api: Api) -> None:
    members = Members(api)
    path = api.orgs["acme"]
    editor = (await members.list())["editor"]["id"]
    for _ in range(10):
        await members.one("global_admin", "PATCH", editor, {"role": "org_admin"})
        admins = [m for m in (await members.list()).values() if m["role"] == "org_admin"]
        assert len(admins) == 2
        fates: list[str] = []

        async def remove(one: str, fates: list[str] = fates) -> None:
            god = Principal(CredentialKind.SESSION, (), user=uuid7(), is_global_admin=True)
            try:
                async with api.pool.transaction("remove") as tx:
                    await remove_member(tx, god, path[1], UUID(one))
                fates.append("removed")
            except Refused as refused:
                fates.append(refused.code)

        async with trio.open_nursery() as nursery:
            for admin in admins:
                nursery.start_soon(remove, admin["id"])
        assert sorted(fates) == ["last_org_admin", "removed"]
        (left,) = await api.rows(
            "select uid from memberships where org = %(o)s and role = 'org_admin'", o=path[0]
        )
        other = next(a for a in admins if a["id"] != str(left[0]))
        body = {"user_id": other["user_id"], "role": "editor"}
        made = await api.ask("global_admin", "POST", members.path, body)
        editor = (await made.get_json())["id"]


class People:
    path = "/api/v1/admin/users"

    def __init__(self, api: Api) -> None:
        self.api = api

    async def ask(self, method: str, user: Any = "", body: Any = None) -> Any:
        path = f"{self.path}/{user}" if user else self.path
        return await self.api.ask("global_admin", method, path, body)


async def test_a_created_user_can_sign_in(api: Api) -> None:
    people = People(api)
    body = {
        "email": "new@example.com",
        "display_name": "New",
        "password": "long enough",
        "is_global_admin": True,
    }
    response = await people.ask("POST", body=body)
    assert response.status_code == 201
    made = await response.get_json()
    assert {k: made[k] for k in ("email", "display_name", "is_global_admin", "auth_type")} == {
        "email": "new@example.com",
        "display_name": "New",
        "is_global_admin": True,
        "auth_type": "local",
    }
    assert made["memberships"] == []
    login = {"username": "new@example.com", "password": "long enough"}
    assert (await api.ask("nobody", "POST", "/auth/local/login", login)).status_code == 200
    again = await people.ask("POST", body={"email": "NEW@example.com"})
    assert await refusal(again) == (409, "email_taken")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "no address"}, "email"),
        ({"email": "a@b@c"}, "email"),
        ({"email": "a@b c"}, "email"),
        ({"email": "@x"}, "email"),
        ({"email": "a@\x01b"}, "email"),
        ({"email": "a" * 251 + "@b.c"}, "email"),
        ({"email": "a@b.c", "password": "short"}, "password"),
        ({"email": "a@b.c", "display_name": "x" * 201}, "display_name"),
        ({"email": "a@b.c", "display_name": "x\ny"}, "display_name"),
    ],
)
async def test_an_invalid_user_is_refused_with_its_field(api: Api, body: Any, field: str) -> None:
    before = await api.rows("select count(*) from users")
    status, error = await refusal(await People(api).ask("POST", body=body))
    assert (status, error.partition(":")[0]) == (400, field)
    assert await api.rows("select count(*) from users") == before


async def test_users_are_found_by_name_or_address_with_memberships(api: Api) -> None:
    response = await api.ask("global_admin", "GET", People.path, query={"q": "SHOPK"})
    (found,) = await response.get_json()
    assert found["email"] == "shopkeeper@example.com"
    assert found["auth_type"] == "none"
    assert found["memberships"] == [
        {
            "org_id": str(api.org),
            "org_name": "Acme",
            "project_id": str(api.project),
            "project_name": "acme shop",
            "role": "project_admin",
        }
    ]
    response = await api.ask("global_admin", "GET", People.path, query={"q": "%"})
    assert await response.get_json() == []
    response = await api.ask("global_admin", "GET", People.path)
    assert len(await response.get_json()) == len(api.users)


async def test_the_own_account_and_the_last_global_admin_are_protected(
    api: Api,
) -> None:
    people = People(api)
    me = api.users["global_admin"][1]
    down, up = {"is_global_admin": False}, {"is_global_admin": True}
    assert await refusal(await people.ask("PATCH", me, down)) == (400, "last_global_admin")
    assert await refusal(await people.ask("DELETE", me)) == (400, "last_global_admin")
    assert await refusal(await people.ask("PATCH", me, up)) == (400, "own_account")
    response = await people.ask("PATCH", api.users["viewer"][1], up)
    assert response.status_code == 200
    assert (await response.get_json())["is_global_admin"] is True
    assert await refusal(await people.ask("PATCH", me, down)) == (400, "own_account")
    assert await refusal(await people.ask("DELETE", me)) == (400, "own_account")
    # The other global admin can do it, and is then the last one.
    path = f"{People.path}/{me}"
    assert (await api.ask("viewer", "PATCH", path, down)).status_code == 200
    assert (await people.ask("GET")).status_code == 403


async def test_a_removed_user_loses_access_unless_last_org_admin(
    api: Api,
) -> None:
    people = People(api)
    org_admin = api.users["org_admin"][1]
    assert await refusal(await people.ask("DELETE", org_admin)) == (400, "last_org_admin")
    assert (await people.ask("DELETE", api.users["editor"][1])).status_code == 204
    assert (await api.ask("editor", "GET", "/api/v1/me")).status_code == 401
    assert (await people.ask("DELETE", api.users["editor"][1])).status_code == 404
