"""The pages of people, tokens and writes: by the API's own rules, and no secret is shown twice."""

import re
from typing import Any
from urllib.parse import urlencode

from leadline.storage.core.instant import DAY, Instant, to_text
from tests.support.app.cast import Api
from tests.support.app.serving import call

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
    (row,) = [
        row
        for row in page.split("<tr>")
        if f">{name}</b>" in row or f">{name}<" in row.split("</th>")[0]
    ]
    return row


def uid_in(row: str) -> str:
    found = re.search(r'name="uid" value="([^"]+)"', row)
    assert found is not None
    return found[1]


async def test_a_member_is_invited_accepts_changes_and_goes(api: Api) -> None:
    """Without a mail server the inviter gets the link."""
    path = f"/organizations/{api.org}/people"
    status, page = await send(
        api, path, act="add", email="anna@example.com", role="editor", project=str(api.project)
    )
    assert status == 200
    (link,) = set(re.findall(r"/invitations/leadline_invitation_[A-Za-z0-9]+", page))
    assert "anna@example.com was invited" in page
    page = await seen(api, path)
    assert "Invited by org_admin" in page
    assert link not in page
    answer = await api.ask("nobody", "GET", link)
    assert "anna@example.com" in await answer.get_data(as_text=True)
    status, page = await send(api, link, "nobody", display_name="Anna", password="short")
    assert status == 400
    assert "Password: " in page
    assert 'value="Anna"' in page
    status, _ = await send(api, link, "nobody", display_name="Anna", password="a long password")
    assert status == 303
    assert (await api.ask("nobody", "GET", link)).status_code == 404
    row = row_of(await seen(api, path), "Anna")
    assert '<option value="editor" selected>' in row
    uid = uid_in(row)
    assert (await send(api, path, act="role", uid=uid, role="viewer"))[0] == 303
    page = await seen(api, f"{path}?done=role&uid={uid}&was=editor")
    assert '<option value="viewer" selected>' in row_of(page, "Anna")
    assert "Anna is now Viewer." in page
    assert '<input type="hidden" name="role" value="editor">' in page
    assert "Remove Anna?" in await seen(api, f"{path}?show=remove&uid={uid}")
    assert (await send(api, path, act="remove", uid=uid))[0] == 303
    assert "anna@example.com" not in await seen(api, path)


async def test_members_show_how_they_sign_in(api: Api) -> None:
    """The columns of the account decide; an enrolment without its first code is no factor."""
    path = f"/organizations/{api.org}/people"
    uid = api.users["org_admin"][1]

    async def shown(**columns: str) -> str:
        async with api.pool.transaction("account") as tx:
            for name, value in columns.items():
                await tx.execute(f"update users set {name} = {value} where uid = %(u)s", u=uid)
        row = row_of(await seen(api, path), "org_admin@example.com, all projects")
        (found,) = re.findall(r'<td class="wide wrap">([^<]*)</td>', row)
        return str(found)

    none = {"password": "null", "totp_enabled_at": "null"}
    assert await shown(**none) == "Not set up"
    assert await shown(password="'x'") == "Password"
    assert await shown(totp_ciphertext="'x'::bytea") == "Password"
    assert await shown(totp_enabled_at="now()") == "Password, 2FA"
    async with api.pool.transaction("identity") as tx:
        await tx.execute(
            "insert into user_identities (issuer, subject, user_id, created_at)"
            " select 'https://id.example', 'x', id, now() from users where uid = %(u)s",
            u=uid,
        )
    assert await shown() == "Password, SSO, 2FA"
    assert await shown(**none) == "SSO"
    members = await call(api, "GET", f"/organizations/{api.org}/members", who="org_admin")
    (own,) = [one for one in members if one["user_id"] == str(uid)]
    assert (own["auth_type"], own["totp_enabled"]) == ("oidc", False)


async def test_an_invitation_is_renewed_and_withdrawn(api: Api) -> None:
    path = f"/organizations/{api.org}/people"
    _, page = await send(api, path, act="add", email="nina@example.com", role="viewer")
    link = re.findall(r"/invitations/leadline_invitation_[A-Za-z0-9]+", page)[0]
    uid = uid_in(row_of(page, "nina@example.com"))
    _, page = await send(api, path, act="resend", uid=uid)
    later = re.findall(r"/invitations/leadline_invitation_[A-Za-z0-9]+", page)[0]
    assert later != link
    assert (await api.ask("nobody", "GET", link)).status_code == 404
    assert "Withdraw the invitation" in await seen(api, f"{path}?show=withdraw&uid={uid}")
    assert (await send(api, path, act="withdraw", uid=uid))[0] == 303
    assert (await api.ask("nobody", "GET", later)).status_code == 404
    assert "nina@example.com" not in await seen(api, path)


async def test_the_roles_page_lists_what_each_role_may_do(api: Api) -> None:
    page = await seen(api, f"/organizations/{api.org}/people?show=roles")
    assert "Apply bundles" in page
    assert page.count('<span class="vh">yes</span>') > 20


async def test_a_refusal_is_shown_as_text(api: Api) -> None:
    path = f"/organizations/{api.org}/people"
    for form, said in (
        ({"act": "add", "email": "x", "role": "viewer"}, "E-mail: "),
        ({"act": "add", "email": "x@example.com", "role": "king"}, "Role: does not exist."),
        ({"act": "remove", "uid": "x"}, "no longer exists."),
    ):
        status, page = await send(api, path, **form)
        assert status == 400, said
        assert said in page
    path = f"/organizations/{api.org}/tokens"
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"name": " ", "role": "viewer"}, "Name: must not be blank."),
        (
            {"name": "ci", "role": "viewer", "action": ["change:record"]},
            "A viewer cannot record changes",
        ),
    )
    for wrong, said in refused:
        status, page = await send(api, path, "org_admin", act="create", **wrong)
        assert status == 400, said
        assert said in page
    assert (await send(api, path, "viewer", act="create", name="ci", role="viewer"))[0] == 403


async def test_the_last_admin_stays(api: Api) -> None:
    """An organization with an admin of its own."""
    org = str(api.orgs["other"][1])
    path = f"/organizations/{org}/people"
    await call(
        api,
        "POST",
        f"/organizations/{org}/members",
        {
            "user_id": (await call(api, "GET", "/me", who="org_admin"))["user"]["id"],
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


async def test_a_token_is_shown_once_rotated_and_revoked(api: Api) -> None:
    path = f"/organizations/{api.org}/tokens"
    status, page = await send(
        api, path, act="create", name="ci", role="editor", action=["gate:evaluate"]
    )
    assert status == 200
    (secret,) = set(SECRET.findall(page))
    assert f'data-copy="{secret}"' in page
    page = await seen(api, path)
    assert secret not in page
    assert "ask the release gate" in page
    (row,) = [row for row in page.split("<tr>") if ">ci</b>" in row]
    (uid,) = re.findall(r"show=rotate&amp;uid=([0-9a-f-]{36})", row)
    assert "Rotate ci?" in await seen(api, f"{path}?show=rotate&uid={uid}")
    status, page = await send(api, path, act="rotate", uid=uid, overlap="3600")
    assert status == 200
    (successor,) = set(SECRET.findall(page))
    assert successor != secret
    assert "ci was rotated" in page
    assert "The old token works until" in page
    assert (await send(api, path, act="revoke", uid=uid))[0] == 303
    page = await seen(api, f"{path}?done=revoked")
    assert "The token was revoked." in page
    assert uid not in page
    assert (await send(api, path, act="rotate", uid=uid, overlap="60"))[0] == 400
    foreign = await api.new_token()
    assert (await send(api, path, "stranger", act="revoke", uid=str(foreign)))[0] == 404


async def made_token(api: Api, **form: str) -> str:
    """The id of a token that the form creates."""
    path = f"/organizations/{api.org}/tokens"
    status, page = await send(api, path, act="create", role="viewer", **form)
    assert status == 200
    (row,) = [row for row in page.split("<tr>") if f">{form['name']}</b>" in row]
    (uid,) = re.findall(r"show=edit&amp;uid=([0-9a-f-]{36})", row)
    return str(uid)


async def end_of(api: Api, uid: str) -> Any:
    tokens = await call(api, "GET", f"/organizations/{api.org}/tokens", who="org_admin")
    return next(one.get("expires_at") for one in tokens if one["id"] == uid)


def in_days(api: Api, days: int) -> str:
    return to_text(Instant(api.context.clock() + days * DAY))


async def test_a_token_expires_when_its_form_says(api: Api) -> None:
    path = f"/organizations/{api.org}/tokens"
    page = await seen(api, f"{path}?show=new")
    assert '<option value="90" selected>In 90 days</option>' in page
    assert await end_of(api, await made_token(api, name="b", expires="30")) == in_days(api, 30)
    assert await end_of(api, await made_token(api, name="c", expires="never")) is None
    until = in_days(api, 3)[:10]
    uid = await made_token(api, name="d", expires="date", date=until)
    assert await end_of(api, uid) == f"{until}T23:59:59.000Z"
    page = await seen(api, path)
    assert re.search(r">in 30 days</time>.*>never<.*>in 3 days</time>", page, re.DOTALL)
    for form, said in (
        ({"expires": "date", "date": ""}, "Expires: must be a date, as in 2026-12-31."),
        ({"expires": "date", "date": "2025-01-01"}, "Expires: must be in the future."),
        ({"expires": "90", "date": until}, "Expires: choose “On a date”, or clear the date."),
        ({"expires": "x"}, "Expires: does not exist."),
    ):
        status, page = await send(api, path, act="create", name="e", role="viewer", **form)
        assert status == 400
        assert said in page
        assert 'value="e"' in page
    assert ">e</b>" not in await seen(api, path)


async def test_the_name_and_the_end_of_a_token_are_edited(api: Api) -> None:
    path = f"/organizations/{api.org}/tokens"
    uid = await made_token(api, name="ci", expires="30")
    page = await seen(api, f"{path}?show=edit&uid={uid}")
    assert 'value="ci"' in page
    assert '<option value="kept" selected>' in page
    form = {"act": "update", "uid": uid, "date": ""}
    assert (await send(api, path, name="deploy", expires="kept", **form))[0] == 303
    assert "deploy" in await seen(api, f"{path}?done=saved")
    assert await end_of(api, uid) == in_days(api, 30)
    assert (await send(api, path, name="deploy", expires="never", **form))[0] == 303
    assert await end_of(api, uid) is None
    status, page = await send(api, path, name=" ", expires="never", **form)
    assert status == 400
    assert "Name: must not be blank." in page
    await send(api, path, act="rotate", uid=uid, overlap="3600")
    page = await seen(api, f"{path}?show=edit&uid={uid}")
    assert "That end cannot be changed." in page
    assert 'name="expires"' not in page
    status, page = await send(api, path, name="deploy", expires="365", **form)
    assert status == 400
    assert "The token was rotated meanwhile." in page
    assert (await send(api, path, name="old", act="update", uid=uid))[0] == 303
    assert (await send(api, path, "viewer", name="x", **form))[0] == 403


async def test_the_audit_lists_writes_newest_first(api: Api) -> None:
    there, path = f"/organizations/{api.org}/tokens", f"/organizations/{api.org}/audit"
    await send(api, there, act="create", name="ci", role="viewer")
    page = await seen(api, path)
    assert "token.create" in page
    assert "1 entry in Acme." in page
    await call(api, "PUT", "/settings/monitor-defaults", {}, who="global_admin")
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
