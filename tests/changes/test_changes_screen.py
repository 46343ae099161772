"""The changes of a service for people: in words, on an axis and in a table that agree with the API,
and nowhere a word of why something happened.
"""

import gzip
import re
from fractions import Fraction
from html import unescape
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.incidents.console.preceding_changes_panel import SHOWN_MOST
from leadline.http.ui.change_text import difference
from leadline.storage.changes.rules.change import ChangeKind, ChangePhaseName, Record
from leadline.storage.changes.rules.change_comparison import SealedSums, Side
from leadline.storage.changes.transactions import record_change
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.core.sli import Split
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rows import ServiceRow
from tests.changes.test_changes_api import at, listed, row_of, say
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import DOWN, UP, call, declared, new, sealed, uid_of
from tests.support.worlds.change_records import decide

from ..oncall.test_oncall_screen import first_line
from ..services.test_services_screen import seen

# Compressed, as a browser receives the page.
PAGE_BYTES_MOST = 25_000

NASTY = "<img src=x onerror=alert(1)>\"'&"


def undisclaimed(page: str) -> str:
    """Returns the text of the page without the notes that order does not prove a cause."""
    text = plain(page)
    for note in ("The order does not prove a cause.", "This shows order, not cause."):
        text = text.replace(note, "")
    return text


def page_of(path: str) -> str:
    return f"/services/{uid_of(path)}/changes"


def plain(page: str) -> str:
    """The visible text of the page."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


def rows_of(page: str) -> list[str]:
    body = re.search(r'class="tight named changes">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    return [] if body is None else re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)


def drawn(page: str) -> list[str]:
    """The titles of the changes on the axis."""
    plot = re.search(r'<svg[^>]*role="img"[^>]*on one axis.*?</figure>', page, re.DOTALL)
    assert plot is not None
    found = re.findall(r'<svg class="change [^>]*><title>(.*?)</title>', plot[0])
    return [unescape(said) for said in found]


async def recorded(
    api: Api, service: ServiceRow, phase: str, external_id: str, off_us: int, **given_: Any
) -> None:
    """As by HTTP, without its rates."""
    values = {"kind": ChangeKind.DEPLOY, "source": "ci", **given_}
    told_ = Record(
        phase=ChangePhaseName(phase),
        external_id=external_id,
        occurred_at=Instant(FROZEN_NOW + off_us),
        **values,
    )
    async with api.pool.transaction("record") as tx:
        await record_change(tx, api.editor, api.project, service.uid, told_)


async def opened(api: Api, service: ServiceRow, off_us: int, title: str = "It is down") -> UUID:
    """An incident of a service that began then."""
    uid = await api.new_incident(title=title)
    async with api.pool.transaction("of_a_service") as tx:
        await tx.execute(
            "update incidents set service = %(service)s, started_at = at(%(at)s) "
            "where uid = %(uid)s",
            service=service.id,
            at=Instant(FROZEN_NOW + off_us),
            uid=uid,
        )
    return uid


async def test_a_service_without_changes_explains_how_to_record_them(api: Api) -> None:
    path = await new(api, "shop", name="Shop")
    page = await seen(api, page_of(path))
    assert first_line(page) == "No changes of Shop yet"
    assert "leadline change record" in page
    assert "on one axis" not in page


async def test_changes_are_counted_drawn_and_listed_as_in_the_api(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (3 * 60, UP))
    for n, (kind, end) in enumerate(
        [("deploy", "succeeded"), ("rollback", "failed"), ("flag", "cancelled"), ("deploy", None)]
    ):
        told_of: dict[str, Any] = {"kind": kind, "ref": f"v{n}"}
        began = -20 * DAY + n * 5 * DAY
        await say(api, path, "started", str(n), occurred_at=at(began), **told_of)
        if end is not None:
            await say(api, path, end, str(n), occurred_at=at(began + 2 * HOUR), **told_of)
    page = await seen(api, page_of(path))
    assert first_line(page) == "4 changes of checkout in the last 30 days"
    rows, groups = rows_of(page), (await listed(api, path))["items"]
    assert len(rows) == len(groups) == 4
    for row, group in zip(rows, groups, strict=True):
        assert group["ref"] in row
        assert f'href="changes/{group["phases"][0]["id"]}"' in row
        for phase in group["phases"]:
            assert phase["phase"] in plain(row)
            assert f'datetime="{phase["occurred_at"]}"' in row
    marks = drawn(page)
    assert [mark.partition(":")[0] for mark in marks] == [
        "Deploy v0, succeeded",
        "Rollback v1, failed",
        "Flag change v2, cancelled",
        "Deploy v3, in progress",
    ]
    assert ["2" in mark.rpartition(",")[2] for mark in marks[:3]] == [True] * 3
    for sign in ("c-deploy", "c-rollback", "c-flag", "c-failed", "c-cancelled"):
        assert f'href="#{sign}"' in page
    assert first_line(await seen(api, f"{page_of(path)}?range=7d")) == (
        "1 change of checkout in the last 7 days"
    )
    assert "caus" not in undisclaimed(page)


async def test_kind_and_source_narrow_the_words_the_plot_and_the_table(api: Api) -> None:
    path = await new(api, "shop", name="Shop")
    await say(api, path, "started", "1", source="ci", kind="deploy", occurred_at=at(-HOUR))
    await say(api, path, "started", "2", source="ci", kind="flag", occurred_at=at(-9 * HOUR))
    await say(api, path, "started", "3", source="flags", kind="flag", occurred_at=at(-30 * HOUR))
    for query, sentence, many in (
        ("", "3 changes of Shop in the last 30 days", 3),
        ("?kind=flag", "2 flag changes of Shop in the last 30 days", 2),
        ("?source=ci", "2 changes of Shop by ci in the last 30 days", 2),
        ("?kind=flag&source=ci", "1 flag change of Shop by ci in the last 30 days", 1),
        ("?kind=rollback", "No rollback of Shop in the last 30 days", 0),
        ("?source=nobody", "No change of Shop by nobody in the last 30 days", 0),
    ):
        page = await seen(api, page_of(path) + query)
        assert first_line(page) == sentence
        assert len(rows_of(page)) == len(drawn(page)) == many
        assert ("No matches" in page) is (many == 0)
        assert "<option" in page
        assert ">flags</option>" in page
    for query in ("?source=No+source", "?source=%00", "?kind=other", "?range=1y", "?cursor=x"):
        answer = await api.ask("viewer", "GET", page_of(path) + query)
        assert answer.status_code == 400, query


async def test_days_without_a_change_are_shown_as_empty(api: Api) -> None:
    path = await new(api, "shop", name="Shop")
    await say(api, path, "started", "1", occurred_at=at(-20 * DAY))
    page = await seen(api, f"{page_of(path)}?range=7d")
    assert first_line(page) == "No change of Shop in the last 7 days"
    assert "No changes in this period" in page
    assert "range=30d" in page


async def test_older_changes_are_on_the_next_page_only(api: Api) -> None:
    path = await new(api, "shop")
    row = await row_of(api, path)
    for n in range(51):
        # Two at a time at one instant: the page may end between them.
        await recorded(api, row, "started", f"run-{n:02}", -((n + 1) // 2) * MINUTE)
    page = await seen(api, page_of(path))
    older = re.search(r'rel="next" href="([^"]+)"', page)
    assert older is not None
    following = await seen(api, unescape(older[1]))
    known = [re.findall(r"run-\d\d", row)[0] for each in (page, following) for row in rows_of(each)]
    assert len(rows_of(page)) == 50
    assert [item["external_id"] for item in (await listed(api, path))["items"]] == known[:50]
    assert len(set(known)) == 51
    other = await api.ask("viewer", "GET", f"{unescape(older[1])}&kind=flag")
    assert other.status_code == 400


async def test_the_changes_of_all_services_are_listed_in_order_and_found(api: Api) -> None:
    shop, search = [await row_of(api, await new(api, name)) for name in ("shop", "search")]
    await opened(api, shop, -MINUTE, "Shop is down")
    for n in range(26):
        await recorded(api, shop, "started", f"run-{2 * n:02}", -2 * n * MINUTE - 2 * MINUTE)
        await recorded(api, search, "started", f"run-{2 * n + 1:02}", -2 * n * MINUTE - 3 * MINUTE)
    path = f"/projects/{api.project}/changes"
    page = await seen(api, path)
    assert "52 changes in 30 days" in page
    assert "Shop is down" in page
    older = re.search(r'rel="next" href="([^"]+)"', page)
    assert older is not None
    following = await seen(api, unescape(older[1]))
    known = [re.findall(r">[^<]*(run-\d\d)<", each) for each in (page, following)]
    assert known[0] + known[1] == [f"run-{n:02}" for n in range(52)]
    assert len(known[0]) == 50
    found = await seen(api, f"{path}?q=RUN-07&kind=deploy&service={search.uid}")
    assert re.findall(r">[^<]*(run-\d\d)<", found) == ["run-07"]
    assert "No changes match" in await seen(api, f"{path}?q=run-07&service={shop.uid}")
    other = await api.ask("viewer", "GET", f"{path}?service={api.project}")
    assert other.status_code == 404


async def test_marks_that_overlap_are_one_mark_with_a_number(api: Api) -> None:
    path = await new(api, "shop")
    for n in range(5):
        await say(api, path, "started", str(n), occurred_at=at(-2 * DAY + n * MINUTE))
    await say(api, path, "started", "6", occurred_at=at(-10 * DAY))
    page = await seen(api, page_of(path))
    assert [mark.partition(":")[0] for mark in drawn(page)] == [
        "Deploy 6, in progress",
        "5 deploys, in progress",
    ]
    assert "6 changes, state, 0 incidents" in page


async def test_a_change_shows_the_decision_of_the_gate_and_later_incidents(api: Api) -> None:
    path = await new(api, "shop", name="Shop")
    row = await row_of(api, path)
    decision = await decide(api.pool, row, Instant(FROZEN_NOW - HOUR), "BLOCK", "ALLOW", "BLOCK")
    made = await say(
        api, path, "started", "1", occurred_at=at(-HOUR), decision_id=str(decision), ref="v1"
    )
    incidents = [await opened(api, row, -HOUR + n * 12 * MINUTE, f"Fall {n}") for n in (1, 2, 3)]
    page = await seen(api, page_of(path))
    (told_,) = rows_of(page)
    assert f"/projects/{api.project}/gate/decisions/{decision}" in told_
    assert "BLOCK overridden" in plain(told_)
    assert "12 min before INC-1, Fall 1" in plain(told_).replace("\u202f", " ")
    assert f"/incidents/{incidents[0]}" in told_
    assert "Fall 2" not in told_
    assert "2 more" in plain(told_)
    one = await seen(api, f"{page_of(path)}/{made['change']['id']}")
    for n, uid in enumerate(incidents, 1):
        assert f"/incidents/{uid}" in one
        assert f"Fall {n} {12 * n} min before" in plain(one).replace("\u202f", " ")
    assert "overridden" in one
    async with api.pool.transaction("age") as tx:
        partitions = await tx.rows(
            "select inhrelid::regclass::text from pg_inherits "
            "where inhparent = 'gate_decisions'::regclass"
        )
        for (name,) in partitions:
            await tx.execute(f"drop table {name}")
    aged = await seen(api, page_of(path))
    assert "deleted by retention" in aged
    assert str(decision) not in aged
    assert "deleted by retention" in await seen(api, f"{page_of(path)}/{made['change']['id']}")
    assert "caus" not in undisclaimed(page + one + aged)


async def test_both_sides_of_a_change_equal_the_comparison_of_the_api(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (120, UP), (6, DOWN), (54, UP))
    began = await say(api, path, "started", "1", occurred_at=at(-HOUR - 10 * MINUTE), ref="v1")
    here = f"{page_of(path)}/{began['change']['id']}"
    page = await seen(api, here)
    assert first_line(page) == "Deploy v1 of checkout is in progress"
    assert "No comparison yet" in page
    await say(api, path, "failed", "1", occurred_at=at(-HOUR))
    page = await seen(api, here)
    assert first_line(page) == "Deploy v1 of checkout failed"
    for horizon in ("15m", "1h", "6h", "24h"):
        page = await seen(api, f"{here}?horizon={horizon}")
        said = await call(
            api,
            "GET",
            f"{path}/changes/compare",
            who="viewer",
            query={"source": "ci", "external_id": "1", "horizon": horizon},
        )
        figures = re.findall(r"<dd><b[^>]*>(.*?)</b><small>(.*?)</small>", page)
        for (figure, note), side in zip(figures, (said["before"], said["after"]), strict=False):
            if "availability" in side:
                assert abs(float(figure.split()[0].removesuffix("%")) - side["availability"]) <= 1
                assert "coverage" in note
            else:
                assert figure == "—"
                assert ("No data: " in note) is ("withheld" in side)
                assert ("pending: " in note) is ("pending" in side)
        difference_ = figures[2][0]
        if "delta" in said:
            value = float(difference_.replace("\u2212", "-"))
            assert abs(value - said["delta"]) <= 0.1
        else:
            assert difference_ == "—"
    assert "pending: " in page or "No data: " in page


def a_side(minutes: int) -> Side:
    facts = SealedSums(minutes, Split(good_us=minutes * MINUTE))
    return Side(TimeSpan(Instant(0), Instant(minutes * MINUTE)), facts=facts)


@given(
    st.fractions(min_value=-100, max_value=100),
    st.integers(1, 1_440),
    st.integers(1, 1_440),
)
def test_a_difference_has_a_sign_and_is_not_rounded_up_or_to_zero(
    delta: Fraction, before: int, after: int
) -> None:
    text = difference(delta, (a_side(before), a_side(after))).text
    if not delta:
        assert text == "0"
        return
    assert (text[0] == "+") is (delta > 0)
    assert (text[0] == "\u2212") is (delta < 0)
    told_ = Fraction(text.lstrip("+\u2212< "))
    if "<" in text:
        assert abs(delta) < told_
    else:
        assert 0 <= abs(delta) - told_ < Fraction(1, 10)


def test_a_difference_that_is_not_there_is_a_dash() -> None:
    assert difference(None, []).text == "—"


async def test_a_change_is_found_by_its_phases_and_of_its_service_alone(api: Api) -> None:
    shop, mill = await new(api, "shop"), await new(api, "mill")
    made = (await say(api, shop, "started", "1"))["change"]["id"]
    ended = (await say(api, shop, "succeeded", "1"))["change"]["id"]
    assert await seen(api, f"{page_of(shop)}/{made}")
    assert await seen(api, f"{page_of(shop)}/{ended}")
    for path in (f"{page_of(mill)}/{made}", f"{page_of(shop)}/{uid_of(mill)}"):
        assert (await api.ask("viewer", "GET", path)).status_code == 404
    wrong = await api.ask("viewer", "GET", f"{page_of(shop)}/{made}?horizon=2h")
    assert wrong.status_code == 400


async def test_texts_of_a_source_are_escaped_and_its_url_is_external(api: Api) -> None:
    path = await new(api, "shop", name=NASTY)
    url = "https://ci.example.com/?a=1&b=%22%3E%3Cscript%3E"
    made = await say(api, path, "started", NASTY, ref=NASTY, url=url)
    await opened(api, await row_of(api, path), 0, NASTY)
    for page in (
        await seen(api, page_of(path)),
        await seen(api, f"{page_of(path)}/{made['change']['id']}"),
        await seen(api, f"/services/{uid_of(path)}"),
    ):
        assert "<img" not in page
        assert "<script>" not in page
    page = await seen(api, page_of(path))
    assert (
        '<a href="https://ci.example.com/?a=1&amp;b=%22%3E%3Cscript%3E" '
        'rel="noopener noreferrer nofollow">' in page
    )


async def test_a_url_that_is_long_is_on_the_page_of_its_change(api: Api) -> None:
    path = await new(api, "shop")
    long = f"https://ci.example.com/{'u' * 400}"
    made = await say(api, path, "started", "1", url=long)
    assert long not in await seen(api, page_of(path))
    assert f'<a href="{long}" rel="noopener noreferrer nofollow">' in await seen(
        api, f"{page_of(path)}/{made['change']['id']}"
    )


async def test_the_service_s_axis_has_its_changes_too(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (60, UP))
    await say(api, path, "started", "1", ref="v1", occurred_at=at(-HOUR))
    page = await seen(api, f"/services/{uid_of(path)}")
    assert "14 days on one axis: 1 change, state" in page
    assert any(mark.startswith("Deploy v1, in progress: ") for mark in drawn(page))
    assert f'href="{page_of(path)}"' in page
    assert "Deploy v1, in progress" in page


async def test_an_incident_lists_the_changes_before_it(api: Api) -> None:
    below = await new(api, "accounts", name="Accounts")
    path = await new(api, "shop", name="Shop", depends_on=[uid_of(below)])
    row = await row_of(api, path)
    async with api.pool.transaction("since") as tx:
        await tx.execute(
            "update service_dependency_terms set from_at = at(%(at)s)",
            at=Instant(FROZEN_NOW - 2 * DAY),
        )
    made = await say(api, path, "started", "1", ref="v1", occurred_at=at(-12 * MINUTE))
    await say(api, below, "started", "2", ref="v2", occurred_at=at(-HOUR))
    await say(api, path, "started", "3", ref="v3", occurred_at=at(-30 * HOUR))
    page = await seen(api, f"/incidents/{await opened(api, row, 0)}")
    text = plain(page).replace("\u202f", " ")
    assert "Deploy v1 12 min before in progress" in text
    assert "Deploy v2 60 min before in progress, of Accounts, a dependency" in text
    assert "Deploy v3" not in text
    assert f"{page_of(path)}/{made['change']['id']}" in page
    assert text.index("Deploy v1") < text.index("Deploy v2")
    assert "caus" not in undisclaimed(page)
    alone = await seen(api, f"/incidents/{await api.new_incident()}")
    assert "Changes before the incident" not in alone
    quiet = await seen(api, f"/incidents/{await opened(api, row, -10 * DAY)}")
    assert "No changes of the service or its dependencies" in quiet


async def test_an_incident_lists_only_the_newest_changes_before_it(api: Api) -> None:
    path = await new(api, "shop")
    for n in range(SHOWN_MOST + 2):
        await say(api, path, "started", f"run-{n:02}", occurred_at=at(-n * MINUTE))
    page = await seen(api, f"/incidents/{await opened(api, await row_of(api, path), 0)}")
    assert "2 earlier changes not shown" in page
    assert "run-00" in page
    assert f"run-{SHOWN_MOST}" not in page


async def test_fifty_long_rows_stay_small(api: Api) -> None:
    path = await new(api, "shop")
    row = await row_of(api, path)
    decision = await decide(api.pool, row, Instant(FROZEN_NOW - 30 * DAY))
    for n in range(50):
        began = -28 * DAY + n * 12 * HOUR
        told_of: dict[str, Any] = {
            "ref": f"{n:03}{'r' * 125}",
            "url": f"https://ci.example.com/{'u' * 177}",
            "decision": decision,
            "source": f"s{'s' * 60}{n % 10}",
        }
        for phase, off in (("started", 0), ("failed", 3 * HOUR)):
            name = f"{n:03}{'x' * 125}"
            await recorded(api, row, phase, name, began + off, **told_of)
        await opened(api, row, began, f"{'An incident whose name is long ' * 4}")
    page = await seen(api, page_of(path))
    assert len(rows_of(page)) == 50
    assert len(gzip.compress(page.encode())) < PAGE_BYTES_MOST
