"""Supersession in the console: the forms have the effect of the API, and refusals are shown as
text."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from leadline.http.ui.pickers.objects import SHOWN_MOST
from tests.support.app.cast import Api
from tests.support.app.serving import call

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def shown(api: Api, path: str) -> str:
    answer = await api.ask("editor", "GET", path)
    text: str = await answer.get_data(as_text=True)
    assert answer.status_code == 200, text
    return text


async def sent(api: Api, monitor: UUID, *fields: tuple[str, object]) -> tuple[int, str]:
    data = urlencode(fields).encode()
    path = f"/monitors/{monitor}/successor"
    answer = await api.ask("editor", "POST", path, data=data, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def monitor_of(api: Api, uid: UUID) -> Any:
    return await call(api, "GET", f"/monitors/{uid}")


async def test_from_a_successor_to_retirement_and_back(api: Api) -> None:
    row, service = await api.new_monitor(name="Old"), await api.new_service(name="New")
    path = f"/monitors/{row.uid}/successor"
    assert path in await shown(api, f"/monitors/{row.uid}")
    page = await shown(api, path)
    assert "No replacement service." in page
    assert 'value="retire"' not in page
    assert (await sent(api, row.uid, ("act", "succeed"), ("service", "New")))[0] == 303
    assert 'name="service" type="text" list="service-list"' in (page := await shown(api, path))
    assert 'value="New"' in page
    assert "Replaced by a service." in await shown(api, f"/monitors/{row.uid}")
    assert "Replaces" in await shown(api, f"/services/{service}")
    assert (await sent(api, row.uid, ("act", "retire")))[0] == 303
    assert "retired_at" in await monitor_of(api, row.uid)
    page = await shown(api, f"/monitors/{row.uid}")
    assert "Retired since" in page
    assert 'value="resume"' not in page
    assert "(retired)" in await shown(api, f"/services/{service}")
    status, page = await sent(api, row.uid, ("act", "succeed"), ("service", ""))
    assert status == 409
    assert "Reactivate the monitor before removing its replacement" in page
    assert (await sent(api, row.uid, ("act", "reactivate")))[0] == 303
    assert (await monitor_of(api, row.uid))["enabled"] is True
    assert (await sent(api, row.uid, ("act", "succeed"), ("service", "")))[0] == 303
    assert "superseded_by_service_id" not in await monitor_of(api, row.uid)


async def test_a_composite_is_made_a_service_of(api: Api) -> None:
    one, other = await api.new_monitor(name="One"), await api.new_monitor(name="Other")
    config = {"mode": "any", "children": [str(one.uid), str(other.uid)]}
    row = await api.new_monitor(type="composite", target="", config=config, name="Both")
    page = await shown(api, f"/monitors/{row.uid}/successor")
    assert page.count('name="sli"') == 2
    status, page = await sent(api, row.uid, ("act", "convert"))
    assert status == 400
    assert "sli: must name which of its 2 children count." in page
    assert (await sent(api, row.uid, ("act", "convert"), ("sli", one.uid)))[0] == 303
    found = await monitor_of(api, row.uid)
    assert "superseded_by_service_id" in found
    page = await shown(api, f"/monitors/{row.uid}/successor")
    assert "Convert to service" not in page
    assert ">Both</a>." in page


async def test_an_unknown_button_or_id_changes_no_monitor(api: Api) -> None:
    row = await api.new_monitor()
    before = await monitor_of(api, row.uid)
    assert (await sent(api, row.uid, ("act", "burn")))[0] == 400
    status, page = await sent(api, row.uid, ("act", "succeed"), ("service", "x"))
    assert status == 400
    assert "service: names no service of this project." in page
    assert 'value="x"' in page
    assert (await sent(api, row.uid, ("act", "retire")))[0] == 409
    assert await monitor_of(api, row.uid) == before


async def test_a_service_beyond_the_list_is_chosen_by_a_part_of_its_name(api: Api) -> None:
    row = await api.new_monitor()
    wanted = await api.new_service(name="Zebra billing")
    for number in range(SHOWN_MOST + 1):
        await api.new_service(name=f"Service {number:02}")
    path = f"/monitors/{row.uid}/successor"
    page = await shown(api, path)
    assert page.count("<option ") == SHOWN_MOST
    assert "Zebra billing" not in page
    status, page = await sent(api, row.uid, ("act", "succeed"), ("service", "Service"))
    assert status == 400
    assert "service: matches several services, type the slug of one." in page
    assert (await sent(api, row.uid, ("act", "succeed"), ("service", "billing")))[0] == 303
    assert (await monitor_of(api, row.uid))["superseded_by_service_id"] == str(wanted)
