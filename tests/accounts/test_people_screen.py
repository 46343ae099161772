"""The pages of people, tokens and writes: by the API's own rules, and no secret is shown twice."""

import re
from urllib.parse import urlencode

from tests.support.app.cast import Api
from tests.support.app.serving import told

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SECRET = re.compile(r"leadline_[A-Za-z0-9_-]{20,}")


async def send(
    api: Api, path: str, who: str = "org_admin", **form: str | list[str]
) -> tuple[int, str]:
    data = urlencode(form, doseq=True).encode()
    answer = await api.ask(who, "POST", path, data=data, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def seen(api: Api, path: str, who: str = "org_admin") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


def row_of(page: str, name: str) -> str:
    (row,) = [row for row in page.split("<tr>") if f">{name}<" in row]
    return row


def uid_in(row: str) -> str:
    found = re.search(r'name="uid" value="([^"]+)"', row)
    assert found is not None
    return found[1]


async def test_a_member_comes_changes_and_goes(api: Api) -> None:
    path = f"/organizations/{api.org}/people"
    await api.new_user("anna@example.com")
    status, _ = await send(
        api, path, act="add", email="anna@example.com", role="editor", project=str(api.project)
    )
    assert status == 303
    row = row_of(await seen(api, path), "anna@example.com")
    assert '<option value="editor" selected>' in row
    uid = uid_in(row)
    assert (await send(api, path, act="role", uid=uid, role="viewer"))[0] == 303
    assert '<option value="viewer" selected>' in row_of(await seen(api, path), "anna@example.com")
    assert (await send(api, path, act="remove", uid=uid))[0] == 303
    assert "anna@example.com" not in await seen(api, path)


async def test_a_refusal_is_shown_as_text(api: Api) -> None:
    path = f"/organizations/{api.org}/people"
    for form, said in (
        (
            {"act": "add", "email": "nobody@example.com", "role": "viewer"},
            "no account has this e-mail address",
        ),
        ({"act": "add", "email": "x", "role": "king"}, "Role does not exist."),
        ({"act": "remove", "uid": "x"}, "It was deleted."),
        ({"act": "token", "name": " ", "role": "viewer"}, "Name must not be blank."),
        (
            {"act": "token", "name": "ci", "role": "viewer", "action": ["change:record"]},
            "A viewer cannot record changes",
        ),
    ):
        status, page = await send(api, path, **form)
        assert status == 400, said
        assert said in page
    assert (await send(api, path, "viewer", act="token", name="ci", role="viewer"))[0] == 403


async def test_the_last_admin_stays(api: Api) -> None:
    """An organization with an admin of its own."""
    org = str(api.orgs["other"][1])
    path = f"/organizations/{org}/people"
    await told(
        api,
        "POST",
        f"/organizations/{org}/members",
        {
            "email": (await told(api, "GET", "/me", who="org_admin"))["user"]["email"],
            "role": "org_admin",
        },
        201,
        who="global_admin",
    )
    rows = (await seen(api, path, "global_admin")).split("<tr>")
    admins = [uid_in(row) for row in rows if '<option value="org_admin" selected>' in row]
    for uid in admins[1:]:
        assert (await send(api, path, "global_admin", act="remove", uid=uid))[0] == 303
    status, page = await send(api, path, "global_admin", act="remove", uid=admins[0])
    assert status == 400
    assert "the last admin of the organization" in page


async def test_a_token_is_shown_once_and_revoked(api: Api) -> None:
    path = f"/organizations/{api.org}/people"
    status, page = await send(
        api, path, act="token", name="ci", role="editor", action=["gate:evaluate"]
    )
    assert status == 200
    (secret,) = set(SECRET.findall(page))
    page = await seen(api, path)
    assert secret not in page
    row = row_of(page, "ci")
    assert "only ask the release gate" in row
    assert (await send(api, path, act="revoke", uid=uid_in(row)))[0] == 303
    assert 'scope="row">ci<' not in await seen(api, path)


async def test_the_audit_lists_writes_newest_first(api: Api) -> None:
    people, path = f"/organizations/{api.org}/people", f"/organizations/{api.org}/audit"
    await send(api, people, act="token", name="ci", role="viewer")
    page = await seen(api, path)
    assert "token.create" in page
    assert "latest change" in page
    await told(api, "PUT", "/settings/monitor-defaults", {}, who="global_admin")
    assert "settings." in await seen(api, "/admin/audit", "global_admin")


async def test_accounts_are_made_found_promoted_and_removed(api: Api) -> None:
    path = "/admin/people"
    status, _ = await send(
        api, path, "global_admin", act="create", email="bea@example.com", display_name="Bea <b>"
    )
    assert status == 303
    page = await seen(api, f"{path}?q=bea", "global_admin")
    assert "1 user found" in page
    row = row_of(page, "Bea &lt;b&gt;")
    assert "no password set" in row
    uid = uid_in(row)
    assert (await send(api, path, "global_admin", act="promote", uid=uid))[0] == 303
    assert "Global admin" in row_of(
        await seen(api, f"{path}?q=bea", "global_admin"), "Bea &lt;b&gt;"
    )
    assert (await send(api, path, "global_admin", act="demote", uid=uid))[0] == 303
    for form, said in (
        ({"act": "create", "email": "bea@example.com"}, "This e-mail is in use."),
        ({"act": "create", "email": "nothing"}, "must be an e-mail address"),
        ({"act": "create", "email": "c@example.com", "password": "x"}, "Password "),
    ):
        status, page = await send(api, path, "global_admin", **form)
        assert status == 400
        assert said in page
    assert (await send(api, path, "global_admin", act="delete", uid=uid))[0] == 303
    assert "0 users found" in await seen(api, f"{path}?q=bea", "global_admin")
    # The caller's own account has no buttons.
    page = await seen(api, path, "global_admin")
    assert ">you</td>" in page
