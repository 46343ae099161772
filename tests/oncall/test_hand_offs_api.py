"""Cover requests, swaps and the summary of a hand-off, with their e-mails."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from leadline.daemon.loops.mailers.oncall_mailer import OnCallMailer
from leadline.probes.net.egress_policy import probe_policy
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_text
from leadline.storage.oncall.tables.oncall_mails import ATTEMPTS_MOST
from tests.accounts.test_invitation_mail_api import text_of
from tests.accounts.test_password_resets_api import BASE
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_api import call, schedule, schedules
from tests.support.app.cast import Api
from tests.support.app.gating import Gated
from tests.support.peers.mail_server import Box, Server, mail_of, serving_mail


@dataclass
class Team:
    """A daily rotation of the editor and the project administrator, which starts now."""

    gated: Gated
    mailer: OnCallMailer
    server: Server
    schedule: str = ""

    @property
    def api(self) -> Api:
        return self.gated.api

    def user(self, name: str) -> str:
        return str(self.api.users[name][1])

    async def begin(self, **further: Any) -> None:
        body = schedule(self.user("editor"), self.user("project_admin"))
        body |= {"shift_seconds": 86_400, "anchor_at": to_text(FROZEN_NOW), **further}
        self.schedule = (await call(self.api, "POST", schedules(self.api), body, 201))["id"]

    async def ask_for_cover(self, status: int = 201, who: str = "editor", **body: Any) -> Any:
        body = {"starts_at": self.at(48), "ends_at": self.at(72), **body}
        path = f"/oncall-schedules/{self.schedule}/cover-requests"
        return await call(self.api, "POST", path, body, status, who=who)

    async def accept(self, made: Any, status: int = 200, who: str = "project_admin") -> Any:
        path = f"/oncall-cover-requests/{made['id']}/accept"
        return await call(self.api, "POST", path, None, status, who=who)

    async def holder(self, hour: int) -> str:
        path = f"/oncall-schedules/{self.schedule}/current?at={self.at(hour)}"
        return str((await call(self.api, "GET", path))["channel_name"])

    def at(self, hour: int) -> str:
        return to_text(Instant(FROZEN_NOW + hour * HOUR))

    async def letters(self) -> list[Any]:
        await self.mailer.pass_once()
        found, self.server.box.letters[:] = list(self.server.box.letters), []
        return found


@pytest.fixture
async def team(gated: Gated) -> AsyncIterator[Team]:
    with serving_mail(Box()) as server:
        context = gated.api.context
        way = replace(context.reach, policy=probe_policy())
        means = replace(context.means, mail=mail_of(way, server.port), to_mail_server=way)
        mailer = OnCallMailer(gated.api.pool, context.keyring, means, BASE)
        yield Team(gated, mailer, server)


async def test_a_swap_exchanges_both_spans_or_nothing(team: Team) -> None:
    await team.begin()
    swap: dict[str, Any] = {
        "return_starts_at": team.at(72),
        "return_ends_at": team.at(96),
        "note": "A wedding",
    }
    made = await team.ask_for_cover(**swap)
    assert "accepted_at" not in made
    (letter,) = await team.letters()
    assert letter["To"] == "project_admin@example.com"
    assert "A wedding" in text_of(letter)
    assert [await team.holder(hour) for hour in (50, 74)] == ["editor", "project_admin"]
    assert (await team.accept(made, 400, who="editor"))["error"].startswith("channel_id: ")
    await team.accept(made, 403, who="viewer")
    done = await team.accept(made)
    assert done["accepted_by_name"] == "project_admin"
    assert [await team.holder(hour) for hour in (50, 74)] == ["project_admin", "editor"]
    assert [await team.holder(hour) for hour in (47, 96)] == ["project_admin", "editor"]
    assert await team.accept(made, 409) == {"error": "cover_accepted"}
    (letter,) = await team.letters()
    assert letter["To"] == "editor@example.com"
    assert letter["Subject"] == "project_admin takes over in First"
    listed = await call(
        team.api, "GET", f"/oncall-schedules/{team.schedule}/cover-requests", who="viewer"
    )
    assert listed == [done]
    await call(team.api, "DELETE", f"/oncall-cover-requests/{made['id']}", None, 409)


async def test_changed_duties_refuse_the_acceptance(team: Team) -> None:
    await team.begin()
    made = await team.ask_for_cover(wanted_id=team.user("org_admin"))
    await team.accept(made, 403)
    over = {"channel_id": team.user("viewer"), "starts_at": team.at(50), "ends_at": team.at(51)}
    await call(team.api, "POST", f"/oncall-schedules/{team.schedule}/overrides", over, 201)
    assert await team.accept(made, 409, who="org_admin") == {"error": "cover_outdated"}
    assert await team.holder(49) == "editor"
    await call(team.api, "DELETE", f"/oncall-cover-requests/{made['id']}", None, 204)
    refused = await team.ask_for_cover(400)
    assert refused["error"].startswith("starts_at: ")
    await team.ask_for_cover(403, who="viewer")
    refused = await team.ask_for_cover(400, return_starts_at=team.at(72))
    assert refused["error"].startswith("return_ends_at: ")
    foreign = await team.ask_for_cover(400, wanted_id=str(await team.api.new_user()))
    assert foreign == {"error": "wanted_id: does not exist in this project"}


async def test_each_hand_off_sends_one_summary_to_the_next_person(team: Team) -> None:
    await team.begin(hand_off_email=True)
    clock = team.gated.clock
    # The first pass only records who is on call.
    assert await team.letters() == []
    await call(
        team.api,
        "POST",
        f"/projects/{team.api.project}/incidents",
        {"title": "Checkout is slow", "impact": "minor"},
        201,
    )
    clock.now = Instant(FROZEN_NOW + DAY - MINUTE)
    assert await team.letters() == []
    clock.now = Instant(FROZEN_NOW + DAY + MINUTE)
    (letter,) = await team.letters()
    assert letter["To"] == "project_admin@example.com"
    assert letter["Subject"].startswith("You are on call by First until Wed 07 Jan 2026")
    text = text_of(letter)
    assert "You take over from editor." in text
    assert "Open incidents: 1" in text
    assert "- Checkout is slow (minor), since Mon 05 Jan 2026" in text
    assert f"{BASE}/projects/{team.api.project}/on-call" in text
    assert await team.letters() == []
    # An override is a hand-off too, and so is its end.
    now = clock.now
    over = {
        "channel_id": team.user("editor"),
        "starts_at": to_text(now),
        "ends_at": to_text(Instant(now + HOUR)),
    }
    await call(team.api, "POST", f"/oncall-schedules/{team.schedule}/overrides", over, 201)
    (letter,) = await team.letters()
    assert letter["To"] == "editor@example.com"
    clock.now = Instant(now + HOUR)
    (letter,) = await team.letters()
    assert letter["To"] == "project_admin@example.com"


async def test_an_edit_before_the_first_pass_is_no_hand_off(team: Team) -> None:
    await team.begin(hand_off_email=True)
    path = f"/oncall-schedules/{team.schedule}"
    body = schedule(team.user("editor"), team.user("project_admin"))
    body |= {"shift_seconds": 86_400, "anchor_at": to_text(FROZEN_NOW), "name": "Renamed"}
    await call(team.api, "PUT", path, {**body, "hand_off_email": True})
    assert await team.letters() == []
    # The state of the hand-offs ends with the setting, also by the edit that changes it.
    await call(team.api, "PUT", path, {**body, "hand_off_email": False})
    assert await team.api.rows("select hand_off_at from oncall_schedules") == [(None,)]
    await call(team.api, "PUT", path, {**body, "hand_off_email": True})
    assert await team.letters() == []


async def test_a_viewer_accepts_what_is_offered(team: Team) -> None:
    """Asked by name or as a participant; others need the role editor."""
    await team.begin()
    open_ = await team.ask_for_cover()
    assert await team.accept(open_, 403, who="viewer") == {"error": "forbidden"}
    assert await team.holder(50) == "editor"
    named = await team.ask_for_cover(wanted_id=team.user("viewer"))
    assert await team.accept(named, 403, who="org_admin") == {"error": "forbidden"}
    await team.accept(named, who="viewer")
    assert await team.holder(50) == "viewer"
    assert await team.accept(open_, 409, who="org_admin") == {"error": "cover_outdated"}
    assert await team.accept(open_, 404, who="stranger") == {"error": "not_found"}


async def test_a_participant_with_the_role_viewer_accepts_an_open_request(team: Team) -> None:
    body = schedule(team.user("editor"), team.user("viewer"))
    body |= {"shift_seconds": 86_400, "anchor_at": to_text(FROZEN_NOW)}
    team.schedule = (await call(team.api, "POST", schedules(team.api), body, 201))["id"]
    made = await team.ask_for_cover()
    await team.accept(made, who="viewer")
    assert await team.holder(50) == "viewer"
    rows = await team.api.rows(
        "select actor_label from audit_entries where action = 'oncall_cover_request.accept'"
    )
    assert len(rows) == 1


async def test_a_token_puts_nobody_on_call(team: Team) -> None:
    await team.begin()
    # The user of a token is its creator, here a participant.
    creator = team.api.users["project_admin"][0]
    async with team.api.pool.transaction("creator") as tx:
        await tx.execute("update api_tokens set created_by = %(creator)s", creator=creator)
    made = await team.ask_for_cover()
    mine: dict[str, Any] = {"starts_at": team.at(24), "ends_at": team.at(48)}
    for who in ("token", "shop_token"):
        assert await team.accept(made, 403, who=who) == {"error": "forbidden"}
        refused = await team.ask_for_cover(400, who=who, **mine)
        assert refused["error"].startswith("channel_id: ")
    assert await team.holder(50) == "editor"
    await team.ask_for_cover(who="token", channel_id=team.user("project_admin"), **mine)
    await team.accept(made)


async def test_a_failed_mail_is_tried_again_and_then_given_up(team: Team) -> None:
    await team.begin()
    await team.ask_for_cover()
    reach = team.mailer.means.mail
    assert reach is not None
    broken = replace(team.mailer, means=replace(team.mailer.means, mail=replace(reach, port=1)))
    for attempt in range(ATTEMPTS_MOST):
        assert await team.api.rows("select attempts from oncall_mails") == [(attempt,)]
        assert await broken.pass_once() == 1
        assert await broken.pass_once() == 0
        team.gated.clock.now = Instant(team.gated.clock.now + HOUR)
    assert await team.api.rows("select attempts from oncall_mails") == []
