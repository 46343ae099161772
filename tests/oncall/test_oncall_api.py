"""Escalation policies, on-call schedules and overrides in the API: complete documents, one refusal
for foreign objects, and no deletion of used objects."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant, to_text
from leadline.storage.oncall.rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    TargetKind,
)
from leadline.storage.oncall.tables.escalation_policies import select_ladder
from leadline.storage.oncall.transactions import (
    edit_escalation_policies as edit_policies,
)
from leadline.storage.oncall.transactions import (
    edit_overrides,
    edit_schedules,
)
from leadline.storage.oncall.transactions.resolve_targets import channels_of_step
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

NOT_OURS = "does not exist in this project"
ANCHOR = to_text(FROZEN_NOW)


async def call(
    api: Api, method: str, path: str, body: Any = None, status: int = 200, who: str = "editor"
) -> Any:
    answer = await api.ask(who, method, f"/api/v1{path}", body)
    data = await answer.get_data()
    assert answer.status_code == status, data
    return await answer.get_json() if data else None


def ladder(*steps: tuple[int, Sequence[tuple[str, object]]], **given: Any) -> dict[str, Any]:
    return {
        "name": "Night",
        "steps": [
            {"after_seconds": after, "targets": [{"type": t, "id": str(uid)} for t, uid in targets]}
            for after, targets in steps
        ],
        **given,
    }


def schedule(*participants: object, **given: Any) -> dict[str, Any]:
    return {
        "name": "First",
        "shift_seconds": 3_600,
        "anchor_at": ANCHOR,
        "participants": [str(uid) for uid in participants],
        **given,
    }


def policies(api: Api) -> str:
    return f"/projects/{api.project}/escalation-policies"


def schedules(api: Api) -> str:
    return f"/projects/{api.project}/oncall-schedules"


async def foreign_channel(api: Api) -> str:
    path = f"/projects/{api.projects['acme/mill'][1]}/notification-channels"
    body = {"type": "webhook", "name": "mill", "config": {"url": "http://127.0.0.1:1/"}}
    return str((await call(api, "POST", path, body, 201))["id"])


async def test_a_policy_is_created_read_replaced_and_deleted_as_a_whole(api: Api) -> None:
    one, two, three = [await api.new_channel() for _ in range(3)]
    roster = await api.new_schedule(three)
    body = ladder((0, [("channel", one), ("schedule", roster)]), (300, [("channel", two)]))
    body |= {"repeat_last": True, "ack_timeout_seconds": 600}
    made = await call(api, "POST", policies(api), body, 201)
    assert made == {
        **body,
        "id": made["id"],
        "project_id": str(api.project),
        "created_at": ANCHOR,
        "updated_at": ANCHOR,
    }
    assert await call(api, "GET", policies(api), who="viewer") == [made]
    path = f"/escalation-policies/{made['id']}"
    after = await call(api, "PUT", path, ladder((60, [("channel", two)]), name="Day"))
    assert (after["name"], after["repeat_last"], len(after["steps"])) == ("Day", False, 1)
    assert await call(api, "GET", policies(api)) == [after]
    await call(api, "DELETE", path, status=204)
    assert await call(api, "GET", policies(api)) == []
    await call(api, "DELETE", path, status=404)
    actions = await api.rows("select action from audit_entries order by id")
    assert [a for (a,) in actions if a.startswith("escalation")] == [
        f"escalation_policy.{verb}" for verb in ("create", "update", "delete")
    ]


async def test_the_rule_reads_what_was_written(api: Api) -> None:
    one, two = await api.new_channel(), await api.new_channel()
    roster = await api.new_schedule(two)
    steps = [(0, [("schedule", roster), ("channel", one)]), (90, [("channel", one)])]
    made = await call(api, "POST", policies(api), ladder(*steps, repeat_last=True), 201)
    keys = dict(await api.rows("select uid, id from notification_channels"))
    ((roster_key,),) = await api.rows("select id from oncall_schedules")
    ((policy, org),) = await api.rows(
        "select id, org from escalation_policies where uid = %(uid)s", uid=UUID(made["id"])
    )
    async with api.pool.transaction("look", read_only=True) as tx:
        found = await select_ladder(tx, org, policy)
        assert await select_ladder(tx, org, policy + 1) is None
    channel = EscalationTarget(TargetKind.CHANNEL, keys[one])
    first = EscalationStep(0, (EscalationTarget(TargetKind.SCHEDULE, roster_key), channel))
    assert found == EscalationPolicy(
        (first, EscalationStep(90 * SECOND, (channel,))), repeat_last=True
    )


async def test_missing_foreign_and_invalid_ids_are_refused_alike(api: Api) -> None:
    ours, foreign = await api.new_channel(), await foreign_channel(api)
    roster = await api.new_schedule(ours)
    for bad in (foreign, str(uuid7()), "mara", "", str(roster)):
        body = ladder((0, [("channel", ours)]), (0, [("channel", ours), ("channel", bad)]))
        refused = await call(api, "POST", policies(api), body, 400)
        assert refused == {"error": f"steps[1].targets[1].id: {NOT_OURS}"}
        refused = await call(api, "POST", schedules(api), schedule(ours, bad), 400)
        assert refused == {"error": f"participants[1]: {NOT_OURS}"}
        over = {"channel_id": bad, "starts_at": ANCHOR, "ends_at": "2026-02-01T00:00:00Z"}
        refused = await call(api, "POST", f"/oncall-schedules/{roster}/overrides", over, 400)
        assert refused == {"error": f"channel_id: {NOT_OURS}"}
    for bad in (foreign, str(uuid7()), str(ours)):
        refused = await call(api, "POST", policies(api), ladder((0, [("schedule", bad)])), 400)
        assert refused == {"error": f"steps[0].targets[0].id: {NOT_OURS}"}
    assert await call(api, "GET", policies(api)) == []


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"steps": []}, "steps"),
        ({"steps": [{"after_seconds": 1, "targets": []}]}, "steps[0].targets"),
        ({"steps": [{"after_seconds": -1, "targets": []}]}, "steps[0].after_seconds"),
        (
            {"steps": [{"after_seconds": 0, "targets": [{"type": "x", "id": "y"}]}]},
            "steps[0].targets[0].type",
        ),
    ],
)
async def test_an_error_of_a_policy_names_its_field(
    api: Api, given: dict[str, Any], field: str
) -> None:
    body = ladder((0, [("channel", await api.new_channel())]))
    refused = await call(api, "POST", policies(api), {**body, **given}, 400)
    assert refused["error"].startswith(field), refused


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"shift_seconds": 3_599}, "shift_seconds"),
        ({"shift_seconds": 366 * 86_400 + 1}, "shift_seconds"),
        ({"participants": []}, "participants"),
        ({"participants": [str(uuid7())] * 101}, "participants"),
        ({"timezone": "Europe/Atlantis"}, "timezone"),
        ({"timezone": "localtime"}, "timezone"),
        ({"anchor_at": "yesterday"}, "anchor_at"),
        ({"anchor_at": "1969-12-31T23:59:59Z"}, "anchor_at"),
        ({"anchor_at": "9999-12-31T23:59:59Z"}, "anchor_at"),
    ],
)
async def test_a_schedule_s_faults_name_their_field(
    api: Api, given: dict[str, Any], field: str
) -> None:
    body = schedule(await api.new_channel())
    refused = await call(api, "POST", schedules(api), {**body, **given}, 400)
    assert refused["error"].startswith(f"{field}: "), refused


async def test_a_schedule_is_made_read_replaced_and_removed_as_a_whole(api: Api) -> None:
    one, two = await api.new_channel(), await api.new_channel()
    body = schedule(one, two, one, timezone="Europe/Berlin")
    made = await call(api, "POST", schedules(api), body, 201)
    stamps = {"created_at": ANCHOR, "updated_at": ANCHOR}
    assert made == {**body, **stamps, "id": made["id"], "project_id": str(api.project)}
    path = f"/oncall-schedules/{made['id']}"
    after = await call(api, "PUT", path, schedule(two, name="Second"))
    assert "timezone" not in after
    assert (after["name"], after["participants"]) == ("Second", [str(two)])
    assert await call(api, "GET", schedules(api), who="viewer") == [after]
    await call(api, "DELETE", path, status=204)
    assert await call(api, "GET", schedules(api)) == []
    actions = await api.rows("select action from audit_entries order by id")
    assert [a for (a,) in actions if a.startswith("oncall")] == [
        f"oncall_schedule.{verb}" for verb in ("create", "update", "delete")
    ]


async def test_the_person_on_call_is_returned_with_the_end_and_the_override(api: Api) -> None:
    one, two, three = [await api.new_channel(name=name) for name in ("A", "B", "C")]
    made = await call(api, "POST", schedules(api), schedule(one, two), 201)
    path = f"/oncall-schedules/{made['id']}"
    ends = to_text(Instant(FROZEN_NOW + HOUR))
    now = {"schedule_id": made["id"], "channel_id": str(one), "channel_name": "A", "until": ends}
    assert await call(api, "GET", f"{path}/current", who="viewer") == now
    found = []
    for channel, starts, ends_ in ((two, -10, 600), (three, 1_800, 2_400), (three, -60, -30)):
        body = {
            "channel_id": str(channel),
            "starts_at": to_text(Instant(FROZEN_NOW + starts * SECOND)),
            "ends_at": to_text(Instant(FROZEN_NOW + ends_ * SECOND)),
        }
        found.append(await call(api, "POST", f"{path}/overrides", body, 201))
        assert {name: found[-1][name] for name in body} == body
    listed = await call(api, "GET", f"{path}/overrides", who="viewer")
    assert listed == sorted(found, key=lambda one: one["starts_at"])
    held = await call(api, "GET", f"{path}/current")
    assert held["channel_name"] == "B"
    assert held["override_id"] == found[0]["id"]
    assert held["until"] == found[0]["ends_at"]
    await call(api, "DELETE", f"/oncall-overrides/{found[0]['id']}", status=204)
    await call(api, "DELETE", f"/oncall-overrides/{found[0]['id']}", status=404)
    assert await call(api, "GET", f"{path}/current") == {**now, "until": found[1]["starts_at"]}


@pytest.mark.parametrize(
    ("starts", "ends", "field"),
    [
        (0, 0, "ends_at: must be after starts_at"),
        (5, 0, "ends_at: must be after starts_at"),
        (0, 366 * DAY + 1_000, "ends_at: must be at most 366 days"),
    ],
)
async def test_an_override_s_span_is_bounded(api: Api, starts: int, ends: int, field: str) -> None:
    channel = await api.new_channel()
    body = {
        "channel_id": str(channel),
        "starts_at": to_text(Instant(FROZEN_NOW + starts * 1_000)),
        "ends_at": to_text(Instant(FROZEN_NOW + ends)),
    }
    path = f"/oncall-schedules/{await api.new_schedule(channel)}/overrides"
    assert (await call(api, "POST", path, body, 400))["error"].startswith(field)


async def test_a_used_channel_cannot_be_deleted_and_an_unused_one_can(api: Api) -> None:
    in_ladder, takes_part, comes, was = [await api.new_channel() for _ in range(4)]
    roster = await api.new_schedule(takes_part)
    policy = await api.new_policy(in_ladder)
    for channel, starts, ends in ((comes, 0, 1), (was, -2, 0)):
        body = {
            "channel_id": str(channel),
            "starts_at": to_text(Instant(FROZEN_NOW + starts * SECOND)),
            "ends_at": to_text(Instant(FROZEN_NOW + ends * SECOND)),
        }
        await call(api, "POST", f"/oncall-schedules/{roster}/overrides", body, 201)
    for channel in (in_ladder, takes_part, comes):
        refused = await call(api, "DELETE", f"/notification-channels/{channel}", status=409)
        assert refused == {"error": "in_use"}
    # A past override does not count as a use and is deleted with the channel.
    await call(api, "DELETE", f"/notification-channels/{was}", status=204)
    left = await call(api, "GET", f"/oncall-schedules/{roster}/overrides")
    assert [one["channel_id"] for one in left] == [str(comes)]
    second = await api.new_policy(schedule=roster)
    assert await call(api, "DELETE", f"/oncall-schedules/{roster}", status=409) == {
        "error": "in_use"
    }
    monitor = await api.new_monitor(escalation_policy_id=str(policy))
    assert await call(api, "DELETE", f"/escalation-policies/{policy}", status=409) == {
        "error": "in_use"
    }
    await call(api, "PATCH", f"/monitors/{monitor.uid}", {"escalation_policy_id": None})
    for path in (
        f"/escalation-policies/{policy}",
        f"/escalation-policies/{second}",
        f"/oncall-schedules/{roster}",
        *(f"/notification-channels/{uid}" for uid in (in_ladder, takes_part, comes)),
    ):
        await call(api, "DELETE", path, status=204)


async def test_a_project_is_deleted_with_its_on_call_objects(api: Api) -> None:
    await api.new_override()
    await api.new_policy(schedule=await api.new_schedule())
    await call(api, "DELETE", f"/projects/{api.project}", status=204, who="org_admin")
    for table in ("escalation_targets", "oncall_participants", "oncall_overrides"):
        assert await api.rows(f"select count(*) from {table}") == [(0,)]


async def test_a_monitor_with_a_policy_of_its_project_needs_incidents(api: Api) -> None:
    policy = str(await api.new_policy())
    monitors = f"/projects/{api.project}/monitors"
    body = {"name": "m", "type": "push", "escalation_policy_id": policy}
    made = await call(api, "POST", monitors, body, 201)
    assert made["escalation_policy_id"] == policy
    path = f"/monitors/{made['id']}"
    assert (await call(api, "PATCH", path, {"name": "n"}))["escalation_policy_id"] == policy
    assert (await call(api, "GET", monitors, who="viewer"))[0]["escalation_policy_id"] == policy
    for clears in (None, ""):
        await call(api, "PATCH", path, {"escalation_policy_id": policy})
        assert "escalation_policy_id" not in await call(
            api, "PATCH", path, {"escalation_policy_id": clears}
        )
    needs = "escalation_policy_id: needs auto_incident"
    lonely = {**body, "name": "k", "auto_incident": False}
    assert (await call(api, "POST", monitors, lonely, 400))["error"].startswith(needs)
    await call(api, "PATCH", path, {"escalation_policy_id": policy})
    for change in (
        {"auto_incident": False},
        {"auto_incident": False, "escalation_policy_id": policy},
    ):
        assert (await call(api, "PATCH", path, change, 400))["error"].startswith(needs)
    cleared = {"auto_incident": False, "escalation_policy_id": ""}
    assert (await call(api, "PATCH", path, cleared))["auto_incident"] is False


async def test_a_missing_and_a_foreign_policy_of_a_monitor_are_refused_alike(
    api: Api,
) -> None:
    monitor = await api.new_monitor("acme/mill")
    foreign = str(await api.new_policy())
    refusals = {
        (await call(api, "PATCH", f"/monitors/{monitor.uid}", {"escalation_policy_id": bad}, 400))[
            "error"
        ]
        for bad in (foreign, str(uuid7()), "mara")
    }
    assert refusals == {f"escalation_policy_id: {NOT_OURS}"}


async def test_the_numbers_of_policies_schedules_and_overrides_are_limited(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_policies, "POLICIES_OF_PROJECT_MOST", 1)
    monkeypatch.setattr(edit_schedules, "SCHEDULES_OF_PROJECT_MOST", 1)
    monkeypatch.setattr(edit_overrides, "COMING_MOST", 1)
    monkeypatch.setattr(edit_overrides, "PAST_KEPT", 2)
    channel = await api.new_channel()
    body = ladder((0, [("channel", channel)]))
    await call(api, "POST", policies(api), body, 201)
    assert await call(api, "POST", policies(api), body, 409) == {"error": "policy_quota"}
    made = await call(api, "POST", schedules(api), schedule(channel), 201)
    refused = await call(api, "POST", schedules(api), schedule(channel), 409)
    assert refused == {"error": "schedule_quota"}
    path = f"/oncall-schedules/{made['id']}/overrides"
    past = [await override(api, path, channel, -9 + number) for number in range(4)]
    coming = await override(api, path, channel, 1)
    assert [one["id"] for one in await call(api, "GET", path)] == [past[3]["id"], coming["id"]]
    assert (await override(api, path, channel, 2, 409)) == {"error": "override_quota"}


async def override(api: Api, path: str, channel: UUID, hour: int, status: int = 201) -> Any:
    """Creates an override of one hour that begins in `hour` hours."""
    starts = Instant(FROZEN_NOW + hour * HOUR)
    body = {
        "channel_id": str(channel),
        "starts_at": to_text(starts),
        "ends_at": to_text(Instant(starts + HOUR)),
    }
    return await call(api, "POST", path, body, status)


async def test_a_step_pages_each_channel_and_person_on_call_once(api: Api) -> None:
    one, two, three = [await api.new_channel() for _ in range(3)]
    roster = await api.new_schedule(one, two, shift_seconds=3_600)
    await override(api, f"/oncall-schedules/{roster}/overrides", three, 1)
    keys = dict(await api.rows("select uid, id from notification_channels"))
    ((key, org),) = await api.rows("select id, org from oncall_schedules")
    targets = [
        EscalationTarget(TargetKind.SCHEDULE, key),
        EscalationTarget(TargetKind.CHANNEL, keys[one]),
    ]
    async with api.pool.transaction("look", read_only=True) as tx:
        found = [
            await channels_of_step(tx, org, targets, Instant(FROZEN_NOW + hour * HOUR))
            for hour in range(4)
        ]
        gone = [EscalationTarget(TargetKind.SCHEDULE, key + 1), *targets]
        assert await channels_of_step(tx, org, gone, FROZEN_NOW) == [keys[one]]
    a, b, c = keys[one], keys[two], keys[three]
    assert found == [[a], [c, a], [a], [b, a]]


async def test_a_changed_policy_is_evaluated_again_for_unacknowledged_incidents(
    api: Api,
) -> None:
    channel = await api.new_channel()
    policy = await api.new_policy(channel)
    org, project = api.orgs["acme"][0], api.projects["acme/shop"][0]
    for name, status, acked in (
        ("open", "investigating", False),
        ("taken", "investigating", True),
        ("over", "resolved", False),
    ):
        async with api.pool.transaction("incident") as tx:
            await tx.execute(
                "insert into incidents (org, uid, project, seq, title, status, impact, source, "
                "started_at, resolved_at, acknowledged_at, escalation_policy, created_at, "
                "updated_at) select %(org)s, %(uid)s, %(project)s, 1, %(name)s, %(status)s, "
                "'major', 'manual', now(), case when %(status)s = 'resolved' then now() end, "
                "case when %(acked)s then now() end, id, now(), now() from escalation_policies",
                org=org,
                uid=uuid7(),
                project=project,
                name=name,
                status=status,
                acked=acked,
            )
    await call(api, "PUT", f"/escalation-policies/{policy}", ladder((9, [("channel", channel)])))
    looked = await api.rows("select title from incidents where escalate_at is not null")
    assert looked == [("open",)]
    # A policy can be deleted although incidents use it; their escalation stops.
    await call(api, "DELETE", f"/escalation-policies/{policy}", status=204)
    assert await api.rows("select distinct escalation_policy from incidents") == [(None,)]


async def test_concurrent_edits_are_each_complete(api: Api) -> None:
    channels = [await api.new_channel() for _ in range(3)]
    roster = await api.new_schedule(channels[0])
    policy = await api.new_policy(channels[0])

    async def write(number: int) -> None:
        named = channels[: number + 1]
        await call(api, "PUT", f"/oncall-schedules/{roster}", schedule(*named, name=f"{number}"))
        steps = [(0, [("channel", uid)]) for uid in named]
        await call(api, "PUT", f"/escalation-policies/{policy}", ladder(*steps, name=f"{number}"))

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(write, number)
    (one,) = await call(api, "GET", schedules(api))
    assert len(one["participants"]) == int(one["name"]) + 1
    (two,) = await call(api, "GET", policies(api))
    assert len(two["steps"]) == int(two["name"]) + 1
