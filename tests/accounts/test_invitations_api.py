"""Invitations: the same answer for every address, and a membership only after acceptance."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.invitation import (
    ATTEMPTS_MOST,
    LEASE_US,
    RESEND_EVERY_US,
    TTL_US,
    last_mail_at,
    next_attempt_at,
    resend_wait,
)
from leadline.storage.accounts.tables.invitations import purge_expired_invitations
from leadline.storage.accounts.tables.users import insert_membership
from leadline.storage.core.instant import DAY, Instant, to_text
from tests.support.app.cast import Api

PASSWORD = "a long password"


async def invite(api: Api, email: str, who: str = "org_admin", **body: Any) -> Any:
    path = f"/api/v1/organizations/{api.org}/members"
    return await api.ask(who, "POST", path, {"email": email, "role": "editor", **body})


async def link_of(api: Api, email: str, **body: Any) -> str:
    made = await (await invite(api, email, **body)).get_json()
    return str(made["accept_url"].rpartition("/")[2])


async def accept(api: Api, token: str, who: str = "nobody", **body: Any) -> Any:
    return await api.ask(who, "POST", f"/api/v1/public/invitations/{token}/accept", body)


async def members(api: Api) -> dict[str, str]:
    response = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/members")
    return {one["email"]: one["role"] for one in await response.get_json()}


async def test_the_answer_is_the_same_for_known_and_unknown_addresses(api: Api) -> None:
    await api.new_user("known@example.com", "hash")
    answers = []
    for email in ("known@example.com", "other@example.com"):
        response = await invite(api, email)
        assert response.status_code == 202
        made = await response.get_json()
        answers.append({key: made[key] for key in made if key not in ("id", "email", "accept_url")})
        assert made["email"] == email
    assert answers[0] == answers[1]
    assert answers[0]["expires_at"] == to_text(Instant(api.context.clock() + 7 * DAY))
    assert "known@example.com" not in await members(api)
    audited = await api.rows("select target from audit_entries where action = 'invitation.create'")
    assert not any("example.com" in row[0] for row in audited)


async def test_an_address_of_a_member_is_added_at_once(api: Api) -> None:
    response = await invite(api, "Viewer@example.com", project_id=str(api.project))
    assert response.status_code == 201
    assert (await response.get_json())["user_id"] == str(api.users["viewer"][1])


async def test_a_new_account_accepts_with_a_password(api: Api) -> None:
    token = await link_of(api, "new@example.com")
    assert (await accept(api, token)).status_code == 401
    assert (await accept(api, token, password="short")).status_code == 400
    assert (await accept(api, token, password=PASSWORD, display_name="New")).status_code == 200
    assert (await members(api))["new@example.com"] == "editor"
    assert (await accept(api, token, password=PASSWORD)).status_code == 404
    body = {"username": "new@example.com", "password": PASSWORD}
    signed_in = await api.ask("nobody", "POST", "/auth/local/login", body)
    assert signed_in.status_code == 200


async def test_an_account_accepts_only_from_its_own_session(api: Api) -> None:
    token = await link_of(api, "stranger@example.com")
    assert (await accept(api, token, password=PASSWORD)).status_code == 401
    assert (await accept(api, token, "neighbour")).status_code == 400
    assert "stranger@example.com" not in await members(api)
    assert (await accept(api, token, "stranger")).status_code == 200
    assert (await members(api))["stranger@example.com"] == "editor"


async def test_a_membership_of_groups_becomes_one_that_a_person_gave(api: Api) -> None:
    token = await link_of(api, "stranger@example.com")
    place = {"user": api.users["stranger"][0], "org": api.orgs["acme"][0]}
    # The person signs in before the acceptance, and a group gives the membership.
    async with api.pool.transaction("groups") as tx:
        await insert_membership(
            tx, uid=uuid7(), project=None, role="viewer", group_issuer="https://id", **place
        )
    assert (await accept(api, token, "stranger")).status_code == 200
    given = (
        "select uid, role::text, group_issuer from memberships"
        " where user_id = %(user)s and org = %(org)s"
    )
    ((uid, *found),) = await api.rows(given, **place)
    assert found == ["editor", None]
    (row,) = await api.rows("select target from audit_entries where action = 'invitation.accept'")
    assert row[0].endswith("role=viewer->editor")
    # An equal role that a person sets is one that a person gave, too.
    async with api.pool.transaction("groups") as tx:
        await tx.execute("update memberships set group_issuer = 'https://id'")
    path = f"/api/v1/organizations/{api.org}/members/{uid}"
    assert (await api.ask("org_admin", "PATCH", path, {"role": "editor"})).status_code == 200
    ((_, *found),) = await api.rows(given, **place)
    assert found == ["editor", None]


async def test_a_session_of_another_site_does_not_accept(api: Api) -> None:
    token = await link_of(api, "stranger@example.com")
    headers = {**api.credentials["stranger"], "Sec-Fetch-Site": "cross-site"}
    path = f"/api/v1/public/invitations/{token}/accept"
    assert (await api.ask(headers, "POST", path, {})).status_code == 403


async def test_a_second_invitation_replaces_the_first(api: Api) -> None:
    first = await link_of(api, "new@example.com")
    second = await link_of(api, "NEW@example.com", role="viewer")
    assert (await accept(api, first, password=PASSWORD)).status_code == 404
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/invitations")
    (only,) = await listed.get_json()
    assert only["role"] == "viewer"
    assert only["invited_by"] == "org_admin"
    assert "accept_url" not in only
    assert (await accept(api, second, password=PASSWORD)).status_code == 200


async def test_an_invitation_ends_after_seven_days(api: Api) -> None:
    token = await link_of(api, "new@example.com")
    async with api.pool.transaction("age") as tx:
        await tx.execute("update invitations set expires_at = at(%(now)s)", now=api.context.clock())
    assert (await accept(api, token, password=PASSWORD)).status_code == 404
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/invitations")
    assert await listed.get_json() == []
    async with api.pool.transaction("purge") as tx:
        assert await purge_expired_invitations(tx) == 1


async def test_a_withdrawn_invitation_is_not_accepted(api: Api) -> None:
    response = await invite(api, "new@example.com")
    made = await response.get_json()
    token = made["accept_url"].rpartition("/")[2]
    path = f"/api/v1/invitations/{made['id']}"
    assert (await api.ask("stranger", "DELETE", path)).status_code == 404
    assert (await api.ask("editor", "DELETE", path)).status_code == 403
    assert (await api.ask("org_admin", "DELETE", path)).status_code == 204
    assert (await accept(api, token, password=PASSWORD)).status_code == 404


@pytest.mark.parametrize("token", ["x", "leadline_invitation_" + "0" * 43, "leadline_" + "0" * 43])
async def test_an_unknown_link_is_not_found(api: Api, token: str) -> None:
    assert (await accept(api, token, password=PASSWORD)).status_code == 404


async def test_an_invitation_keeps_no_link(api: Api) -> None:
    token = await link_of(api, "new@example.com")
    stored = await api.rows("select i::text from invitations i")
    assert not any(token in row[0] for row in stored)


async def test_the_project_of_an_invitation_is_the_scope_of_the_membership(api: Api) -> None:
    token = await link_of(api, "new@example.com", project_id=str(api.project))
    assert (await accept(api, token, password=PASSWORD)).status_code == 200
    rows = await api.rows(
        "select p.uid from memberships m join users u on u.id = m.user_id"
        " join projects p on p.id = m.project where u.email = 'new@example.com'"
    )
    assert rows == [(UUID(str(api.project)),)]


@given(attempts=st.integers(1, 20), now=st.integers(0, 2**50))
def test_each_pause_is_longer_than_the_one_before_until_the_last_attempt(
    attempts: int, now: int
) -> None:
    at = next_attempt_at(attempts, Instant(now))
    if attempts >= ATTEMPTS_MOST:
        assert at is None
        return
    assert at is not None
    later = next_attempt_at(attempts + 1, Instant(now))
    assert later is None or later > at > now
    assert LEASE_US > 0


@given(
    asked=st.integers(0, 2**50),
    attempts=st.integers(1, ATTEMPTS_MOST - 1),
    slow=st.lists(st.integers(0, LEASE_US), min_size=ATTEMPTS_MOST, max_size=ATTEMPTS_MOST),
)
def test_a_failed_mail_delays_no_resend(asked: int, attempts: int, slow: list[int]) -> None:
    at = asked
    for attempt in range(1, attempts + 1):
        due = next_attempt_at(attempt, Instant(at + slow[attempt]))
        assert due is not None
        at = due
    last = last_mail_at(Instant(at), None, attempts, Instant(asked + TTL_US))
    assert last is not None
    assert resend_wait(last, Instant(asked + RESEND_EVERY_US)) == 0
    assert resend_wait(last, Instant(asked + RESEND_EVERY_US - 1)) == 1


@given(last=st.integers(0, 2**50), passed=st.integers(0, 10**9))
def test_an_invitation_is_sent_at_most_once_a_minute(last: int, passed: int) -> None:
    wait = resend_wait(Instant(last), Instant(last + passed))
    assert wait == max(RESEND_EVERY_US - passed, 0)
