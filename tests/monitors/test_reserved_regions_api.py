"""Only the organizations of a reserved region can create, test or move a monitor there."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api

OPTIONS = HttpOptions(
    regions=frozenset({"core", "attic", "cellar"}),
    reserved={"attic": frozenset({"acme"}), "cellar": frozenset({"other"})},
)
NO_REGION = (400, "region: is not a region of this installation")


@pytest.fixture
async def reserved(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    async with open_api(pool, FROZEN_NOW, passwords, options=OPTIONS) as made:
        yield made


async def ask(api: Api, method: str, path: str, **body: Any) -> tuple[int, str]:
    answer = await api.ask("editor", method, f"/api/v1{path}", body)
    told = await answer.get_json()
    return answer.status_code, told.get("error") or told.get("region", "")


async def test_a_monitor_of_another_is_not_made_there(reserved: Api) -> None:
    path = f"/projects/{reserved.project}/monitors"
    push = {"name": "Job", "type": "push"}
    assert await ask(reserved, "POST", path, **push, region="attic") == (201, "attic")
    assert await ask(reserved, "POST", path, **push, region="cellar") == NO_REGION
    assert await ask(reserved, "POST", path, **push, region="moon") == NO_REGION


async def test_nor_tried_there(reserved: Api) -> None:
    path = f"/projects/{reserved.project}/monitors/test"
    draft = {"name": "a", "type": "tcp", "target": "127.0.0.1:1", "region": "cellar"}
    assert await ask(reserved, "POST", path, **draft) == NO_REGION


async def test_a_monitor_cannot_be_moved_there_and_an_existing_one_can_stay(reserved: Api) -> None:
    row = await reserved.new_monitor()
    path = f"/monitors/{row.uid}"
    assert await ask(reserved, "PATCH", path, region="cellar") == NO_REGION
    assert await ask(reserved, "PATCH", path, region="attic") == (200, "attic")
    # The region is now reserved for another organization: the monitor can be renamed and moved
    # away, and cannot be moved back.
    options = replace(OPTIONS, reserved={"attic": frozenset({"other"})})
    object.__setattr__(reserved.context, "options", options)
    assert await ask(reserved, "PATCH", path, name="Renamed") == (200, "attic")
    assert await ask(reserved, "PATCH", path, region="core") == (200, "core")
    assert await ask(reserved, "PATCH", path, region="attic") == NO_REGION


async def test_the_form_offers_only_what_may_be_chosen(reserved: Api) -> None:
    path = f"/projects/{reserved.project}/monitors/new?type=tcp"
    page = await (await reserved.ask("editor", "GET", path)).get_data(as_text=True)
    assert 'value="attic"' in page
    assert 'value="core"' in page
    assert "cellar" not in page
