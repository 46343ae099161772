"""People of a bundle: members get proposed contact methods, and other addresses an invitation."""

from typing import Any

import pytest
import trio

from leadline.daemon.loops.bundles.proposal_adopter import ProposalAdopter
from leadline.storage.bundles.rules.bundle_people import PROPOSED_MOST
from leadline.storage.bundles.transactions import adopt_proposals
from leadline.storage.notifications.rules.contact_method import METHODS_MOST
from tests.bundles.test_bundle_background_api import ASYNC, runner
from tests.bundles.test_bundle_on_call_api import bundle
from tests.bundles.test_bundles_api import TAKE, applied, ask, counted, export, release
from tests.support.app.cast import Api
from tests.support.app.serving import call

SMS = {"kind": "sms", "address": "+49 (0)170 1234567", "label": "Mobile"}
MAIL = {"kind": "email", "address": "other@example.test"}
CALL = {"kind": "voice", "address": "+491701234567"}
METHODS = "/me/contact-methods"


async def mail_of(api: Api, who: str) -> str:
    rows = await api.rows("select email from users where uid = %(u)s", u=api.users[who][1])
    return str(rows[0][0])


def person(email: str, *methods: dict[str, str], **given: str) -> dict[str, Any]:
    return {"email": email, "contact_methods": list(methods), **given}


def of_people(**people: dict[str, Any]) -> dict[str, Any]:
    return bundle(people=people)


async def methods_of(api: Api, who: str = "viewer") -> list[dict[str, Any]]:
    return list(await call(api, "GET", METHODS, who=who))


async def test_a_member_gets_proposed_methods_that_are_not_verified(api: Api) -> None:
    email = (await mail_of(api, "viewer")).upper()
    assert await applied(api, of_people(v=person(email, SMS, MAIL))) == {"v": "create"}
    made = await methods_of(api)
    assert [(one["kind"], one["label"], one["config"]) for one in made] == [
        ("sms", "Mobile", {"to": "+491701234567"}),
        ("email", "Mail", {"to": "other@example.test"}),
    ]
    assert {one["proposed_by"] for one in made} == {"Acme / acme shop"}
    assert not any("verified_at" in one for one in made)
    path = f"{METHODS}/{made[0]['id']}"
    answer = await call(api, "POST", f"{path}/test", None, 400, who="viewer")
    assert answer == {"error": "method: is not verified"}
    # Nothing was sent, and no code is valid before the person requests one.
    assert await api.rows("select count(*) from outbox") == [(0,)]
    assert await api.rows("select 1 from contact_methods where code_hash is not null") == []
    answer = await call(api, "POST", f"{path}/verify", {"code": "000000"}, 400, who="viewer")
    assert answer["error"].startswith("code: has expired")


async def test_a_deleted_proposal_does_not_come_back_and_a_new_one_comes(api: Api) -> None:
    email = await mail_of(api, "viewer")
    await applied(api, of_people(v=person(email, SMS)))
    (made,) = await methods_of(api)
    await call(api, "DELETE", f"{METHODS}/{made['id']}", None, 204, who="viewer")
    again = person(email, {**SMS, "label": "Phone"})
    assert await applied(api, of_people(v=again)) == {"v": "update"}
    assert await methods_of(api) == []
    assert await applied(api, of_people(v=person(email, SMS, MAIL))) == {"v": "update"}
    assert [one["kind"] for one in await methods_of(api)] == ["email"]
    # A method that the person has is not proposed a second time, and the plan does not tell.
    body = {"kind": "voice", "label": "own", "config": {"to": CALL["address"]}}
    await call(api, "POST", METHODS, body, 201, who="viewer")
    assert await applied(api, of_people(v=person(email, CALL))) == {"v": "update"}
    assert [one["label"] for one in await methods_of(api)] == ["Mail", "own"]


async def test_a_deleted_proposal_does_not_come_back_after_a_release_or_an_orphan(api: Api) -> None:
    email = await mail_of(api, "viewer")
    await applied(api, of_people(v=person(email, SMS)))
    (made,) = await methods_of(api)
    await call(api, "DELETE", f"{METHODS}/{made['id']}", None, 204, who="viewer")
    await release(api, {"people": ["v"]})
    assert await applied(api, of_people(v=person(email, SMS))) == {"v": "create"}
    assert await applied(api, of_people()) == {"v": "orphan"}
    assert await applied(api, of_people(v=person(email, SMS))) == {"v": "create"}
    assert await methods_of(api) == []
    # The notes are bounded.
    async with api.pool.transaction("note") as tx:
        await tx.execute(
            "insert into proposed_methods select u.id, int4send(n), '2020-01-01'"
            " from users u, generate_series(1, 300) n where u.email = %(e)s",
            e=email,
        )
    await applied(api, of_people(v=person(email, SMS, MAIL)))
    assert await api.rows("select count(*) from proposed_methods") == [(200,)]
    assert [one["kind"] for one in await methods_of(api)] == ["email"]


async def test_proposals_leave_room_for_the_person(api: Api) -> None:
    email = await mail_of(api, "viewer")
    many = [{"kind": "sms", "address": f"+4930{n:06d}"} for n in range(3 * PROPOSED_MOST)]
    for at in range(0, len(many), PROPOSED_MOST):
        await applied(api, of_people(v=person(email, *many[at : at + PROPOSED_MOST])))
    assert len(await methods_of(api)) == PROPOSED_MOST == METHODS_MOST // 2
    answer = await ask(api, "plan", of_people(v=person(email, *many)), 400)
    assert answer["error"].startswith("people.v.contact_methods: must have at most 10 entries")


async def test_only_who_may_invite_names_an_address_that_is_no_member(api: Api) -> None:
    """The answer is the same for an account of another organization and for no account."""
    await api.new_user("stranger@example.test", "hash")
    said = []
    for email in ("stranger@example.test", "nobody@example.test"):
        answer = await ask(api, "plan", of_people(x=person(email, SMS)), 400)
        assert answer == await ask(api, "apply", of_people(x=person(email, SMS)), 400)
        said.append(answer["error"])
        path = f"/projects/{api.project}/bundle/plan"
        plan = await call(api, "POST", path, of_people(x=person(email)), who="org_admin")
        (change,) = plan["changes"]
        assert [one["name"] for one in change["fields"]] == ["email", "invite"]
    assert set(said) == {
        "people.x.email: is not a member of the project: an administrator of the organization"
        " must invite this address"
    }
    assert await api.rows("select count(*) from invitations where email like '%%.test'") == [(0,)]


async def test_an_invitation_carries_the_methods_until_it_is_accepted(api: Api) -> None:
    path, email = f"/projects/{api.project}/bundle/apply", "anna@new.test"
    document = of_people(anna=person(email, SMS, MAIL, name="Anna", role="viewer"))
    done = await call(api, "POST", path, document, who="org_admin")
    assert [one["action"] for one in done["changes"]] == ["create"]
    listing = f"/organizations/{api.org}/invitations"
    rows = await call(api, "GET", listing, who="org_admin")
    (invited,) = [one for one in rows if one["email"] == email]
    assert (invited["role"], invited["project_id"], invited["mail"]) == (
        "viewer",
        str(api.project),
        "waiting",
    )
    assert await api.rows("select count(*) from users where email = %(e)s", e=email) == [(0,)]
    # The invitation is open, so that also an administrator of the project applies the bundle.
    assert await applied(api, document) == {"anna": "unchanged"}
    again = f"/invitations/{invited['id']}/resend"
    url = (await call(api, "POST", again, None, 202, who="org_admin"))["accept_url"]
    token = url.rpartition("/")[2]
    page = await (await api.ask("nobody", "GET", f"/invitations/{token}")).get_data(as_text=True)
    assert 'value="Anna"' in page
    body = {"password": "a long password", "display_name": "Anna"}
    await call(api, "POST", f"/public/invitations/{token}/accept", body, who="nobody")
    await ProposalAdopter(api.pool).pass_once()
    stored = await api.rows(
        "select m.kind, m.verified_at from contact_methods m join users u on u.id = m.user_id"
        " where u.email = %(e)s order by m.id",
        e=email,
    )
    assert stored == [("sms", None), ("email", None)]
    assert await applied(api, document) == {"anna": "unchanged"}
    # A later membership in another project brings no method a second time.
    assert await api.rows("select pending::text from bundle_people") == [("[]",)]


async def test_an_expired_invitation_is_sent_again_by_the_next_application(api: Api) -> None:
    path, document = f"/projects/{api.project}/bundle/apply", of_people(x=person("x@new.test"))
    await call(api, "POST", path, document, who="org_admin")
    async with api.pool.transaction("expire") as tx:
        await tx.execute("delete from invitations where email = 'x@new.test'")
    done = await call(api, "POST", path, document, who="org_admin")
    (change,) = done["changes"]
    assert change["fields"] == [{"name": "invite", "from": False, "to": True}]
    rows = await api.rows("select count(*) from invitations where email = 'x@new.test'")
    assert rows == [(1,)]


async def test_an_unverified_address_receives_its_proposals_once_it_is_verified(api: Api) -> None:
    """An OpenID provider only claims such an address, which can be that of somebody else."""
    email = await mail_of(api, "viewer")
    await set_verified(api, "viewer", is_verified=False)
    # It is the address of a member, so no application invites it.
    assert await applied(api, of_people(v=person(email, SMS))) == {"v": "create"}
    assert await api.rows("select count(*) from invitations") == [(0,)]
    await ProposalAdopter(api.pool).pass_once()
    assert await methods_of(api) == []
    await set_verified(api, "viewer", is_verified=True)
    await ProposalAdopter(api.pool).pass_once()
    assert [one["kind"] for one in await methods_of(api)] == ["sms"]


async def set_verified(api: Api, who: str, *, is_verified: bool) -> None:
    async with api.pool.transaction("claim") as tx:
        given = {"u": api.users[who][1], "is": is_verified}
        await tx.execute("update users set email_verified = %(is)s where uid = %(u)s", **given)


async def test_adoption_waits_for_no_lock_and_leaves_no_account_out(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request holds an account, an application holds a person, and pages have one account."""
    monkeypatch.setattr(adopt_proposals, "ACCOUNTS_AT_ONCE", 1)
    people = {who: await mail_of(api, who) for who in ("viewer", "editor", "org_admin")}
    for who in people:
        await set_verified(api, who, is_verified=False)
    await applied(
        api, of_people(**{who.replace("_", "-"): person(people[who], SMS) for who in people})
    )
    for who in people:
        await set_verified(api, who, is_verified=True)
    async with api.pool.transaction("hold") as tx:
        account = "select from users where email = %(e)s for no key update"
        await tx.execute(account, e=people["viewer"])
        await tx.execute(
            "select from bundle_people where email = %(e)s for update", e=people["editor"]
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ProposalAdopter(api.pool).pass_once)
    assert [len(await methods_of(api, who)) for who in people] == [0, 0, 1]
    await ProposalAdopter(api.pool).pass_once()
    assert [len(await methods_of(api, who)) for who in people] == [1, 1, 1]


async def test_people_are_exported_released_and_forgotten(api: Api) -> None:
    email = await mail_of(api, "viewer")
    await applied(api, of_people(v=person(email, SMS)))
    exported = await export(api)
    assert exported["people"] == {
        "v": {
            "email": email,
            "contact_methods": [{"kind": "sms", "address": "+491701234567", "label": "Mobile"}],
        }
    }
    assert await applied(api, exported, "?name=other") == {"v": "unchanged"}
    # Another bundle changes the entry only with take_over, and never another entry of the address.
    other = of_people(v=person(email, SMS, MAIL))
    answer = await ask(api, "plan", other, 409, "?name=other")
    assert "the bundle default manages it, and contact_methods would change" in answer["error"]
    answer = await ask(api, "plan", of_people(w=person(email)), 409, "?name=other")
    assert answer == {"error": "people.w.email: is the address of v, which another bundle has"}
    taken = await ask(api, "apply", other, query=f"{TAKE}&name=other")
    assert taken["changes"][0]["fields"][0]["name"] == "managed_by"
    assert counted(await release(api, {"people": ["v"]}, query="?name=other")) == {"people": 1}
    assert "people" not in await export(api)
    await applied(api, other)
    assert await applied(api, of_people()) == {"v": "orphan"}
    assert await api.rows("select count(*) from bundle_people") == [(0,)]
    assert len(await methods_of(api)) == 2


async def test_two_bundles_of_two_projects_propose_a_method_once(api: Api) -> None:
    email, mill = await mail_of(api, "editor"), api.projects["acme/mill"][1]
    await applied(api, of_people(e=person(email, SMS)))
    copy = {**of_people(e=person(email, SMS, CALL)), "project": "mill"}
    path = f"/projects/{mill}/bundle/apply"
    await call(api, "POST", path, copy, who="project_admin")
    made = await methods_of(api, "editor")
    assert [(one["kind"], one["proposed_by"]) for one in made] == [
        ("sms", "Acme / acme shop"),
        ("voice", "Acme / acme mill"),
    ]


@pytest.mark.parametrize("who", ["project_admin", "org_admin"])
async def test_in_the_background_the_caller_needs_the_right_to_invite(api: Api, who: str) -> None:
    """The process that applies the bundle has all rights."""
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    document = of_people(x=person("x@new.test", SMS))
    answer = await api.ask(who, "POST", path, document, headers=ASYNC)
    assert answer.status_code == 202
    begun = await answer.get_json()
    await runner(api).pass_once()
    ended = await call(api, "GET", f"/operations/{begun['id']}", who=who)
    invited = await api.rows("select count(*) from invitations where email = 'x@new.test'")
    if who == "org_admin":
        assert (ended["state"], invited) == ("succeeded", [(1,)])
        return
    assert (ended["state"], invited) == ("failed", [(0,)])
    assert ended["error"].startswith("people.x.email: is not a member of the project")
