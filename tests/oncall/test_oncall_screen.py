"""The on-call screen and its forms: the first line names the person on call, and all forms work
without scripts."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest

from leadline.storage.core.instant import DAY, HOUR, Instant
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

KIND = "webhook"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def send(api: Api, path: str, form: dict[str, Any], who: str = "editor") -> Any:
    body = urlencode(form, doseq=True).encode()
    return await api.ask(who, "POST", path, data=body, headers=FORM)


async def text_of(answer: Any) -> str:
    return str(await answer.get_data(), "utf-8")


async def seen(api: Api, query: str = "", who: str = "viewer") -> str:
    answer = await api.ask(who, "GET", f"/projects/{api.project}/on-call{query}")
    assert answer.status_code == 200
    return await text_of(answer)


def first_line(page: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]*>", "", found[1]).strip()


def hidden(page: str, name: str) -> list[str]:
    found = re.findall(rf'<input type="hidden" name="{re.escape(name)}" value="([^"]*)">', page)
    return [unescape(value) for value in found if value and "{" not in value]


def turns(page: str) -> list[str]:
    """Returns the texts of the filled participants."""
    found = re.findall(r'name="participant" [^>]*value="([^"]*)"', page)
    return [unescape(value) for value in found if value]


async def test_the_page_without_a_schedule_explains_schedules(api: Api) -> None:
    page = await seen(api)
    assert first_line(page) == "No on-call schedule yet"
    assert "/oncall-schedules/new" not in page
    assert "/oncall-schedules/new" in await seen(api, who="editor")


async def test_the_first_line_names_the_person_and_the_end_in_local_time(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    first = await api.new_schedule(mara, tomas, shift_seconds=86_400, timezone="Europe/Berlin")
    page = await seen(api)
    # Now is Monday 00:00 UTC.
    assert first_line(page) == "Mara is on call, until Tuesday 01:00"
    assert "Tomás follows. Times are Europe/Berlin." in page
    alone = await api.new_schedule(tomas, anchor_at=Instant(FROZEN_NOW - HOUR))
    page = await seen(api, f"?schedule={alone}")
    assert first_line(page) == "Tomás is on call, until Sunday 11 January, 23:00"
    assert "Tomás continues. Times are UTC." in page
    for query in ("?schedule=nonsense", "?weeks=nonsense", "?weeks=99999999", f"?schedule={first}"):
        assert first_line(await seen(api, query)).startswith("Mara is on call")


async def _hand_off_at(api: Api, at: str) -> None:
    async with api.pool.transaction("hand_off") as tx:
        await tx.execute("update oncall_schedules set anchor_at = %(at)s::timestamptz", at=at)


async def test_a_disabled_channel_of_the_person_on_call_is_a_warning(api: Api) -> None:
    await api.new_schedule(await api.new_channel(name="Mara", enabled=False))
    page = await seen(api)
    assert first_line(page).endswith("but the channel is disabled")
    assert "Pages to it are not sent." in page


async def test_an_override_is_added_in_the_schedule_s_zone_and_taken_back(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    schedule = await api.new_schedule(mara, timezone="Europe/Berlin")
    path = f"/projects/{api.project}/on-call"
    form = {"act": "override", "schedule": schedule, "channel": tomas}
    spans = {"from": "2026-01-05T00:30", "to": "2026-01-05T09:00"}
    answer = await send(api, path, {**form, **spans})
    assert answer.status_code == 303
    page = await seen(api, who="editor")
    assert first_line(page) == "Tomás is on call, until Monday 09:00"
    assert "Override active." in page
    ((uid, starts),) = await api.rows("select uid, starts_at from oncall_overrides")
    assert starts == FROZEN_NOW - HOUR // 2
    backwards = {**form, "from": "2026-01-06T18:00", "to": "2026-01-06T08:00"}
    wrong = await send(api, path, backwards)
    assert wrong.status_code == 400
    page = await text_of(wrong)
    assert "To: must be after From." in page
    assert 'value="2026-01-06T18:00"' in page
    wrong = await send(api, path, {**backwards, "from": "soon"})
    assert "From: must be a day and a time." in await text_of(wrong)
    for local, told in (
        ("2026-03-29T02:00", "does not exist"),
        ("2026-10-25T02:59", "happens twice"),
    ):
        for field, label in (("from", "From"), ("to", "To")):
            spans = {"from": "2026-03-29T00:00", "to": "2026-10-25T06:00", field: local}
            page = await text_of(await send(api, path, {**form, **spans}))
            assert f"{label}: {told} in Berlin" in page
            assert f'value="{local}"' in page
    for act in ("take-back", "take-back"):
        answer = await send(api, path, {"act": act, "schedule": schedule, "override": uid})
    assert answer.status_code == 404
    assert first_line(await seen(api)).startswith("Mara")


async def test_forms_cannot_change_another_project(api: Api) -> None:
    override = await api.new_override()
    schedule = await api.new_schedule()
    mill = f"/projects/{api.projects['acme/mill'][1]}/on-call"
    for form in (
        {"act": "take-back", "override": override},
        {"act": "calendar", "schedule": schedule},
        {"act": "take-back", "override": "x"},
        {"act": "calendar"},
    ):
        assert (await send(api, mill, form)).status_code == 404
    assert await api.rows("select count(*) from oncall_overrides") == [(1,)]
    held = "select count(*) from oncall_schedules where calendar_token_hash is not null"
    assert await api.rows(held) == [(0,)]


async def test_a_calendar_s_address_is_shown_once_and_opens_it(api: Api) -> None:
    schedule = await api.new_schedule()
    form = {"act": "calendar", "schedule": schedule}
    page = await text_of(await send(api, f"/projects/{api.project}/on-call", form))
    found = re.search(r"calendar\.ics\?token=\w+", page)
    assert found is not None
    path = f"/api/v1/oncall-schedules/{schedule}/{found[0]}"
    assert (await api.ask("nobody", "GET", path)).status_code == 200
    assert "token=" not in await seen(api, who="editor")


async def test_a_schedule_is_made_changed_and_deleted_by_its_form(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    new = f"/projects/{api.project}/oncall-schedules/new"
    form = {
        "act": "save",
        "name": "First",
        "shift": "2",
        "unit": "days",
        "anchor": "2026-03-29T03:30",
        "timezone": "Europe/Berlin",
        "participant": [mara, "", tomas, mara, ""],
    }
    more = await text_of(await send(api, new, {**form, "act": "more"}))
    assert more.count('name="participant"') == 6
    for wrong, told in (
        ({"shift": "0"}, "Shift: must be 3600"),
        ({"shift": "x"}, "Shift: must be a whole number"),
        ({"timezone": "Europe/Atlantis"}, "Time zone: is not an IANA time zone"),
        ({"participant": [""]}, "Participants: must have 1 to 100"),
        ({"anchor": ""}, "First hand-off: must be a day and a time"),
        ({"anchor": "2026-03-29T02:30"}, "First hand-off: does not exist in Berlin"),
        ({"anchor": "2026-10-25T02:30"}, "First hand-off: happens twice in Berlin"),
        ({"name": ""}, "Name: must not be blank"),
    ):
        answer = await send(api, new, {**form, **wrong})
        assert answer.status_code == 400
        page = await text_of(answer)
        assert told in page
        assert "Your input is kept below" in page
    assert (await send(api, new, form)).status_code == 303
    ((uid, shift),) = await api.rows("select uid, shift_seconds from oncall_schedules")
    assert shift == 2 * 86_400
    edit = f"/oncall-schedules/{uid}/edit"
    page = await text_of(await api.ask("editor", "GET", edit))
    assert turns(page) == [f"Mara, {KIND}", f"Tomás, {KIND}", f"Mara, {KIND}"]
    assert "<option selected>days</option>" in page
    form |= {"participant": [tomas], "anchor": "2026-01-05T09:00:30"}
    assert (await send(api, edit, form)).status_code == 303
    assert 'value="2026-01-05T09:00:30.000"' in await text_of(await api.ask("editor", "GET", edit))
    # A form that is saved unchanged keeps a hand-off in the second of two equal hours.
    await _hand_off_at(api, "2026-10-25T01:30:00Z")
    assert 'value="2026-10-25T02:30"' in await text_of(await api.ask("editor", "GET", edit))
    assert (await send(api, edit, {**form, "anchor": "2026-10-25T02:30"})).status_code == 303
    assert await api.rows(
        "select anchor_at = '2026-10-25T01:30:00Z'::timestamptz from oncall_schedules"
    ) == [(True,)]
    policy = await api.new_policy(schedule=uid)
    refused = await send(api, edit, {**form, "act": "delete"})
    assert "In use; remove it from" in await text_of(refused)
    async with api.pool.transaction("unname") as tx:
        await tx.execute("delete from escalation_policies where uid = %(uid)s", uid=policy)
    assert (await send(api, edit, {**form, "act": "delete"})).status_code == 303
    assert await api.rows("select count(*) from oncall_schedules") == [(0,)]


async def test_a_shown_form_can_be_sent_back_unchanged(api: Api) -> None:
    one, two = await api.new_channel(), await api.new_channel()
    schedule = await api.new_schedule(
        one, two, one, timezone="America/St_Johns", anchor_at=Instant(FROZEN_NOW - 200 * DAY)
    )
    table = "select name, anchor_at, shift_seconds, timezone from oncall_schedules"
    before = await api.rows(table), await api.rows("select * from oncall_participants")
    page = await text_of(await api.ask("editor", "GET", f"/oncall-schedules/{schedule}/edit"))
    form: dict[str, Any] = dict(
        re.findall(r'<input id="\w+" name="(\w+)"[^>]* value="([^"]*)"', page)
    )
    form["participant"] = turns(page)
    form["participant_was"] = known = hidden(page, "participant_was")[:3]
    form |= {"act": "save", "unit": "weeks"}
    assert [value.partition(" ")[0] for value in known] == [str(one), str(two), str(one)]
    assert (await send(api, f"/oncall-schedules/{schedule}/edit", form)).status_code == 303
    assert (await api.rows(table), await api.rows("select * from oncall_participants")) == before


async def test_a_policy_is_created_changed_and_deleted_by_its_form(api: Api) -> None:
    mara = await api.new_channel(name="Mara")
    schedule = await api.new_schedule(mara, name="First")
    new = f"/projects/{api.project}/escalation-policies/new"
    form = {
        "act": "save",
        "name": "Pages",
        "repeat_last": "true",
        "ack_timeout": "30",
        "after-0": "0",
        "targets-0": [schedule],
        # A blank row between two steps is ignored.
        "after-2": "300",
        "targets-2": [mara],
        # A typed name becomes a target with any button.
        "add.targets-2": "firs",
    }
    for wrong, told in (
        ({"after-2": "x"}, "Step 2, After: must be a whole number"),
        ({"after-0": "301"}, "Step 2, After: must be at least"),
        ({"targets-2": [], "add.targets-2": ""}, "Step 2, Targets: must have 1 to 20"),
        ({"targets-2": ["x"]}, "Step 2, Targets: does not exist"),
        ({"add.targets-2": "Nobody"}, "Step 2, Targets: names no target of this project"),
        ({"name": " "}, "Name: must not be blank"),
        ({"ack_timeout": "4"}, "Acknowledgement expires: must be empty, or 5 to 10080 minutes."),
        ({"ack_timeout": "x"}, "Acknowledgement expires: must be empty, or 5 to 10080 minutes."),
    ):
        answer = await send(api, new, {**form, **wrong})
        assert answer.status_code == 400
        assert told in await text_of(answer)
    assert (await send(api, new, form)).status_code == 303
    page = await seen(api)
    assert "who is on call by First" in page
    assert "Mara, who is on call by First; then repeatedly until acknowledged" in page
    ((uid, after, timeout),) = await api.rows(
        "select uid, after_seconds, ack_timeout_seconds from escalation_policies"
    )
    assert (after, timeout) == ([0, 300], 1_800)
    edit = f"/escalation-policies/{uid}/edit"
    page = await text_of(await api.ask("editor", "GET", edit))
    assert hidden(page, "targets-0") == [str(schedule)]
    assert hidden(page, "targets-1") == [str(mara), str(schedule)]
    # A policy is no target of itself.
    assert 'data-text="Pages, escalation policy"' not in page
    assert "checked" in page
    assert (
        'name="ack_timeout" type="text" inputmode="numeric" autocomplete="off" maxlength="6" \
value="30"'
        in page
    )
    more = await text_of(await send(api, edit, {**form, "act": "more"}))
    assert more.count('name="after-') == 4
    await api.new_monitor(escalation_policy_id=str(uid))
    refused = await send(api, edit, {**form, "act": "delete"})
    assert "In use; remove it from" in await text_of(refused)
    async with api.pool.transaction("unname") as tx:
        await tx.execute("update monitors set escalation_policy = null")
    assert (await send(api, edit, {**form, "act": "delete"})).status_code == 303


@pytest.mark.parametrize("who", ["viewer", "editor"])
async def test_only_editors_are_given_buttons(api: Api, who: str) -> None:
    await api.new_override()
    await api.new_policy()
    page = await seen(api, who=who)
    for mark in (
        "Remove override",
        "Add override",
        "/edit",
        "Create calendar URL",
        "Add escalation policy",
    ):
        assert (mark in page) is (who == "editor"), mark


async def test_the_form_of_a_monitor_sets_its_policy_and_channels(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    policy = await api.new_policy(mara)
    new = f"/projects/{api.project}/monitors/new"
    form: dict[str, Any] = {
        "type": "push",
        "fields": "push",
        "act": "save",
        "name": "Job",
        "interval_seconds": "60",
        "grace_seconds": "60",
        "failure_threshold": "1",
        "renotify_seconds": "600",
        "auto_incident": "true",
        "escalation_policy_id": str(policy),
        "channels": [str(mara)],
    }
    assert (await send(api, new, form)).status_code == 303
    monitor = await only_monitor(api)
    assert monitor["escalation_policy_id"] == str(policy)
    assert (monitor["auto_incident"], monitor["renotify_seconds"]) == (True, 600)
    edit = f"/monitors/{monitor['id']}/edit"
    page = await text_of(await api.ask("editor", "GET", edit))
    assert f'<option value="{policy}" selected>' in page
    assert re.search(rf'name="channels"[^>]* value="{mara}"', page)
    assert not re.search(rf'name="channels"[^>]* value="{tomas}"', page)
    wrong = {**form, "renotify_seconds": "59"}
    assert "must be 0 or 60 to" in await text_of(await send(api, edit, wrong))
    del form["auto_incident"]
    refused = await send(api, edit, form)
    assert refused.status_code == 400
    assert "Escalation policy: needs auto_incident" in await text_of(refused)
    assert await attached(api) == ["Mara"]
    form |= {"escalation_policy_id": "", "channels": [str(tomas)], "renotify_seconds": "0"}
    assert (await send(api, edit, form)).status_code == 303
    monitor = await only_monitor(api)
    assert "escalation_policy_id" not in monitor
    assert monitor["auto_incident"] is False
    assert await attached(api) == ["Tomás"]


async def only_monitor(api: Api) -> Any:
    answer = await api.ask("viewer", "GET", f"/api/v1/projects/{api.project}/monitors")
    (monitor,) = await answer.get_json()
    return monitor


async def attached(api: Api) -> list[str]:
    rows = await api.rows(
        "select c.name from monitor_channels m "
        "join notification_channels c on c.org = m.org and c.id = m.channel order by c.name"
    )
    return [name for (name,) in rows]


async def test_a_dense_calendar_lists_the_names_separately(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    weekly = await api.new_schedule(mara, tomas)
    hourly = await api.new_schedule(mara, tomas, shift_seconds=3_600)
    shown = r'<rect class="p(\d)"[^>]*/></svg>(\w+)</li>'
    assert re.findall(shown, await seen(api, f"?schedule={weekly}")) == []
    page = await seen(api, f"?schedule={hourly}")
    assert re.findall(shown, page) == [("1", "Mara"), ("2", "Tomás")]
    assert len(page.encode()) < 100_000


async def test_a_week_on_which_clocks_change_is_drawn_by_the_clock_on_the_wall(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    # 12 weeks on from Monday, 5 January the clocks of Berlin go forward, on Sunday, 29 March.
    await api.new_schedule(
        mara, tomas, timezone="Europe/Berlin", anchor_at=Instant(FROZEN_NOW + 8 * HOUR)
    )
    page = await seen(api, "?weeks=11")
    assert "23 March" in page
    # The week has 167 hours, and its hand-off is on Monday at nine.
    share = f"{100 * 9 / 167:.2f}%"
    assert f'<line class="hand-off" x1="{share}"' in page
    assert f'<line class="hand-off" x1="{100 * 9 / 168:.2f}%"' in page
    assert "Mon 30 March 09:00" in page


async def test_the_form_adds_a_layer_and_the_screen_states_gaps(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    first = await api.new_schedule(mara, name="First", timezone="Europe/Berlin")
    path = f"/oncall-schedules/{first}/edit"
    form = {"name": "First", "shift": "1", "unit": "weeks", "timezone": "Europe/Berlin"}
    form |= {"anchor": "2026-01-05T01:00", "participant": str(mara), "hours": "mon-fri 9-17"}
    page = await text_of(await send(api, path, {**form, "act": "layer"}))
    assert 'name="layer-1-name"' in page
    layer = {"name": "Night", "shift": "1", "unit": "days", "timezone": "UTC"}
    layer |= {"anchor": "2026-01-05T00:00", "participant": str(tomas), "hours": "20:00 - 24:00"}
    both = form | {f"layer-1-{name}": value for name, value in layer.items()}
    wrong = await text_of(await send(api, path, {**both, "layer-1-hours": "noon", "act": "save"}))
    assert "Layer 2, Hours: &#39;noon&#39; is not such as mon-fri 9-17." in wrong
    assert (await send(api, path, {**both, "act": "save"})).status_code == 303
    page = await text_of(await api.ask("editor", "GET", path))
    assert "mon-fri 09:00-17:00</textarea>" in page
    assert "mon-sun 20:00-24:00</textarea>" in page
    removed = await text_of(await send(api, path, {**both, "act": "remove-layer-1-"}))
    assert "layer-1-name" not in removed
    # Now is Monday 01:00 in Berlin.
    page = await seen(api)
    assert first_line(page) == "Nobody is on call until Monday 09:00"
    assert "No person is on call in parts of the next four weeks." in page
    assert "<li>Monday 17:00 to Monday 21:00</li>" in page
    assert "Mara follows. " in page
    form |= {"ends": "2026-01-06T00:00", "act": "save"}
    assert (await send(api, path, form)).status_code == 303
    assert "<li>now to Monday 09:00</li><li>Monday 17:00 without an end</li>" in await seen(api)


async def test_a_cover_request_is_made_accepted_and_withdrawn_on_the_screen(api: Api) -> None:
    people = [str(api.users[name][1]) for name in ("editor", "project_admin")]
    first = await api.new_schedule(*map(UUID, people), shift_seconds=86_400)
    here = f"/projects/{api.project}/on-call"
    form = {"schedule": first, "act": "cover", "cover-from": "2026-01-07T00:00"}
    form |= {"cover-to": "2026-01-08T00:00", "cover-note": "A wedding"}
    wrong = await send(api, here, {**form, "cover-from": "2026-01-06T00:00"})
    assert wrong.status_code == 400
    assert "From: the person must be on call in the whole span." in await text_of(wrong)
    for _ in range(2):
        assert (await send(api, here, form)).status_code == 303
    page = await seen(api, who="project_admin")
    assert "<b>editor</b> asks everybody" in page
    assert page.count("Accept</button>") == 2
    assert "Accept</button>" not in await seen(api, who="editor")
    # Neither named nor a participant.
    assert "Accept</button>" not in await seen(api, who="viewer")
    requests = list(dict.fromkeys(re.findall(r'name="request" value="([^"]+)"', page)))
    accept = {"schedule": first, "request": requests[0], "act": "accept-cover"}
    assert (await send(api, f"{here}/accept", accept, "viewer")).status_code == 403
    assert (await send(api, f"{here}/accept", accept, "project_admin")).status_code == 303
    late = await send(api, f"{here}/accept", {**accept, "request": requests[1]}, "project_admin")
    assert "The duties have changed since the request" in await text_of(late)
    withdraw = {**accept, "request": requests[1], "act": "withdraw-cover"}
    assert (await send(api, here, withdraw)).status_code == 303
    page = await seen(api)
    assert "<b>editor</b>: project_admin takes over" in page
    assert "A wedding" in page


async def test_a_participant_with_the_role_viewer_accepts_on_the_screen(api: Api) -> None:
    people = [str(api.users[name][1]) for name in ("editor", "viewer")]
    first = await api.new_schedule(*map(UUID, people), shift_seconds=86_400)
    here = f"/projects/{api.project}/on-call"
    form = {"schedule": first, "act": "cover", "cover-from": "2026-01-07T00:00"}
    assert (await send(api, here, {**form, "cover-to": "2026-01-08T00:00"})).status_code == 303
    page = await seen(api, who="viewer")
    assert page.count("Accept</button>") == 1
    assert "Withdraw</button>" not in page
    (request,) = re.findall(r'name="request" value="([^"]+)"', page)
    accept = {"schedule": first, "request": request, "act": "accept-cover"}
    assert (await send(api, here, accept, "viewer")).status_code == 403
    assert (await send(api, f"{here}/accept", accept, "viewer")).status_code == 303
    assert "<b>editor</b>: viewer takes over" in await seen(api, who="viewer")


async def test_the_form_turns_the_summary_of_hand_offs_on(api: Api) -> None:
    first = await api.new_schedule()
    path = f"/oncall-schedules/{first}/edit"
    page = await text_of(await api.ask("editor", "GET", path))
    turn = re.findall(r'name="participant_was" value="([^"]+)"', page)[0]
    form = {"name": "First", "shift": "1", "unit": "weeks", "anchor": "2026-01-05T00:00"}
    form |= {"participant": turn.partition(" ")[0], "hand_off_email": "1", "act": "save"}
    assert (await send(api, path, form)).status_code == 303
    assert 'value="1" checked' in await text_of(await api.ask("editor", "GET", path))
