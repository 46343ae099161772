"""Roles by groups with a real OpenID provider: granted, changed and removed at each sign-in."""

from typing import Any

import pytest
import trio

from tests.accounts.test_oidc_login_api import World, provider, world

pytestmark = [pytest.mark.needs("node", "oidc-provider")]
__all__ = ["provider", "world"]
RULES = "/api/v1/settings/oidc/group-roles"


async def rule(world: World, value: str, role: str, place: str = "acme", **given: Any) -> str:
    api = world.api
    org = api.orgs[place.partition("/")[0]][1]
    body = {"value": value, "role": role, "org_id": str(org), **given}
    if "/" in place:
        body["project_id"] = str(api.projects[place][1])
    answer = await api.ask("global_admin", "POST", RULES, body)
    assert answer.status_code == 201, await answer.get_data()
    return str((await answer.get_json())["id"])


async def memberships(world: World, groups: Any) -> dict[str, str]:
    """Signs in with the groups; the roles by the slug of their place."""
    await trio.to_thread.run_sync(world.provider.set_groups, "gus", groups)
    await world.session("gus")
    rows = await world.api.rows(
        "select coalesce(p.slug, o.slug), m.role::text from memberships m"
        " join users u on u.id = m.user_id join organizations o on o.id = m.org"
        " left join projects p on p.org = m.org and p.id = m.project where u.email like 'gus@%%'"
    )
    return dict(rows)


async def audited(world: World, prefix: str) -> list[str]:
    rows = await world.api.rows(
        "select action || ' ' || target from audit_entries where action like %(like)s order by id",
        like=f"{prefix}%",
    )
    return [row[0] for row in rows]


async def test_memberships_follow_the_groups_at_each_sign_in(world: World) -> None:
    await rule(world, "sre", "editor")
    await rule(world, "leads", "project_admin")
    gone = await rule(world, "sre", "viewer", "acme/mill")
    assert await memberships(world, ["sre"]) == {"acme": "editor", "mill": "viewer"}
    assert await memberships(world, ["leads", "sre"]) == {"acme": "project_admin", "mill": "viewer"}
    # A deleted rule, and a group that the person left.
    await world.api.ask("global_admin", "DELETE", f"{RULES}/{gone}")
    assert await memberships(world, ["sre"]) == {"acme": "editor"}
    # Claims that state no groups change nothing, and are in the audit log.
    for sent in (None, {"sre": True}, [str(n) for n in range(1_001)]):
        assert await memberships(world, sent) == {"acme": "editor"}
    unread = await audited(world, "user.groups_unread")
    assert [one.rpartition("=")[2] for one in unread] == ["absent", "invalid", "too_large"]
    assert await memberships(world, []) == {}
    rows = await audited(world, "member.")
    assert [one.split()[0] for one in rows] == [
        "member.create",
        "member.create",
        "member.update",
        "member.update",
        "member.delete",
        "member.delete",
    ]
    assert "role=editor->project_admin group groups=leads" in rows[2]


async def test_a_role_that_a_person_gave_and_the_last_admin_stay(world: World) -> None:
    await rule(world, "owners", "org_admin", "other")
    await rule(world, "sre", "viewer")
    assert await memberships(world, ["owners", "sre"]) == {"other": "org_admin", "acme": "viewer"}
    # An admin changes the role: the groups no longer do.
    api = world.api
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/members")
    (mine,) = [one for one in await listed.get_json() if one["email"] == "gus@example.com"]
    assert mine["from_group"] is True
    path = f"/api/v1/organizations/{api.org}/members/{mine['id']}"
    assert (await api.ask("org_admin", "PATCH", path, {"role": "editor"})).status_code == 200
    # The person becomes the only admin of the other organization.
    async with api.pool.transaction("only") as tx:
        await tx.execute(
            "delete from memberships m using users u where u.id = m.user_id and m.role ="
            " 'org_admin' and m.org = %(org)s and u.email not like 'gus@%%'",
            org=api.orgs["other"][0],
        )
    assert await memberships(world, []) == {"other": "org_admin", "acme": "editor"}
    (kept,) = await audited(world, "member.keep")
    assert kept.endswith("reason=last_org_admin")
    async with api.pool.transaction("another") as tx:
        await tx.execute(
            "update memberships set role = 'org_admin' where org = %(org)s and id = (select min(id)"
            " from memberships where org = %(org)s and group_issuer is null)",
            org=api.orgs["other"][0],
        )
        count = await tx.value(
            "select count(*) from memberships where org = %(org)s and role = 'org_admin'",
            org=api.orgs["other"][0],
        )
    expected = {"acme": "editor"} if count > 1 else {"acme": "editor", "other": "org_admin"}
    assert await memberships(world, []) == expected


async def test_rules_are_checked_and_shown(world: World) -> None:
    api = world.api
    await rule(world, "sre", "editor", "acme/shop")
    page = await api.ask("global_admin", "GET", "/admin/group-roles")
    text = str(await page.get_data(as_text=True))
    assert "sre" in text
    assert "1 rule." in text
    org = str(api.org)
    shop = str(api.projects["acme/shop"][1])
    for body, error in (
        ({"value": "", "role": "viewer", "org_id": org}, "value: must have 1 to 256 characters"),
        (
            {"value": "sre", "role": "editor", "org_id": org, "project_id": shop},
            "value: has a rule for this place: delete it first",
        ),
        (
            {"value": "x", "role": "org_admin", "org_id": org, "project_id": shop},
            "project_id: must be omitted for org_admin, whose scope is the organization",
        ),
    ):
        answer = await api.ask("global_admin", "POST", RULES, body)
        assert (answer.status_code, (await answer.get_json())["error"]) == (400, error)
    form = {"act": "create", "claim": "groups", "value": "ops", "place": org, "role": "viewer"}
    headers = api.credentials["global_admin"]
    answer = await api.client.post("/admin/group-roles", form=form, headers=headers)
    assert answer.status_code == 303, await answer.get_data()
    listed = await (await api.ask("global_admin", "GET", RULES)).get_json()
    assert [(one["value"], one["role"], one["active"]) for one in listed] == [
        ("ops", "viewer", True),
        ("sre", "editor", True),
    ]
