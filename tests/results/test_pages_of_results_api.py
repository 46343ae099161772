"""Results and incidents in pages: the header `Link` leads to the oldest one, each exactly once."""

from typing import Any

import pytest

from leadline.storage.core.instant import SECOND, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api


async def put_results(api: Api, monitor: Any, count: int) -> None:
    async with api.pool.transaction("put") as tx:
        await tx.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up)"
            " select %(org)s, %(monitor)s, at(%(start)s + n * %(step)s), n, true"
            " from generate_series(1, %(count)s) as n",
            org=monitor.key[0],
            monitor=monitor.key[1],
            start=Instant(FROZEN_NOW - 10_000 * SECOND),
            step=SECOND,
            count=count,
        )


async def pages(api: Api, path: str) -> list[list[Any]]:
    """Returns the pages of a list, from the first to the one without a header `Link`."""
    found: list[list[Any]] = []
    following = f"/api/v1{path}"
    while following:
        answer = await api.ask("viewer", "GET", following)
        assert answer.status_code == 200
        found.append(await answer.get_json())
        link = answer.headers.get("Link", "")
        assert link == "" or link.endswith('>; rel="next"')
        following = f"/api/{link.partition('/api/')[2].partition('>')[0]}" if link else ""
    return found


@pytest.mark.parametrize(("limit", "sizes"), [(3, [3, 3, 1]), (7, [7]), (1, [1] * 7)])
async def test_results_are_read_to_the_oldest(api: Api, limit: int, sizes: list[int]) -> None:
    monitor, other = await api.new_monitor(), await api.new_monitor()
    await put_results(api, monitor, 7)
    await put_results(api, other, 3)
    found = await pages(api, f"/monitors/{monitor.uid}/heartbeats?limit={limit}")
    assert [len(page) for page in found] == sizes
    assert [beat["latency_ms"] for page in found for beat in page] == [7, 6, 5, 4, 3, 2, 1]


async def test_a_range_of_results_has_its_own_pages(api: Api) -> None:
    monitor = await api.new_monitor()
    await put_results(api, monitor, 9)
    first = FROZEN_NOW - 10_000 * SECOND
    span = f"from={to_text(Instant(first + 3 * SECOND))}&to={to_text(Instant(first + 8 * SECOND))}"
    path = f"/monitors/{monitor.uid}/heartbeats?{span}&limit=2"
    found = await pages(api, path)
    assert [[beat["latency_ms"] for beat in page] for page in found] == [[7, 6], [5, 4], [3]]
    answer = await api.ask("viewer", "GET", f"/api/v1{path}")
    cursor = answer.headers["Link"].partition("cursor=")[2].partition(">")[0].partition("&")[0]
    other = f"/api/v1/monitors/{monitor.uid}/heartbeats?cursor={cursor}"
    assert (await api.ask("viewer", "GET", other)).status_code == 400
    turned = f"from={to_text(FROZEN_NOW)}&to={to_text(FROZEN_NOW)}"
    path = f"/api/v1/monitors/{monitor.uid}/heartbeats?{turned}"
    refused = await api.ask("viewer", "GET", path)
    assert await refused.get_json() == {"error": "range_invalid"}


async def test_without_a_limit_the_newest_hundred_are_the_first_page(api: Api) -> None:
    monitor = await api.new_monitor()
    await put_results(api, monitor, 1_203)
    found = await pages(api, f"/monitors/{monitor.uid}/heartbeats")
    assert [len(page) for page in found] == [100] * 12 + [3]
    found = await pages(api, f"/monitors/{monitor.uid}/heartbeats?limit=5000")
    assert [len(page) for page in found] == [1_000, 203]


@pytest.mark.parametrize(("query", "numbers"), [("", [5, 4, 3, 2, 1]), ("&status=open", [5, 3, 1])])
async def test_incidents_are_read_to_the_oldest(api: Api, query: str, numbers: list[int]) -> None:
    for _ in range(5):
        await api.new_incident()
    async with api.pool.transaction("resolve") as tx:
        await tx.execute(
            "update incidents set status = 'resolved', resolved_at = started_at"
            " where number in (2, 4)"
        )
    found = await pages(api, f"/projects/{api.project}/incidents?limit=2{query}")
    assert [one["number"] for page in found for one in page] == numbers
    assert max(len(page) for page in found) == 2


async def test_a_cursor_is_for_its_list_only(api: Api) -> None:
    monitor, other = await api.new_monitor(), await api.new_monitor()
    await put_results(api, monitor, 2)
    for _ in range(2):
        await api.new_incident()
    beats, incidents = (f"/monitors/{monitor.uid}/heartbeats", f"/projects/{api.project}/incidents")

    async def cursor(path: str) -> str:
        answer = await api.ask("viewer", "GET", f"/api/v1{path}?limit=1")
        return str(answer.headers["Link"].partition("cursor=")[2].partition(">")[0])

    of_beats, of_incidents = await cursor(beats), await cursor(incidents)
    for path in (
        f"/monitors/{other.uid}/heartbeats?cursor={of_beats}",
        f"{beats}?cursor={of_incidents}",
        f"{incidents}?cursor={of_beats}",
        f"{incidents}?status=open&cursor={of_incidents}",
        f"{beats}?cursor=x",
    ):
        answer = await api.ask("viewer", "GET", f"/api/v1{path}")
        assert (answer.status_code, await answer.get_json()) == (400, {"error": "cursor_invalid"})
