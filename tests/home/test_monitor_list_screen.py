"""The list of monitors: filter, order and pages in the URL, and actions on a selection."""

import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.home.console.monitor_filter import (
    SORTS,
    MonitorFilter,
    MonitorListQuery,
    Ordering,
    facets,
    filter_of,
)
from leadline.http.ui.monitor_status import MonitorStatusText
from leadline.storage.bulk.transactions import act_at_once
from leadline.storage.core.refusal import Unavailable
from tests.support.app.cast import Api

from ..incidents.test_incidents_screen import seen, send

TAGS = ("shop", "checkout", "edge")
ITEMS = st.lists(
    st.builds(
        lambda number, name, state, type_, tags, region, latency: SimpleNamespace(
            state=state,
            key=(1, number),
            standing=SimpleNamespace(latency_ms=latency, last_up=state is MonitorStatusText.UP),
            row=SimpleNamespace(
                id=number,
                uid=UUID(int=number),
                name=name,
                slug=name.lower(),
                target=f"https://{name}.example",
                type=type_,
                tags=tags,
                region=region,
            ),
        ),
        st.integers(1, 10_000),
        st.sampled_from(("Basket", "Tax", "Search", "basket")),
        st.sampled_from(list(MonitorStatusText)),
        st.sampled_from(("http", "push", "grpc")),
        st.lists(st.sampled_from(TAGS), unique=True),
        st.sampled_from(("core", "eu-west")),
        st.none() | st.integers(0, 5_000),
    ),
    max_size=12,
    unique_by=lambda item: item.row.id,
)
FILTERS = st.builds(
    MonitorFilter,
    status=st.frozensets(st.sampled_from([state.value for state in MonitorStatusText])),
    type=st.frozensets(st.sampled_from(("http", "push", "grpc", "unused"))),
    tag=st.frozensets(st.sampled_from((*TAGS, "unused"))),
    region=st.frozensets(st.sampled_from(("core", "eu-west"))),
    q=st.sampled_from(("", "bask", "EXAMPLE", "shop", "nothing")),
    sort=st.sampled_from(list(SORTS)),
)


@pytest.mark.rule
@given(ITEMS, FILTERS)
def test_a_filter_keeps_what_each_of_its_facets_keeps(items: list[Any], chosen: Any) -> None:
    for item in items:
        row = item.row
        expected = True
        for values, own in (
            (chosen.status, {item.state.value}),
            (chosen.type, {row.type}),
            (chosen.tag, set(row.tags)),
            (chosen.region, {row.region}),
        ):
            if values and not values & own:
                expected = False
        text = " ".join((row.name, row.target, row.slug, *row.tags)).lower()
        if chosen.q.lower() not in text:
            expected = False
        assert chosen.matches(item) == expected


@pytest.mark.rule
@given(FILTERS)
def test_the_query_string_restores_the_filter(chosen: Any) -> None:
    parts = parse_qs(chosen.query())
    single = {name: values[0] for name, values in parts.items() if name in ("q", "sort")}
    query = msgspec.convert({**parts, **single}, MonitorListQuery)
    assert filter_of(query) == chosen


@pytest.mark.rule
@given(ITEMS, st.sampled_from(list(SORTS)))
def test_an_order_keeps_every_monitor_and_ends_with_missing_values(
    items: list[Any], sort: str
) -> None:
    uptime = {item.key: item.row.id / 10_000 for item in items if item.row.id % 2}
    found: list[Any] = list(Ordering(sort, uptime).ordered(items))
    assert sorted(item.row.id for item in found) == sorted(item.row.id for item in items)
    match sort:
        case "uptime":
            known = [uptime[item.key] for item in found if item.key in uptime]
            assert known == sorted(known)
            assert all(item.key in uptime for item in found[: len(known)])
        case "name":
            names = [item.row.name.lower() for item in found]
            assert names == sorted(names)
        case "-created":
            assert [item.row.id for item in found] == sorted(
                (item.row.id for item in items), reverse=True
            )
        case "-latency":
            shown = [
                item.standing.latency_ms
                for item in found
                if item.state is MonitorStatusText.UP and item.standing.latency_ms is not None
            ]
            assert shown == sorted(shown, reverse=True)
        case "":
            first = found[0].state if found else None
            down = [item for item in items if item.state is MonitorStatusText.DOWN]
            assert first is MonitorStatusText.DOWN or not down


@pytest.mark.rule
@given(ITEMS, FILTERS)
def test_the_counts_of_a_facet_are_those_of_the_project(items: list[Any], chosen: Any) -> None:
    for facet in facets(items, chosen):
        for one in facet.choices:
            values: dict[str, Any] = {facet.name: frozenset({one.value})}
            alone = MonitorFilter(**values)
            assert one.many == sum(alone.matches(item) for item in items), (facet.name, one)


def shown(page: str) -> list[str]:
    """The names of the monitors of the page, in order."""
    return re.findall(r'<th scope="row">.*?title="([^"]*)">', page)


def toast(page: str) -> str:
    return page.partition('class="toast"><span>')[2].partition("</span>")[0]


def undo_of(page: str) -> dict[str, str]:
    """The fields of the undo form."""
    form = page.partition('class="toast"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form))
    return {**fields, "act": form.partition('name="act" value="')[2].partition('"')[0]}


async def many(api: Api, count: int, **given_: Any) -> list[str]:
    return [
        str((await api.new_monitor(name=f"Monitor {n:03}", **given_)).uid) for n in range(count)
    ]


async def acted(api: Api, path: str, **form: Any) -> str:
    answer = await send(api, path, **form)
    assert answer.status_code == 200, await answer.get_data(as_text=True)
    return str(await answer.get_data(as_text=True))


async def test_pages_and_filter_are_in_the_url(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    await many(api, 101)
    await api.new_monitor(name="Tagged", tags=["edge"])
    pages = [shown(await seen(api, f"{path}?sort=name&page={n}")) for n in (1, 2, 3)]
    assert [len(names) for names in pages] == [50, 50, 2]
    assert len({name for names in pages for name in names}) == 102
    assert shown(await seen(api, f"{path}?tag=edge")) == ["Tagged"]
    page = await seen(api, f"{path}?tag=unused")
    assert "No monitors match" in page
    assert shown(await seen(api, f"{path}?page=99&sort=name")) == pages[2]


@pytest.mark.parametrize("rest", ["page=0", "page=-4", "sort=unknown", "status=unknown-status"])
async def test_odd_queries_show_the_list(api: Api, rest: str) -> None:
    await many(api, 2)
    assert len(shown(await seen(api, f"/projects/{api.project}/monitors?{rest}"))) == 2


async def test_pause_and_its_undo_change_only_what_they_name(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 3)
    await api.new_monitor(name="Paused before", enabled=False)
    page = await acted(api, path, act="pause", all="on", filter="")
    assert toast(page) == "3 monitors paused."
    states = "select name, enabled from monitors order by name"
    assert all(not enabled for _, enabled in await api.rows(states))
    page = await acted(api, path, **undo_of(page))
    assert toast(page) == "3 monitors resumed."
    assert dict(await api.rows(states)) == {
        **{f"Monitor {n:03}": True for n in range(3)},
        "Paused before": False,
    }
    page = await acted(api, path, act="pause", ids=",".join(uids[:1]))
    assert toast(page) == "1 monitor paused."


async def test_an_undo_skips_what_was_changed_after_the_action(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 3)
    undo = undo_of(await acted(api, path, act="pause", ids=",".join(uids)))
    await acted(api, path, act="tag", tag="edge", ids=uids[1])
    page = await acted(api, path, **undo)
    assert toast(page) == "2 monitors resumed. 1 monitor was skipped: changed after the action."
    states = "select name, enabled from monitors order by name"
    assert dict(await api.rows(states)) == {
        "Monitor 000": True,
        "Monitor 001": False,
        "Monitor 002": True,
    }
    # The undo offers to undo only its own changes, and a second one has no effect.
    assert undo_of(page)["ids"].count(",") == 1
    again = await acted(api, path, **undo)
    told = "No monitor was changed. 3 monitors were skipped: changed after the action."
    assert toast(again) == told


async def test_a_tag_and_a_channel_are_added_and_taken_back(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 2, tags=["shop"])
    channel = await api.new_channel()
    page = await acted(api, path, act="tag", tag="edge", ids=",".join(uids))
    assert toast(page) == "2 monitors tagged."
    assert {tuple(tags) for (tags,) in await api.rows("select tags from monitors")} == {
        ("shop", "edge")
    }
    await acted(api, path, **undo_of(page))
    assert {tuple(tags) for (tags,) in await api.rows("select tags from monitors")} == {("shop",)}
    page = await acted(api, path, act="attach", channel=str(channel), ids=uids[0])
    again = await acted(api, path, act="attach", channel=str(channel), ids=",".join(uids))
    assert toast(again) == "1 monitor changed: channel added."
    undone = await acted(api, path, **undo_of(again))
    assert toast(undone) == "1 monitor changed: channel removed."
    assert await api.rows("select count(*) from monitor_channels") == [(1,)], page


async def test_maintenance_begins_and_is_ended_by_its_undo(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 2)
    page = await acted(api, path, act="maintain", minutes="60", reason="Move", ids=",".join(uids))
    assert toast(page) == "2 monitors in maintenance."
    assert await api.rows("select count(*), min(reason) from maintenances") == [(2, "Move")]
    undo = undo_of(page)
    page = await acted(api, path, **undo)
    assert toast(page) == "2 maintenance windows ended."
    # Windows that are over have nothing to end.
    assert toast(await acted(api, path, **undo)) == "0 maintenance windows ended."
    page = await acted(api, path, act="maintain", minutes="60", ids=",".join(uids))
    undo = undo_of(page)
    over = "update maintenances set starts_at = now() - interval '9 years', ends_at = now() - "
    async with api.pool.transaction("over") as tx:
        await tx.execute(f"{over} interval '8 years' where uid = %(uid)s", uid=undo["ids"][:36])
    assert toast(await acted(api, path, **undo)) == "1 maintenance window ended."


async def test_an_action_that_the_database_interrupts_states_what_it_did(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 4)

    async def interrupted(*given_: Any) -> Any:
        if str(given_[3].uid) == uids[1]:
            raise Unavailable("away")
        return await act_at_once(*given_)

    monkeypatch.setattr("leadline.http.home.console.monitor_bulk.act_at_once", interrupted)
    page = await acted(api, path, act="pause", ids=",".join(uids))
    assert toast(page) == "1 monitor paused. Stopped: 2 monitors were not tried."
    assert "Monitor 001: the database did not answer in time." in page
    states = await api.rows("select enabled from monitors order by name")
    assert states == [(False,), (True,), (True,), (True,)]


async def test_the_list_states_the_time_of_its_figures(api: Api) -> None:
    await many(api, 1)
    page = await seen(api, f"/projects/{api.project}/monitors")
    assert re.search(r'As of <time datetime="[^"]+">', page)


async def test_a_deletion_needs_the_number_and_reports_what_it_could_not_delete(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 2)
    needed = await api.new_monitor(name="Needed")
    await api.new_monitor(name="Dependent", depends_on=[needed.uid])
    chosen = ",".join([*uids, str(needed.uid)])
    page = await acted(api, path, act="confirm_delete", ids=chosen)
    assert "Delete 3 monitors?" in page
    answer = await send(api, path, act="delete", ids=chosen, count="2")
    assert answer.status_code == 400
    assert await api.rows("select count(*) from monitors") == [(4,)]
    page = await acted(api, path, act="delete", ids=chosen, count="3")
    assert toast(page) == "2 monitors deleted."
    assert "Needed: in use by a composite, a monitor or a service." in page
    assert await api.rows("select count(*) from monitors") == [(2,)]


async def test_ids_of_another_project_are_ignored(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    (uid,) = await many(api, 1)
    foreign = "01a20031-f412-7194-981b-2db4350507bf"
    assert toast(await acted(api, path, act="pause", ids=f"{uid},{foreign}")) == "1 monitor paused."
    answer = await send(api, path, act="pause", ids=foreign)
    assert answer.status_code == 400
    assert (await send(api, path, act="pause", ids="zz")).status_code == 400
    assert (await send(api, path, act="unknown", ids=uid)).status_code == 400
    assert (await send(api, path, who="viewer", act="pause", ids=uid)).status_code == 403


async def test_a_live_client_gets_304_until_something_that_it_shows_changes(api: Api) -> None:
    uids = await many(api, 2)
    path = f"/projects/{api.project}/monitors?sort=name&shown={uids[0]}&shown={uids[1]}"
    first = await api.ask("viewer", "GET", path, headers={"If-None-Match": "-"})
    tag = {"If-None-Match": first.headers["ETag"]}
    assert (await api.ask("viewer", "GET", path, headers=tag)).status_code == 304
    await acted(api, f"/projects/{api.project}/monitors", act="pause", ids=uids[0])
    changed = await api.ask("viewer", "GET", path, headers=tag)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]


async def test_a_shown_monitor_of_another_page_is_answered_apart(api: Api) -> None:
    uids = await many(api, 51)
    path = f"/projects/{api.project}/monitors?sort=name&shown={uids[50]}"
    page = await seen(api, path)
    list_, _, away = page.partition('id="elsewhere"')
    assert "Monitor 050" not in shown(list_)
    assert shown(away) == ["Monitor 050"]
