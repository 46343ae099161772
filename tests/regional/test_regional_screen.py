"""The form has a box for each region, and the monitor screen shows the status in each."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FIELDS = {
    "type": "http",
    "fields": "http",
    "name": "Shop",
    "target": "https://shop.example/",
    "method": "GET",
    "interval_seconds": "60",
    "act": "save",
}


@pytest.fixture
async def wide(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    options = HttpOptions(regions=frozenset({"core", "attic", "cellar"}))
    async with open_api(pool, FROZEN_NOW, passwords, options=options) as made:
        yield made


async def shown(api: Api, path: str, who: str = "editor") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200, path
    return str(await answer.get_data(as_text=True))


async def send(api: Api, path: str, **fields: Any) -> Any:
    data = urlencode({**FIELDS, **fields}, doseq=True).encode()
    return await api.ask("editor", "POST", path, data=data, headers=FORM)


def boxes(page: str) -> dict[str, bool]:
    """Returns the boxes of regions, and whether each is checked."""
    found = re.findall(r'<input name="regions" type="checkbox" value="([^"]+)"( checked)?', page)
    return {name: bool(checked) for name, checked in found}


async def made_by_form(api: Api, **fields: Any) -> str:
    answer = await send(api, f"/projects/{api.project}/monitors/new", **fields)
    assert answer.status_code == 303, await answer.get_data()
    return str(answer.headers["Location"])


async def test_one_box_is_an_ordinary_monitor(wide: Api) -> None:
    new = await shown(wide, f"/projects/{wide.project}/monitors/new")
    assert boxes(new) == {"attic": False, "cellar": False, "core": True}
    place = await made_by_form(wide, regions=["", "attic"])
    row = await wide.rows(
        "select s.region, m.regional_of from monitors m join shards s on s.id = m.shard"
    )
    assert row == [("attic", None)]
    # Its region is moved by a list, as it cannot become a regional monitor.
    edit = await shown(wide, f"{place}/edit")
    assert boxes(edit) == {}
    assert '<option value="attic" selected>' in edit
    assert 'id="regions"' not in await shown(wide, place)


async def test_several_boxes_are_a_regional_monitor(wide: Api) -> None:
    place = await made_by_form(wide, regions=["", "core", "attic"])
    screen = await shown(wide, place)
    assert "Down when 2 of 2 are down" in screen
    members = re.findall(r'<th scope="row"><a href="(/monitors/[^"]+)">(core|attic)</a>', screen)
    assert [name for _, name in members] == ["attic", "core"]
    member = await shown(wide, members[0][0])
    assert f'A part of a <a href="{place}">regional monitor</a>' in member
    assert f'{members[0][0]}/edit"' not in member
    answer = await wide.ask("editor", "GET", f"{members[0][0]}/edit")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{place}/edit")
    edit = await shown(wide, f"{place}/edit")
    assert boxes(edit) == {"attic": True, "cellar": False, "core": True}
    assert 'value="https://shop.example/"' in edit
    assert 'name="name" type="text" autocomplete="off" spellcheck="false" value="Shop"' in edit


async def test_the_form_changes_the_regions_and_the_check(wide: Api) -> None:
    place = await made_by_form(wide, regions=["", "core", "attic"])
    changed = {"target": "https://other.example/", "is_regional": "1", "name": "Store"}
    answer = await send(
        wide, f"{place}/edit", regions=["", "cellar", "core"], down_regions="1", **changed
    )
    assert answer.status_code == 303, await answer.get_data()
    rows = await wide.rows(
        "select m.name, m.target from monitors m where m.id <> m.regional_of order by m.name"
    )
    target = changed["target"]
    assert rows == [("Store (cellar)", target), ("Store (core)", target)]
    for regions, down, fault in (
        (["", "core"], "", "must have 2 to 16 entries"),
        ([""], "", "must have at least 1 entry"),
        (["", "core", "attic"], "3", "must be 1 to 2"),
        (["", "core", "attic"], "x", "must be a whole number"),
    ):
        answer = await send(wide, f"{place}/edit", regions=regions, down_regions=down, **changed)
        page = await answer.get_data(as_text=True)
        assert (answer.status_code, fault in page) == (400, True), fault
        assert boxes(page) == {name: name in regions for name in ("attic", "cellar", "core")}


async def test_a_duplicate_has_the_regions(wide: Api) -> None:
    place = await made_by_form(wide, regions=["", "core", "attic"])
    source = place.rpartition("/")[2]
    page = await shown(wide, f"/projects/{wide.project}/monitors/new?clone={source}")
    assert boxes(page) == {"attic": True, "cellar": False, "core": True}
    assert 'value="Shop (copy)"' in page


async def test_other_types_have_one_region(wide: Api) -> None:
    for kind in ("push", "composite", "async_canary"):
        page = await shown(wide, f"/projects/{wide.project}/monitors/new?type={kind}")
        assert boxes(page) == {}
        assert '<select id="region"' in page


async def test_the_screen_deletes_all_parts(wide: Api) -> None:
    place = await made_by_form(wide, regions=["", "core", "attic"])
    answer = await send(wide, f"{place}/delete", act="delete", name="Shop")
    assert answer.status_code == 303, await answer.get_data()
    assert await wide.rows("select name from monitors") == []
