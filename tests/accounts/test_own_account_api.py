"""The account of the caller: profile, password and sessions."""

from typing import Any

import pytest

from leadline.storage.core.token import digest
from tests.support.app.cast import COOKIE, Api

OLD, NEW = "correct horse", "battery staple"
PASSWORD = "/api/v1/me/password"


async def with_password(api: Api, who: str = "viewer") -> None:
    hashed = await api.context.passwords.hash(OLD)
    async with api.pool.transaction("set_password") as tx:
        await tx.execute(
            "update users set password = %(p)s where id = %(id)s", p=hashed, id=api.users[who][0]
        )


async def me(api: Api, who: str) -> Any:
    response = await api.ask(who, "GET", "/api/v1/me")
    assert response.status_code == 200
    return await response.get_json()


async def test_a_user_reads_their_profile_and_memberships(api: Api) -> None:
    found = await me(api, "shopkeeper")
    assert found["user"] == {
        "id": str(api.users["shopkeeper"][1]),
        "email": "shopkeeper@example.com",
        "display_name": "shopkeeper",
        "is_global_admin": False,
        "created_at": "2026-01-05T00:00:00.000Z",
        "updated_at": "2026-01-05T00:00:00.000Z",
    }
    (membership,) = found["memberships"]
    assert membership.pop("id")
    assert membership == {
        "user_id": found["user"]["id"],
        "org_id": str(api.org),
        "project_id": str(api.project),
        "role": "project_admin",
        "created_at": "2026-01-05T00:00:00.000Z",
    }
    assert found["totp_enabled"] is False


async def test_a_token_has_no_user_and_one_membership(api: Api) -> None:
    assert await me(api, "shop_token") == {
        "user": None,
        "memberships": [{"org_id": str(api.org), "project_id": str(api.project), "role": "editor"}],
        "totp_enabled": False,
    }
    assert (await me(api, "gate_token"))["memberships"] == [
        {"org_id": str(api.org), "role": "org_admin"}
    ]


async def test_a_new_password_ends_every_other_session_and_opens_the_account(api: Api) -> None:
    await with_password(api)
    _, other = await api.new_session("viewer")
    body = {"current_password": OLD, "new_password": NEW}
    response = await api.ask("viewer", "POST", PASSWORD, body)
    assert response.status_code == 204
    assert await response.get_data() == b""
    assert (await api.ask("viewer", "GET", "/api/v1/me")).status_code == 200
    gone = {"Cookie": f"{COOKIE}={other}"}
    assert (await api.ask(gone, "GET", "/api/v1/me")).status_code == 401
    for password, status in ((OLD, 401), (NEW, 200)):
        login = {"username": "viewer@example.com", "password": password}
        assert (await api.ask("nobody", "POST", "/auth/local/login", login)).status_code == status
    # The change is audited, without the password.
    told = await api.rows("select org, action, target from audit_entries")
    assert told == [(0, "user.password", f"user:{api.users['viewer'][1]}")]


@pytest.mark.parametrize(
    ("current", "new", "error"),
    [
        ("wrong", NEW, "current_password: is not the password of this account"),
        ("", NEW, "current_password: is not the password of this account"),
        (OLD, "short", "new_password: must be at least 10 characters"),
        (OLD, "x" * 1025, "new_password: must be at most 1024 characters"),
    ],
)
async def test_a_password_that_may_not_be_changed_stays(
    api: Api, current: str, new: str, error: str
) -> None:
    await with_password(api)
    await api.new_session("viewer")
    before = await api.rows("select password from users order by id")
    body = {"current_password": current, "new_password": new}
    response = await api.ask("viewer", "POST", PASSWORD, body)
    assert response.status_code == 400
    assert await response.get_json() == {"error": error}
    assert await api.rows("select password from users order by id") == before
    sessions = "select count(*) from sessions where user_id = %(id)s"
    assert await api.rows(sessions, id=api.users["viewer"][0]) == [(2,)]


async def test_password_guesses_from_a_session_are_limited(api: Api) -> None:
    await with_password(api)
    body = {"current_password": "wrong", "new_password": NEW}
    statuses = [(await api.ask("viewer", "POST", PASSWORD, body)).status_code for _ in range(11)]
    assert statuses == [400] * 10 + [429]


async def test_a_user_lists_and_ends_only_their_own_sessions(api: Api) -> None:
    mine, secret = await api.new_session("viewer")
    theirs, _ = await api.new_session("editor")
    listed = await (await api.ask("viewer", "GET", "/api/v1/me/sessions")).get_json()
    assert [s["current"] for s in listed].count(True) == 1
    assert str(mine) in [s["id"] for s in listed if not s["current"]]
    assert str(theirs) not in [s["id"] for s in listed]
    response = await api.ask("viewer", "DELETE", f"/api/v1/me/sessions/{theirs}")
    assert response.status_code == 404
    response = await api.ask("viewer", "DELETE", f"/api/v1/me/sessions/{mine}")
    assert response.status_code == 204
    assert await api.rows(
        "select count(*) from sessions where token_hash = %(h)s", h=digest(secret)
    ) == [(0,)]
    assert await api.rows("select count(*) from sessions where uid = %(u)s", u=theirs) == [(1,)]


async def test_a_request_updates_the_last_activity(api: Api) -> None:
    async with api.pool.transaction("age") as tx:
        await tx.execute("update sessions set last_seen_at = at(%(past)s)", past=tx.now - 10**9)
    await me(api, "viewer")
    seen = "select last_seen_at, last_active_at from sessions s join users u on u.id = s.user_id"
    ((last_seen, last_active),) = await api.rows(
        f"{seen} where u.id = %(id)s", id=api.users["viewer"][0]
    )
    assert last_seen == last_active == api.context.clock()


async def test_the_version_is_returned(api: Api) -> None:
    found = await (await api.ask("gate_token", "GET", "/api/v1/version")).get_json()
    assert found["version"] == "0.3.8"
    assert found["python_version"].startswith("3.")
    assert "commit" not in found
