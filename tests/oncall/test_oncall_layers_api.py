"""Layers through the API: API, calendar, badge and pager name the same person at each instant."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from leadline.storage.core.instant import DAY, HOUR, Instant, from_datetime, to_text
from leadline.storage.oncall.rules.escalation import EscalationTarget, TargetKind
from leadline.storage.oncall.transactions.resolve_targets import channels_of_step
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_calendar_api import events as events_of
from tests.support.app.cast import Api

WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def bytes_of(data: Any) -> bytes:
    return bytes(data)


def window(days: list[str], from_: str, to: str) -> dict[str, Any]:
    return {"weekdays": days, "from": from_, "to": to}


def layer(who: UUID, zone: str, *windows: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {
        "name": zone,
        "shift_seconds": 604_800,
        "anchor_at": "2026-01-05T08:00:00Z",
        "timezone": zone,
        "participants": [str(who)],
        "restrictions": list(windows),
        **further,
    }


async def follow_the_sun(api: Api) -> tuple[dict[str, Any], dict[str, UUID]]:
    people = {name: await api.new_channel(name=name) for name in ("Berlin", "New York", "Kolkata")}
    body = layer(people["Berlin"], "Europe/Berlin", window(WEEK[:5], "08:00", "16:00"))
    further = [
        layer(people["New York"], "America/New_York", window([], "09:00", "17:00")),
        layer(people["Kolkata"], "Asia/Kolkata", window(WEEK[:5], "22:00", "06:00")),
    ]
    body |= {"name": "Sun", "layers": further}
    answer = await api.ask(
        "editor", "POST", f"/api/v1/projects/{api.project}/oncall-schedules", body
    )
    assert answer.status_code == 201, await answer.get_data()
    return await answer.get_json(), people


async def read(api: Api, path: str, **query: str) -> Any:
    answer = await api.ask("viewer", "GET", f"/api/v1{path}", query=query)
    assert answer.status_code == 200, await answer.get_data()
    return await answer.get_json()


async def test_layers_are_written_and_read_back(api: Api) -> None:
    made, people = await follow_the_sun(api)
    (listed,) = await read(api, f"/projects/{api.project}/oncall-schedules")
    assert listed == made
    assert made["restrictions"] == [window(WEEK[:5], "08:00", "16:00")]
    assert [one["name"] for one in made["layers"]] == ["America/New_York", "Asia/Kolkata"]
    assert made["layers"][0]["restrictions"] == [window(WEEK, "09:00", "17:00")]
    assert made["layers"][1]["participants"] == [str(people["Kolkata"])]
    # An equal schedule is not written, and one without layers loses them.
    path = f"/api/v1/oncall-schedules/{made['id']}"
    kept = {k: v for k, v in made.items() if k in ("name", "shift_seconds", "anchor_at")}
    kept |= {k: made[k] for k in ("timezone", "participants", "restrictions", "layers")}
    same = await (await api.ask("editor", "PUT", path, kept)).get_json()
    assert same["updated_at"] == made["updated_at"]
    plain = await (await api.ask("editor", "PUT", path, {**kept, "layers": []})).get_json()
    assert "layers" not in plain
    assert await api.rows("select count(*) from oncall_participants") == [(1,)]


async def test_faults_name_the_field_of_the_layer(api: Api) -> None:
    who = await api.new_channel()
    body = layer(who, "Europe/Berlin") | {"name": "S"}
    path = f"/api/v1/projects/{api.project}/oncall-schedules"
    day = window([], "08:00", "16:00")
    for wrong, said in (
        ({"layers": [layer(who, "Mars/X")]}, "layers[0].timezone: "),
        ({"layers": [layer(who, "UTC", shift_seconds=1)]}, "layers[0].shift_seconds: "),
        ({"layers": [layer(who, "UTC", participants=["x"])]}, "layers[0].participants[0]: "),
        ({"layers": [layer(who, "UTC")] * 20}, "layers: "),
        (
            {"restrictions": [day] * 50, "layers": [layer(who, "UTC", *[day] * 50)] * 4},
            "layers[3].restrictions: must have at most 200 entries in all layers",
        ),
        ({"restrictions": [window([], "24:00", "24:00")]}, "restrictions[0].from: "),
        ({"starts_at": "2026-01-05T08:00:00Z", "ends_at": "2026-01-05T08:00:00Z"}, "ends_at: "),
    ):
        answer = await api.ask("editor", "POST", path, {**body, **wrong})
        assert answer.status_code == 400
        assert (await answer.get_json())["error"].startswith(said)


async def named_by_all(
    api: Api, schedule: str, at: Instant, events: list[Any], shifts: list[Any]
) -> set[str | None]:
    """Returns the names that calendar, shifts, `current`, `oncall` and the pager give."""
    now = await read(api, f"/oncall-schedules/{schedule}/current", at=to_text(at))
    (one,) = await read(api, f"/projects/{api.project}/oncall", at=to_text(at))
    found = {now.get("channel_name"), one.get("channel_name")}
    said = [who for from_, to, who in events if from_ <= at < to]
    assert len(said) <= 1
    found.add(said[0] if said else None)
    text = to_text(at)
    found |= {one.get("channel_name") for one in shifts if one["from"] <= text < one["to"]}
    ((org, key),) = await api.rows(f"select org, id from oncall_schedules where uid = '{schedule}'")
    async with api.pool.transaction("pager", read_only=True) as tx:
        targets = [EscalationTarget(TargetKind.SCHEDULE, key)]
        paged = await channels_of_step(tx, org, targets, at)
    names = await api.rows(f"select name from notification_channels where id = {(paged or [0])[0]}")
    found.add(names[0][0] if names else None)
    return found


async def test_all_outputs_name_the_same_person_on_days_of_clock_changes(api: Api) -> None:
    made, people = await follow_the_sun(api)
    schedule = made["id"]
    # Clocks go forward in New York on 8 March and in Berlin on 29 March.
    starts = from_datetime(datetime(2026, 3, 7, tzinfo=UTC))
    over = {
        "channel_id": str(people["Berlin"]),
        "starts_at": to_text(Instant(starts + 30 * HOUR)),
        "ends_at": to_text(Instant(starts + 33 * HOUR)),
    }
    answer = await api.ask("editor", "POST", f"/api/v1/oncall-schedules/{schedule}/overrides", over)
    assert answer.status_code == 201
    until = Instant(starts + 24 * DAY)
    answer = await api.ask("viewer", "GET", f"/api/v1/oncall-schedules/{schedule}/calendar.ics")
    events = [
        (
            from_datetime(one["DTSTART"].dt),
            from_datetime(one["DTEND"].dt),
            str(one["SUMMARY"]).partition(" is on call")[0],
        )
        for one in events_of(bytes_of(await answer.get_data()))
    ]
    shifts = await read(
        api,
        f"/oncall-schedules/{schedule}/shifts",
        **{"from": to_text(starts), "to": to_text(until)},
    )
    assert shifts[0]["from"] == to_text(starts)
    assert shifts[-1]["to"] == to_text(until)
    assert all(a["to"] == b["from"] for a, b in pairwise(shifts))
    found = {}
    for hour in range(0, 24 * 24, 17):
        at = Instant(starts + hour * HOUR + HOUR // 2)
        names = await named_by_all(api, schedule, at, events, shifts)
        assert len(names) == 1, (to_text(at), names)
        found[hour] = names.pop()
    assert {"Berlin", "New York", "Kolkata", None} == set(found.values())


async def test_a_gap_has_no_channel_and_a_badge_says_nobody(api: Api) -> None:
    who = await api.new_channel(name="Mara")
    body = layer(who, "UTC", ends_at="2000-01-01T00:00:00Z") | {"name": "Old"}
    path = f"/api/v1/projects/{api.project}/oncall-schedules"
    made = await (await api.ask("editor", "POST", path, body)).get_json()
    now = await read(api, f"/oncall-schedules/{made['id']}/current")
    assert now == {"schedule_id": made["id"]}
    then = await read(api, f"/oncall-schedules/{made['id']}/current", at="1999-12-31T00:00:00Z")
    assert then["channel_name"] == "Mara"
    assert then["until"] == "2000-01-01T00:00:00.000Z"
    answer = await api.ask("viewer", "GET", f"/api/v1/oncall-schedules/{made['id']}/badge.svg")
    assert "on call: Old: nobody" in bytes_of(await answer.get_data()).decode()
    token = await (
        await api.ask("editor", "POST", f"/api/v1/oncall-schedules/{made['id']}/calendar-token")
    ).get_json()
    badge = f"/api/v1/oncall-schedules/{made['id']}/badge.svg"
    opened = await api.ask("nobody", "GET", badge, query={"token": token["token"]})
    assert opened.status_code == 200
    assert (await api.ask("nobody", "GET", badge, query={"token": "x"})).status_code == 404
    late = await api.ask(
        "viewer", "GET", f"/api/v1/oncall-schedules/{made['id']}/current",
        query={"at": "2999-01-01T00:00:00Z"},
    )  # fmt: skip
    assert late.status_code == 400
    wide = {"from": to_text(FROZEN_NOW), "to": to_text(Instant(FROZEN_NOW + 93 * DAY))}
    answer = await api.ask(
        "viewer", "GET", f"/api/v1/oncall-schedules/{made['id']}/shifts", query=wide
    )
    assert answer.status_code == 400
