"""The list of monitors by pages and selections, compared with a filter over the whole list."""

from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.monitors.queries import monitor_pages
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.paging import stands

TAGS: list[list[str]] = [[], ["shop"], ["shop", "card 100%"], ["mail"]]


def path_of(api: Api, **query: Any) -> str:
    return f"/api/v1/projects/{api.project}/monitors?{urlencode(query, doseq=True)}"


async def pages(api: Api, **query: Any) -> list[list[dict[str, Any]]]:
    """Follows the links from the first page to the last."""
    found: list[list[dict[str, Any]]] = []
    path = path_of(api, **query)
    while path:
        answer = await api.ask("viewer", "GET", path)
        assert answer.status_code == 200, await answer.get_data()
        found.append(await answer.get_json())
        link = answer.headers.get("Link", "")
        assert not link or link.endswith('>; rel="next"')
        path = link.partition("<")[2].partition(">")[0].partition("//")[2].partition("/")[2]
        path = f"/{path}" if path else ""
    return found


@pytest.fixture
async def many(api: Api) -> list[dict[str, Any]]:
    """Eighteen monitors of several attributes; returns the list without a limit."""
    kinds = [("http", "http://127.0.0.1:1/"), ("tcp", "db-1.example:5432"), ("push", "")]
    for n, ((kind, target), tags, region) in enumerate(
        [*product(kinds, TAGS, ("core",)), *product(kinds[:2], TAGS[:3], ("eu",))]
    ):
        row = await api.new_monitor(
            name=f"Monitor {n}", type=kind, target=target, tags=tags, region=region
        )
        if n % 3:
            status = "up" if n % 3 == 1 else "down"
            await stands(api, row, status, Instant(FROZEN_NOW - MINUTE))
    answer = await api.ask("viewer", "GET", path_of(api))
    assert "Link" not in answer.headers
    found: list[dict[str, Any]] = await answer.get_json()
    assert len(found) == 18
    return found


@pytest.mark.parametrize("limit", [1, 5, 17, 18, 200])
async def test_the_pages_are_the_list(api: Api, many: list[dict[str, Any]], limit: int) -> None:
    found = await pages(api, limit=limit)
    assert [one for page in found for one in page] == many
    assert all(len(page) == limit for page in found[:-1])
    assert 0 < len(found[-1]) <= limit


SELECTIONS: list[dict[str, Any]] = [
    {"tag": ["shop"]},
    {"tag": ["mail", "card 100%"]},
    {"type": ["push", "tcp"]},
    {"region": ["eu"]},
    {"region": ["eu", "core"], "type": ["http"], "tag": ["shop"]},
    {"status": ["down"]},
    {"status": ["up", "pending"], "region": ["core"]},
    {"q": "MONITOR 1"},
    {"q": "DB-1"},
    {"q": "100%"},
    {"q": "_"},
    {"q": "nothing"},
]


def matches(one: dict[str, Any], selection: dict[str, Any]) -> bool:
    words = selection.get("q", "").lower()
    texts = [one["name"], one.get("target", ""), one["slug"], *one["tags"]]
    return (
        ("tag" not in selection or bool(set(selection["tag"]) & set(one["tags"])))
        and all(
            name not in selection or one[name] in selection[name]
            for name in ("type", "region", "status")
        )
        and (not words or any(words in text.lower() for text in texts))
    )


@pytest.mark.parametrize("limit", [None, 2, 100])
@pytest.mark.parametrize("selection", SELECTIONS, ids=repr)
async def test_a_selection_equals_a_filter_over_the_list(
    api: Api,
    many: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    selection: dict[str, Any],
    limit: int | None,
) -> None:
    monkeypatch.setattr(monitor_pages, "_BLOCK", 3)
    found = await pages(api, **selection, **({} if limit is None else {"limit": limit}))
    assert [one for page in found for one in page] == [
        one for one in many if matches(one, selection)
    ]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"limit": 0}, "limit_invalid"),
        ({"limit": 201}, "limit_invalid"),
        ({"limit": "x"}, "limit_invalid"),
        ({"cursor": "x"}, "cursor_invalid"),
        ({"status": "broken"}, "status"),
        ({"type": "gopher"}, "type"),
        ({"q": "x" * 201}, "q"),
    ],
)
async def test_an_invalid_parameter_is_named(api: Api, query: dict[str, Any], named: str) -> None:
    answer = await api.ask("viewer", "GET", path_of(api, **query))
    assert answer.status_code == 400
    assert named in str(await answer.get_json())


async def test_a_cursor_is_of_its_list_and_selection_only(
    api: Api, many: list[dict[str, Any]]
) -> None:
    answer = await api.ask("viewer", "GET", path_of(api, limit=2))
    cursor = answer.headers["Link"].partition("cursor=")[2].partition(">")[0]
    answer = await api.ask("viewer", "GET", path_of(api, limit=2, cursor=cursor, q="m"))
    assert (answer.status_code, await answer.get_json()) == (400, {"error": "cursor_invalid"})


async def test_a_deleted_monitor_ends_no_walk(api: Api, many: list[dict[str, Any]]) -> None:
    """The cursor has the place in the order, not the monitor."""
    answer = await api.ask("viewer", "GET", path_of(api, limit=3))
    last = (await answer.get_json())[-1]["id"]
    deleted = await api.ask("editor", "DELETE", f"/api/v1/monitors/{last}")
    assert deleted.status_code == 204
    path = answer.headers["Link"].partition("<")[2].partition(">")[0]
    answer = await api.ask("viewer", "GET", f"/{path.partition('//')[2].partition('/')[2]}")
    assert [one["id"] for one in await answer.get_json()] == [one["id"] for one in many[3:6]]
