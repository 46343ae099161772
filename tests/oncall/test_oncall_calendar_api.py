"""The calendar, parsed by a calendar library, equals the on-call schedule. A caller needs a role or
the token of the calendar."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icalendar import Calendar
from msgspec import structs

from leadline.http.oncall.routes.icalendar import AHEAD_US, BACK_US, EVENTS_MOST, calendar_of
from leadline.storage.core.instant import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Instant,
    from_datetime,
    to_datetime,
    to_text,
)
from leadline.storage.oncall.queries.oncall_schedules import ScheduleRoster
from leadline.storage.oncall.rows import OnCallOverrideRow, ParticipantRow, ScheduleRow
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.run.calls import counted_calls

NAMES = ["Mara Lind", "Tomás Rey", "Aiko; Mori, \\n"]
# Around the days on which clocks in Berlin go forward and back.
DAYS = [datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)]
AUTUMN = from_datetime(DAYS[1])
nows = st.builds(
    lambda day, minutes: from_datetime(day + timedelta(minutes=minutes)),
    st.sampled_from(DAYS),
    st.integers(-3 * 24 * 60, 3 * 24 * 60),
)


def standing(
    anchor: Instant,
    hours: int,
    people: list[int],
    zone: str,
    spans: list[tuple[int, Instant, int]],
) -> ScheduleRoster:
    schedule = ScheduleRow(
        1, 1, UUID(int=7), 1, UUID(int=8), "Shop; first", anchor, hours * 3_600, zone, True,
        FROZEN_NOW, FROZEN_NOW,
    )  # fmt: skip
    rows = [
        OnCallOverrideRow(
            1, number, UUID(int=100 + number), 1, UUID(int=7), 1, who, UUID(int=who), NAMES[who],
            starts, Instant(starts + minutes * MINUTE), FROZEN_NOW,
        )
        for number, (who, starts, minutes) in enumerate(spans, 1)
    ]  # fmt: skip
    taking_part = [ParticipantRow(1, who, UUID(int=who), NAMES[who], True) for who in people]
    return ScheduleRoster(schedule, taking_part, rows)


@st.composite
def standings(draw: st.DrawFn) -> tuple[ScheduleRoster, Instant]:
    now = draw(nows)
    people = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    spans = [
        (draw(st.integers(0, 2)), draw(nows), draw(st.integers(1, 4_000)))
        for _ in range(draw(st.integers(0, 3)))
    ]
    found = standing(
        draw(nows),
        draw(st.sampled_from([12, 24, 168])),
        people,
        draw(st.sampled_from(["", "Europe/Berlin"])),
        spans,
    )
    return found, now


def brute(found: ScheduleRoster, at: Instant) -> str:
    """The person on call at an instant: the newest override, or the shift by local time."""
    holding = [o for o in found.override_rows if o.starts_at <= at < o.ends_at]
    if holding:
        return holding[-1].channel_name
    zone = ZoneInfo(found.schedule.timezone or "UTC")
    anchor = to_datetime(found.schedule.anchor_at).astimezone(zone).replace(tzinfo=None)
    # A shift that has begun continues when the clock is set back.
    near = [at, Instant(at - HOUR)]
    if len({to_datetime(one).astimezone(zone).utcoffset() for one in near}) > 1:
        near = [Instant(at - minutes * MINUTE) for minutes in range(61)]
    shows = max(to_datetime(one).astimezone(zone).replace(tzinfo=None) for one in near)
    shift = (shows - anchor) // timedelta(seconds=found.schedule.shift_seconds)
    return found.participants[shift % len(found.participants)].name


def events(document: bytes) -> list[Any]:
    return list(Calendar.from_ical(document).walk("VEVENT"))


# The parser is slow; the tests of the rule have more examples.
@settings(max_examples=15, deadline=None)
# The first shift begins at the first 02:01 of the night in which Berlin has two.
@example((standing(Instant(AUTUMN + MINUTE), 12, [0, 1], "Europe/Berlin", []), AUTUMN), [0])
@given(standings(), st.lists(st.integers(-27 * 24 * 12, 180 * 24 * 12), min_size=30, max_size=60))
async def test_the_parsed_calendar_equals_the_schedule_at_every_instant(
    given_: tuple[ScheduleRoster, Instant], minutes: list[int]
) -> None:
    found, now = given_
    read = events(await calendar_of(found, now))
    for one, after in pairwise(read):
        assert one["DTEND"].dt == after["DTSTART"].dt
    assert from_datetime(read[0]["DTSTART"].dt) <= now - BACK_US
    assert from_datetime(read[-1]["DTEND"].dt) >= now + AHEAD_US
    assert len({str(one["UID"]) for one in read}) == len(read)
    looked_at = [now + five * 5 * MINUTE for five in minutes]
    # Every half hour of the days on which clocks change, too.
    looked_at += [from_datetime(day) + half * 30 * MINUTE for day in DAYS for half in range(60)]
    # Reading a property of an event parses its name each time.
    spans = [(from_datetime(e["DTSTART"].dt), from_datetime(e["DTEND"].dt), e) for e in read]
    for at in looked_at:
        if not now - BACK_US <= at < now + AHEAD_US:
            continue
        (event,) = [event for start, end, event in spans if start <= at < end]
        who = brute(found, Instant(at))
        overridden = any(o.starts_at <= at < o.ends_at for o in found.override_rows)
        told = f"{who} is on call (override)" if overridden else f"{who} is on call"
        assert event["SUMMARY"] == told


@settings(max_examples=15, deadline=None)
@given(standings(), st.integers(1, 20 * 24))
async def test_an_event_keeps_its_id_and_its_times_as_days_pass(
    given_: tuple[ScheduleRoster, Instant], hours: int
) -> None:
    found, now = given_
    before = {str(e["UID"]): e.to_ical() for e in events(await calendar_of(found, now))}
    later = events(await calendar_of(found, Instant(now + hours * HOUR)))
    shared = [e for e in later if str(e["UID"]) in before]
    assert shared
    assert all(before[str(e["UID"])] == e.to_ical() for e in shared)
    horizon = to_datetime(Instant(now + AHEAD_US))
    assert all(str(e["UID"]) in before for e in later if e["DTSTART"].dt < horizon)


async def test_the_number_of_events_is_limited() -> None:
    found = standing(FROZEN_NOW, 1, [0, 1], "Europe/Berlin", [])
    document = await calendar_of(found, FROZEN_NOW)
    read = events(document)
    assert len(read) == EVENTS_MOST
    assert len(document) < 1 << 20
    assert from_datetime(read[-1]["DTEND"].dt) > FROZEN_NOW + 30 * DAY


async def test_the_longest_one_with_all_overrides_costs_little() -> None:
    spans = [(n % 3, Instant(FROZEN_NOW + n * HOUR), 45) for n in range(-300, 200)]
    found = standing(FROZEN_NOW, 1, [0, 1], "Europe/Berlin", spans)
    with counted_calls() as calls:
        document = await calendar_of(found, FROZEN_NOW)
    # The work per event is bounded, because the same loop serves other requests.
    assert calls.count < 1_000 * len(events(document))


async def test_an_override_within_one_second_is_no_event() -> None:
    found = standing(FROZEN_NOW, 24, [0], "", [(1, Instant(FROZEN_NOW + HOUR), 0)])
    (row,) = found.override_rows
    brief = structs.replace(row, ends_at=Instant(row.starts_at + 300_000))
    read = events(await calendar_of(replace(found, override_rows=[brief]), FROZEN_NOW))
    assert all(one["DTSTART"].dt < one["DTEND"].dt for one in read)
    assert all(one["DTEND"].dt == after["DTSTART"].dt for one, after in pairwise(read))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=120))
@example("a\r\nATTACH:http://evil.example/\r\nX:1")
@example("🙈" * 60)
@example("\u2028\u0085\x0b\x0c\x1c;,\\\\n")
async def test_any_name_is_escaped(name: str) -> None:
    found = standing(FROZEN_NOW, 168, [0], "", [])
    (person,) = found.participants
    found = replace(
        found,
        schedule=structs.replace(found.schedule, name=name),
        participants=[structs.replace(person, name=name)],
    )
    document = await calendar_of(found, FROZEN_NOW)
    assert all(len(line) <= 75 for line in document.split(b"\r\n"))
    assert b"\n" not in document.replace(b"\r\n", b"")
    unfolded = document.replace(b"\r\n ", b"").split(b"\r\n")
    begins = {line.partition(b":")[0] for line in unfolded}
    assert b"ATTACH" not in begins
    assert len(unfolded) == unfolded.count(b"BEGIN:VEVENT") * 9 + 8
    for line in unfolded:
        line.decode()
    kept = name.translate({n: None for n in range(32) if n not in (10, 13)} | {127: None})
    kept = kept.replace("\r\n", "\n").replace("\r", "\n")
    escaped = kept.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    told = f"SUMMARY:{escaped.replace(chr(10), chr(92) + 'n')} is on call"
    assert told.encode() in unfolded


async def test_lines_are_folded_and_end_with_crlf() -> None:
    document = await calendar_of(standing(FROZEN_NOW, 24, [2], "", []), FROZEN_NOW)
    assert document.startswith(b"BEGIN:VCALENDAR\r\n")
    assert document.endswith(b"END:VCALENDAR\r\n")
    assert document.count(b"\n") == document.count(b"\r\n")
    assert all(len(line) <= 75 for line in document.split(b"\r\n"))


async def token_of(api: Api, schedule: UUID) -> Any:
    path = f"/api/v1/oncall-schedules/{schedule}/calendar-token"
    answer = await api.ask("editor", "POST", path)
    assert answer.status_code == 201
    return await answer.get_json()


async def read(api: Api, schedule: UUID, token: str | None, who: str = "nobody") -> Any:
    query = {} if token is None else {"token": token}
    return await api.ask(
        who, "GET", f"/api/v1/oncall-schedules/{schedule}/calendar.ics", query=query
    )


async def test_the_token_opens_its_own_calendar_until_it_is_renewed(api: Api) -> None:
    one, other = await api.new_schedule(), await api.new_schedule()
    first = await token_of(api, one)
    assert first["url"].endswith(
        f"/api/v1/oncall-schedules/{one}/calendar.ics?token={first['token']}"
    )
    answer = await read(api, one, first["token"])
    assert answer.status_code == 200
    assert answer.content_type == "text/calendar; charset=utf-8"
    assert answer.headers["Cache-Control"].startswith("private")
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert len(events(await answer.get_data())) > 26
    second = await token_of(api, one)
    assert (await read(api, one, second["token"])).status_code == 200
    refused = []
    for schedule, token in (
        (one, first["token"]),
        (other, second["token"]),
        (uuid4(), second["token"]),
        (one, "leadline_calendar_"),
        (one, second["token"] + "x"),
    ):
        answer = await read(api, schedule, token)
        refused.append(
            (answer.status_code, await answer.get_data(), sorted(answer.headers.items()))
        )
    assert refused == [refused[0]] * len(refused)
    assert refused[0][:2] == (404, b'{"error":"not_found"}')


async def test_without_a_token_a_viewer_reads_it_and_others_do_not(api: Api) -> None:
    schedule = await api.new_schedule()
    token = (await token_of(api, schedule))["token"]
    assert (await read(api, schedule, None, "viewer")).status_code == 200
    assert (await read(api, schedule, None)).status_code == 401
    assert (await read(api, schedule, "")).status_code == 401
    assert (await read(api, schedule, None, "stranger")).status_code == 404
    assert (await read(api, schedule, token, "stranger")).status_code == 200
    # A wrong token is refused, also with a session.
    assert (await read(api, schedule, "nonsense", "viewer")).status_code == 404


async def test_the_token_gives_no_other_access_and_only_its_hash_is_stored(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    schedule = await api.new_schedule()
    token = (await token_of(api, schedule))["token"]
    await read(api, schedule, token)
    await read(api, schedule, token[:-1])
    path = f"/api/v1/oncall-schedules/{schedule}/current"
    assert (await api.ask("nobody", "GET", path, query={"token": token})).status_code == 401
    bearer = {"Authorization": f"Bearer {token}"}
    for elsewhere in (path, "/api/v1/me"):
        assert (await api.ask(bearer, "GET", elsewhere)).status_code == 401
    ((row,),) = await api.rows("select s::text from oncall_schedules s")
    assert token not in row
    audited = await api.rows("select target from audit_entries")
    assert token[:30] not in f"{audited} {caplog.text}"


async def test_overrides_are_in_it_and_an_edit_changes_it(api: Api) -> None:
    one, two = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    schedule = await api.new_schedule(one)
    body = {
        "channel_id": str(two),
        "starts_at": to_text(Instant(FROZEN_NOW + DAY)),
        "ends_at": to_text(Instant(FROZEN_NOW + DAY + 500 * SECOND)),
    }
    path = f"/api/v1/oncall-schedules/{schedule}/overrides"
    assert (await api.ask("editor", "POST", path, body)).status_code == 201
    read_ = events(await (await read(api, schedule, None, "viewer")).get_data())
    (told,) = [e for e in read_ if "override" in e["SUMMARY"]]
    assert told["SUMMARY"] == "Tomás is on call (override)"
    assert told["DTEND"].dt - told["DTSTART"].dt == timedelta(seconds=500)
