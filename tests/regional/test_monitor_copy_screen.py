"""A copied monitor: its command creates the same monitor, and its bundle changes nothing."""

import html
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.options import HttpOptions
from leadline.storage.bundles.rules.bundle_yaml import read_text
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import call

WHO = "project_admin"
SHOP = {
    "name": "Shop",
    "type": "http",
    "target": "https://shop.example/",
    "interval_seconds": 30,
    "recovery_threshold": 2,
    "tags": ["shop"],
    "renotify_seconds": 600,
}
# What a copy does not have in common with its source.
OWN = {"id", "slug", "created_at", "updated_at", "next_due_at"}


@pytest.fixture
async def wide(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    options = HttpOptions(regions=frozenset({"core", "attic", "cellar"}))
    async with open_api(pool, FROZEN_NOW, passwords, options=options) as made:
        yield made


async def copy_of(api: Api, monitor: str, query: str = "") -> str:
    answer = await api.ask(WHO, "GET", f"/monitors/{monitor}/copy{query}")
    assert answer.status_code == 200
    page = str(await answer.get_data(as_text=True))
    (found,) = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)
    return html.unescape(found)


async def test_the_command_of_a_regional_monitor_creates_the_same(wide: Api) -> None:
    there = f"/projects/{wide.project}/monitors"
    regions = ["attic", "cellar", "core"]
    body = {**SHOP, "regions": regions, "down_regions": 3}
    made = await call(wide, "POST", there, body, 201, who=WHO)
    text = await copy_of(wide, made["id"])
    (found,) = re.findall(r"-d '(.*)'$", text, re.DOTALL)
    copied = json.loads(found)
    assert (copied["type"], copied["regions"], copied["down_regions"]) == ("http", regions, 3)
    again = await call(wide, "POST", there, copied, 201, who=WHO)
    alike = ["config", *OWN]
    assert {k: v for k, v in again.items() if k not in alike} == {
        k: v for k, v in made.items() if k not in alike
    }


async def plan_of(api: Api, monitor: str) -> tuple[Any, list[str]]:
    document: Any = read_text(await copy_of(api, monitor, "?show=yaml")).document
    path = f"/projects/{api.project}/bundle/plan"
    plan = await call(api, "POST", path, document, who=WHO)
    return document, [one["action"] for one in plan["changes"]]


async def test_the_bundle_of_a_monitor_with_an_objective_is_read(wide: Api) -> None:
    made = await wide.new_monitor(name="Shop", slug="shop")
    target = {"window": "30d", "objective": 99.9}
    await call(wide, "PUT", f"/monitors/{made.uid}/sla-target", target, who=WHO)
    document, actions = await plan_of(wide, str(made.uid))
    assert document["monitors"]["shop"]["sla_targets"] == {"30d": {"objective": 99.9}}
    assert actions == ["unchanged"]


async def test_the_bundle_of_a_regional_monitor_has_its_parts(wide: Api) -> None:
    there = f"/projects/{wide.project}/monitors"
    body = {**SHOP, "regions": ["attic", "core"]}
    made = await call(wide, "POST", there, body, 201, who=WHO)
    document, actions = await plan_of(wide, made["id"])
    assert sorted(document["monitors"]) == ["shop", "shop-attic", "shop-core"]
    assert actions == ["unchanged"] * 3
