"""Time zone and clock of a user: stored, applied to the console, and to nothing else."""

import re
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

from leadline.http.ui.time_inputs import instant_typed, range_typed
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_text
from leadline.storage.core.refusal import Refused
from tests.services.test_service_forms_screen import FIELDS
from tests.support.app.cast import Api
from tests.support.app.serving import call

PATH = "/me/preferences"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def prefer(api: Api, zone: str, hours: int = 24, who: str = "org_admin") -> None:
    body = {"time_zone": zone, "hour_clock": hours}
    assert await call(api, "PUT", PATH, body, who=who) == body
    assert await call(api, "GET", PATH, who=who) == body


async def page_of(api: Api, path: str, who: str = "org_admin") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


async def post(api: Api, path: str, who: str = "org_admin", **form: str) -> Any:
    return await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=FORM)


async def entry(api: Api, at: Instant) -> None:
    async with api.pool.transaction("entry") as tx:
        await tx.execute(
            "insert into audit_entries (org, uid, actor_label, via_token, action, target,"
            " created_at) values (%(org)s, gen_random_uuid(), 'x', false, 'a.b', 'c', at(%(at)s))",
            org=api.orgs["acme"][0],
            at=at,
        )


def times(page: str) -> list[tuple[str, str]]:
    """The hover text and the text of the times in the table."""
    table = page[page.index("<tbody>") :]
    return re.findall(r'<time datetime="[^"]*" title="([^"]*)">([^<]*)</time>', table)


async def test_a_preference_is_utc_and_24_hours_until_it_is_set(api: Api) -> None:
    assert await call(api, "GET", PATH) == {"time_zone": "UTC", "hour_clock": 24}
    await prefer(api, "Europe/Berlin", 12)
    other = await call(api, "GET", PATH, who="editor")
    assert other == {"time_zone": "UTC", "hour_clock": 24}
    # It is personal: the audit log of the installation does not have it.
    assert await api.rows("select action from audit_entries") == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"time_zone": "Europe/Bärlin", "hour_clock": 24},
            "time_zone: is not a time zone, such as Europe/Berlin",
        ),
        ({"time_zone": "", "hour_clock": 24}, "time_zone: is not a time zone, such as"),
        ({"time_zone": "../../etc/passwd", "hour_clock": 24}, "time_zone: is not a time zone"),
        ({"time_zone": "UTC", "hour_clock": 13}, "hour_clock: must be 12 or 24"),
        ({"time_zone": "UTC", "hour_clock": "24"}, "hour_clock: "),
        ({"time_zone": "UTC"}, ""),
    ],
)
async def test_an_impossible_preference_is_refused(api: Api, body: Any, error: str) -> None:
    answer = await call(api, "PUT", PATH, body, 400)
    assert error in answer["error"]
    assert await call(api, "GET", PATH) == {"time_zone": "UTC", "hour_clock": 24}


async def test_a_token_has_no_preference(api: Api) -> None:
    body = {"time_zone": "UTC", "hour_clock": 24}
    assert (await api.ask("token", "PUT", f"/api/v1{PATH}", body)).status_code == 403


async def test_the_console_shows_the_zone_and_the_clock_of_the_user(api: Api) -> None:
    """The clock of the test is 2026-01-05 00:00 UTC."""
    path = f"/organizations/{api.org}/audit"
    now = api.context.clock()
    for at in (now - 150 * DAY, now - 10 * HOUR, Instant(now - MINUTE)):
        await entry(api, Instant(at))
    page = await page_of(api, path)
    assert ">When, UTC<" in page
    assert [text for _, text in times(page)] == [
        "4 January 23:59",
        "4 January 14:00",
        "8 August 00:00 2025",
    ]
    # In New York it is still 4 January; in August the clock is one hour ahead.
    await prefer(api, "America/New_York", 12)
    page = await page_of(api, path)
    assert ">When, New York<" in page
    assert 'data-zone="America/New_York" data-zone-word="New York" data-hours="12"' in page
    assert times(page) == [
        ("2026-01-04 6:59:00\u202fpm New York", "6:59:00\u202fpm"),
        ("2026-01-04 9:00:00\u202fam New York", "9:00:00\u202fam"),
        ("2025-08-07 8:00:00\u202fpm New York", "7 August 8:00\u202fpm 2025"),
    ]
    # A half hour, and the next day.
    await prefer(api, "Asia/Kolkata")
    page = await page_of(api, path)
    assert [text for _, text in times(page)][:2] == ["05:29:00", "4 January 19:30"]
    assert "T23:59:00" in page, "machines read UTC"
    assert ">When, UTC<" in await page_of(api, path, "global_admin")


async def test_midnight_and_noon_are_12_with_12_hours(api: Api) -> None:
    await prefer(api, "UTC", 12)
    now = api.context.clock()
    for hours in (24, 12):
        await entry(api, Instant(now - hours * HOUR))
    page = await page_of(api, f"/organizations/{api.org}/audit")
    assert [text for _, text in times(page)] == [
        "4 January 12:00\u202fpm",
        "4 January 12:00\u202fam",
    ]


async def test_days_of_a_filter_are_those_of_the_zone(api: Api) -> None:
    path = f"/organizations/{api.org}/audit?from=2026-01-04&to=2026-01-04"
    await entry(api, Instant(api.context.clock() - MINUTE))
    await entry(api, Instant(api.context.clock() - 20 * HOUR))
    assert len(times(await page_of(api, path))) == 2
    # 4 January of Auckland ends at 11:00 UTC.
    await prefer(api, "Pacific/Auckland")
    assert len(times(await page_of(api, path))) == 1


async def test_a_typed_time_is_one_of_the_zone(api: Api) -> None:
    await prefer(api, "America/New_York", who="global_admin")
    form = {"act": "silence", "for": "time", "until": "2026-01-04T20:00", "reason": "x"}
    assert (await post(api, "/admin/silence", "global_admin", **form)).status_code == 303
    found = await call(api, "GET", "/settings/alerting", who="global_admin")
    assert found["global_silence"]["until"] == "2026-01-05T01:00:00.000Z"
    page = await page_of(api, "/admin/silence", "global_admin")
    assert "Alerts are muted until 20:00:00 New York, by" in page
    assert 'value="2026-01-04T20:00"' in page
    # Another user reads the banner in another zone.
    page = await page_of(api, f"/projects/{api.project}", "viewer")
    assert "All alerts are muted until 01:00:00 UTC, since" in page


@pytest.mark.parametrize(
    ("zone", "local", "told"),
    [
        ("Europe/Berlin", "2026-03-29T02:30", "does not exist in Berlin: clocks go forward"),
        ("Europe/Berlin", "2026-10-25T02:00", "happens twice in Berlin: clocks go back"),
        ("America/New_York", "2026-03-08T02:59", "does not exist in New York"),
        # Half an hour.
        ("Australia/Lord_Howe", "2026-04-05T01:45", "happens twice in Lord Howe"),
        # At midnight.
        ("America/Havana", "2026-03-08T00:30", "does not exist in Havana"),
    ],
)
async def test_a_time_that_clocks_omit_or_repeat_is_refused(
    api: Api, zone: str, local: str, told: str
) -> None:
    await prefer(api, zone, who="global_admin")
    mute = {"act": "silence", "for": "time", "until": local}
    plan = {"act": "plan", "reason": "x"}
    till = (await api.new_monitor(name="Till")).uid
    service = {**FIELDS, "act": "save", "name": "Shop", "sli": str(till), "backfill_from": local}
    project = f"/projects/{api.project}"
    for path, form, said in (
        ("/admin/silence", mute, f"End: {told}"),
        (f"{project}/maintenance", {**plan, "ends": local}, f"End: {told}"),
        (
            f"{project}/maintenance",
            {**plan, "starts": local, "ends": "2026-12-01T00:00"},
            f"Start: {told}",
        ),
        (f"{project}/services/new", service, told),
    ):
        answer = await post(api, path, "global_admin", **form)
        page = await answer.get_data(as_text=True)
        assert (answer.status_code, said in page) == (400, True), path
        assert f'value="{local}"' in page


@pytest.mark.parametrize("until", ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"])
async def test_a_mute_that_is_saved_unchanged_keeps_its_end(api: Api, until: str) -> None:
    """Both are 02:30 in Berlin."""
    await prefer(api, "Europe/Berlin", who="global_admin")
    body = {"global_silence": {"enabled": True, "until": until}}
    await call(api, "PUT", "/settings/alerting", body, who="global_admin")
    page = await page_of(api, "/admin/silence", "global_admin")
    assert 'value="2026-10-25T02:30"' in page
    form = {"act": "silence", "for": "time", "until": "2026-10-25T02:30", "reason": "Move"}
    assert (await post(api, "/admin/silence", "global_admin", **form)).status_code == 303
    found = await call(api, "GET", "/settings/alerting", who="global_admin")
    assert found["global_silence"]["until"] == until


def test_a_range_contains_both_meanings_of_a_time() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def spelt(text: str, *, is_end: bool) -> str:
        return to_text(range_typed("from", text, berlin, is_end=is_end))

    assert spelt("2026-10-25T02:30", is_end=False) == "2026-10-25T00:30:00.000Z"
    assert spelt("2026-10-25T02:30", is_end=True) == "2026-10-25T01:30:00.000Z"
    assert spelt("2026-10-25T02:30+01:00", is_end=False) == "2026-10-25T01:30:00.000Z"
    assert spelt("2026-03-29T02:30", is_end=False) == "2026-03-29T00:30:00.000Z"
    assert spelt("2026-03-29T02:30", is_end=True) == "2026-03-29T01:30:00.000Z"
    assert instant_typed("at", "2026-10-25T02:30+01:00", berlin) == "2026-10-25T01:30:00.000Z"
    assert instant_typed("at", "2026-10-25T03:00", berlin) == "2026-10-25T02:00:00.000Z"
    for text in ("", "soon", "0001-01-01T00:00", "9999-12-31T23:59-12:00", "2026-13-01T00:00"):
        with pytest.raises(Refused, match="must be a day and a time"):
            instant_typed("at", text, berlin)


async def test_a_range_of_an_address_means_the_same_for_all_users(api: Api) -> None:
    monitor = (await api.new_monitor()).uid
    await prefer(api, "America/New_York", 12)
    page = await page_of(api, f"/monitors/{monitor}")
    assert '<input type="hidden" name="zone" value="America/New_York">' in page
    query = "from=2026-01-04T08:00&to=2026-01-04T09:00&zone=America/New_York"
    axes = {
        re.findall(r'data-from="(\d+)"', await page_of(api, f"/monitors/{monitor}?{query}", who))[0]
        for who in ("org_admin", "viewer")
    }
    assert len(axes) == 1


async def test_the_profile_saves_the_preference(api: Api) -> None:
    page = await page_of(api, "/profile")
    assert "<option selected>UTC</option>" in page
    assert '<option value="24" selected>00:00</option>' in page
    assert '<option value="12">12:00\u202fam</option>' in page
    assert "<option>America/Argentina/Buenos_Aires</option>" in page
    assert "GMT+3" not in page
    form = {"act": "times", "time_zone": "Europe/Berlin", "hour_clock": "12"}
    assert (await post(api, "/profile", **form)).headers["Location"] == "/profile?done=times"
    page = await page_of(api, "/profile?done=times")
    assert "<option selected>Europe/Berlin</option>" in page
    assert '<option value="12" selected>1:00\u202fam</option>' in page
    assert "Time zone<small>Berlin</small>" in page
    for wrong, said in (
        ({"time_zone": "x"}, "Time zone: is not"),
        ({"hour_clock": "7"}, "Time format: must be"),
    ):
        answer = await post(api, "/profile", **{**form, **wrong})
        assert answer.status_code == 400
        assert said in await answer.get_data(as_text=True)
    assert (await call(api, "GET", PATH, who="org_admin"))["time_zone"] == "Europe/Berlin"


async def test_a_zone_that_is_gone_is_shown_as_utc(api: Api) -> None:
    """A later database of zones can lack a name."""
    async with api.pool.transaction("old") as tx:
        await tx.execute("update users set time_zone = 'Europe/Atlantis'")
    page = await page_of(api, "/profile")
    assert 'data-zone="UTC"' in page
    assert "<option selected>Europe/Atlantis</option>" in page


async def test_instants_of_the_api_stay_in_utc(api: Api) -> None:
    await prefer(api, "Asia/Tokyo", 12)
    await entry(api, api.context.clock())
    (found,) = await call(api, "GET", f"/organizations/{api.org}/audit", who="org_admin")
    assert found["created_at"] == to_text(api.context.clock())
