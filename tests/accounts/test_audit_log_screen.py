"""The screen of an audit log: filters, pages, and the export as CSV."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from leadline import storage
from leadline.http.accounts.console import audit_log
from leadline.http.accounts.console.audit_text import verb_of
from leadline.storage.core.instant import DAY, Instant, to_text
from tests.support.app.cast import Api

# (actor, action, target, age in days), oldest first.
ENTRIES = (
    ("Mara, Lind", "monitor.create", "monitor:1", 9),
    ("Mara, Lind", "monitor.update", "monitor:1 enabled", 5),
    ("ci", "incident.create", "incident:7", 5),
    ("ci", "monitor.delete", "monitor:1", 1),
)


async def write(api: Api, *entries: tuple[str, str, str, int], org: int | None = None) -> None:
    async with api.pool.transaction("entries") as tx:
        for actor, action, target, age in entries:
            await tx.execute(
                "insert into audit_entries (org, uid, actor_label, via_token, action, target,"
                " created_at) values (%(org)s, gen_random_uuid(), %(actor)s, %(token)s, %(action)s,"
                " %(target)s, at(%(at)s))",
                org=api.orgs["acme"][0] if org is None else org,
                actor=actor,
                token=actor == "ci",
                action=action,
                target=target,
                at=Instant(api.context.clock() - age * DAY),
            )


def path_of(api: Api, suffix: str = "") -> str:
    return f"/organizations/{api.org}/audit{suffix}"


async def shown(api: Api, query: str = "", who: str = "org_admin") -> str:
    answer = await api.ask(who, "GET", path_of(api, query))
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


def targets(page: str) -> list[str]:
    return re.findall(r'<span class="mono muted">([^<]*)</span></td>', page)


async def exported(api: Api, query: str = "") -> list[dict[str, str]]:
    answer = await api.ask("org_admin", "GET", path_of(api, f".csv{query}"))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(await answer.get_data(as_text=True), newline="")))


def day(api: Api, age: int) -> str:
    return to_text(Instant(api.context.clock() - age * DAY))[:10]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [3, 2, 1, 0]),
        ("?who=ci", [3, 2]),
        # A name with a comma is one name.
        ("?who=Mara, Lind", [1, 0]),
        ("?who=ci&who=Mara, Lind", [3, 2, 1, 0]),
        ("?object=monitor", [3, 1, 0]),
        ("?object=incident&object=token", [2]),
        ("?action=monitor.update&action=monitor.delete", [3, 1]),
        ("?object=monitor&who=ci", [3]),
        ("?object=incident&action=monitor.update", []),
        ("?from={5}", [3, 2, 1]),
        ("?to={5}", [2, 1, 0]),
        ("?from={5}&to={5}", [2, 1]),
        ("?from={4}&to={2}", []),
        ("?q=MARA", [1, 0]),
        ("?q=incident%3A7", [2]),
        ("?q=.create", [2, 0]),
        # The text is no pattern.
        ("?q=%25", []),
        ("?q=monitor_1", []),
        ("?q= ", [3, 2, 1, 0]),
    ],
)
async def test_a_filter_selects_entries_of_the_list_and_of_the_export(
    api: Api, query: str, found: list[int]
) -> None:
    await write(api, *ENTRIES)
    await write(api, ("ci", "monitor.create", "foreign", 1), org=api.orgs["other"][0])
    query = re.sub(r"\{(\d)\}", lambda n: day(api, int(n[1])), query)
    expected = [ENTRIES[n][2] for n in found]
    page = await shown(api, query)
    assert targets(page) == expected
    assert [row["target"] for row in await exported(api, query)] == expected
    if not found:
        assert "No entries match" in page
        assert "Export CSV" not in page


@pytest.mark.parametrize("name", ["q", "who", "object", "action"])
@pytest.mark.parametrize("suffix", ["", ".csv"])
async def test_a_nul_in_a_filter_is_refused(api: Api, suffix: str, name: str) -> None:
    answer = await api.ask("org_admin", "GET", path_of(api, f"{suffix}?{name}=a%00b"))
    assert answer.status_code == 400
    assert "NUL" in await answer.get_data(as_text=True)


async def test_the_first_line_and_the_chips_state_the_filter(api: Api) -> None:
    await write(api, *ENTRIES)
    page = await shown(api)
    assert "4 entries in Acme." in page
    page = await shown(api, f"?object=monitor&from={day(api, 5)}")
    assert "2 entries in Acme match the filter." in page
    assert ">Object: Monitor " in page
    assert f"Date: from {day(api, 5)} " in page
    assert f'href="{path_of(api)}.csv?object=monitor&amp;from={day(api, 5)}"' in page
    assert '<input type="checkbox" name="object" value="incident">' in page
    assert re.search(r'value="Mara, Lind"><span class="clipped">Mara, Lind</span><small>2<', page)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?from=yesterday", "from: must be a date, as in 2026-12-31"),
        ("?to=2026-02-30", "to: must be a date, as in 2026-12-31"),
        ("?from=2026-01-02&to=2026-01-01", "to: must not be before from"),
        ("?from=9999-12-31&to=9999-12-31", "to: must be a date, as in 2026-12-31"),
        ("?page=x", "page: "),
    ],
)
async def test_a_malformed_filter_is_refused(api: Api, query: str, message: str) -> None:
    for suffix in ("", ".csv"):
        answer = await api.ask("org_admin", "GET", path_of(api, suffix + query))
        assert answer.status_code == 400
        assert message in await answer.get_data(as_text=True)


async def test_pages_divide_the_entries_and_keep_the_filter(api: Api) -> None:
    await write(api, *(("x", "a.b", f"n{n}", 1) for n in range(101)), ("y", "c.d", "other", 1))
    found: list[str] = []
    for number in (1, 2, 3):
        page = await shown(api, f"?who=x&page={number}")
        found += targets(page)
    assert found == [f"n{n}" for n in reversed(range(101))]
    assert "101 to 101 of 101" in page
    assert '<a href="?who=x&amp;page=2" aria-label="Page 2">' in page
    assert '<input type="hidden" name="who" value="x">' in page
    # A page outside the list is the nearest one.
    assert targets(await shown(api, "?who=x&page=99")) == ["n0"]
    assert targets(await shown(api, "?who=x&page=-1"))[0] == "n100"


async def test_more_entries_than_are_counted_are_stated(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "COUNTED_MOST", 100)
    await write(api, *(("x", "a.b", f"n{n}", 1) for n in range(101)))
    page = await shown(api, "?page=9")
    assert "More than 100 entries in Acme." in page
    assert "51 to 100 of the newest 100. The export contains up to 100,000." in page


async def test_an_export_above_its_limit_says_so_in_its_name(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "EXPORTED_MOST", 5)
    monkeypatch.setattr(audit_log, "_CHUNK", 2)
    today = day(api, 0)
    for many, name in ((5, f"audit-log-{today}.csv"), (6, f"audit-log-{today}-newest-5.csv")):
        had = len(await exported(api))
        await write(api, *(("x", "a.b", f"n{n}", 1) for n in range(had, many)))
        answer = await api.ask("org_admin", "GET", path_of(api, ".csv"))
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        rows = await exported(api)
        assert [row["target"] for row in rows] == [f"n{n}" for n in reversed(range(many))][:5]


async def test_no_cell_of_the_export_is_a_formula(api: Api) -> None:
    hostile = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1")
    plain = ("a=1", 'says "x", y', "two\nlines")
    await write(api, *((text, "a.b", text, 1) for text in (*hostile, *plain)))
    rows = await exported(api)
    expected = [*reversed(plain), *(f"'{text}" for text in reversed(hostile))]
    assert [row["target"] for row in rows] == expected
    assert [row["actor"] for row in rows] == expected


async def test_the_export_has_every_field(api: Api) -> None:
    body = {"name": "Renamed"}
    await api.ask("org_admin", "PATCH", f"/api/v1/organizations/{api.org}", body)
    (row,) = await exported(api)
    ((uid,),) = await api.rows("select uid from audit_entries")
    assert row == {
        "time": to_text(api.context.clock()),
        "actor": "org_admin",
        "email": "org_admin@example.com",
        "via_token": "false",
        "action": "organization.update",
        "target": f"organization:{api.org} slug=acme",
        "id": str(uid),
    }
    answer = await api.ask("org_admin", "HEAD", path_of(api, ".csv"))
    assert (answer.status_code, await answer.get_data()) == (200, b"")


async def test_the_log_of_the_installation_is_filtered_and_exported(api: Api) -> None:
    await write(
        api, ("root", "settings.mail", "settings", 1), ("root", "user.create", "u", 1), org=0
    )
    await write(api, *ENTRIES)

    async def of_installation(suffix: str) -> Any:
        answer = await api.ask("global_admin", "GET", f"/admin/audit{suffix}")
        assert answer.status_code == 200
        return await answer.get_data(as_text=True)

    page = await of_installation("?object=settings")
    assert targets(page) == ["settings"]
    assert 'href="/admin/audit.csv?object=settings"' in page
    assert len((await of_installation(".csv")).splitlines()) == 3


def said(page: str) -> list[str]:
    """Returns the sentence of each entry, without its details."""
    cells = re.findall(r'<td class="wrap" title="[^"]*"><span[^>]*>[^<]*</span>(.*?)</td>', page)
    return [re.sub(r' <span class="mono muted">.*', "", cell) for cell in cells]


async def test_an_entry_names_its_object_and_links_to_it(api: Api) -> None:
    row = await api.new_monitor(name="<b>Check</b>out")
    channel = await api.new_channel()
    incident = await api.new_incident()
    gone = await api.new_monitor(name="Gone")
    stranger = await api.new_monitor("other/shop", name="Foreign")
    page = await api.new_status_page(title="Acme", project=api.project)
    editor = f"/projects/{api.project}/status-pages/{page}"
    name = (await api.rows("select name from notification_channels"))[0][0]
    title = (await api.rows("select title from incidents"))[0][0]
    assert (await api.ask("editor", "DELETE", f"/api/v1/monitors/{gone.uid}")).status_code == 204
    await write(
        api,
        ("said", "monitor.update", f"monitor:{row.uid} project:{api.project} enabled", 1),
        ("said", "channel.create", f"channel:{channel} project:{api.project} type=webhook", 1),
        ("said", "incident.note", f"incident:{incident}", 1),
        ("said", "monitor.delete", f"monitor:{gone.uid} slug=gone", 1),
        ("said", "monitor.update", f"monitor:{stranger.uid} enabled", 1),
        ("said", "gate_override.create", f"gate_override:{row.uid} service:{row.uid} x", 1),
        ("said", "status_page.remove_subscriber", f"subscriber:{gone.uid} status_page:{page}", 1),
        ("said", "future.action", "what:ever", 1),
    )
    text = await shown(api, "?who=said")
    assert said(text)[::-1] == [
        f'Changed monitor <a href="/monitors/{row.uid}">&lt;b&gt;Check&lt;/b&gt;out</a>',
        f'Created channel <a href="/projects/{api.project}/channels">{name}</a>',
        f'Posted an update to incident <a href="/incidents/{incident}">{title}</a>',
        "Deleted monitor",
        "Changed monitor",
        "Opened a gate override for service",
        f'Removed a subscriber of status page <a href="{editor}">Acme</a>',
        "future.action",
    ]
    assert targets(text)[::-1] == [
        "enabled", "type=webhook", f"{gone.uid} slug=gone", f"{stranger.uid} enabled",
        f"{row.uid} x", "what:ever",
    ]  # fmt: skip
    assert "Foreign" not in text


async def test_a_member_is_named_while_he_is_one(api: Api) -> None:
    membership = await api.new_membership()
    ((user, email),) = await api.rows(
        "select u.uid, u.email from memberships m join users u on u.id = m.user_id"
        " where m.uid = %(m)s",
        m=membership,
    )
    await write(api, ("said", "member.create", f"membership:{membership} user:{user}", 1))
    assert said(await shown(api, "?who=said")) == [f"Added user {email}"]
    path = f"/api/v1/organizations/{api.org}/members/{membership}"
    assert (await api.ask("org_admin", "DELETE", path)).status_code == 204
    page = await shown(api, "?who=said")
    assert said(page) == ["Added user"]
    assert email not in page


def test_every_action_that_is_written_has_words() -> None:
    actions: set[str] = set()
    for file in Path(storage.__file__).parent.rglob("*.py"):
        text = file.read_text()
        for call in re.finditer(r"audit(?:_many|s)?\(", text):
            near = text[call.start() : call.start() + 220]
            actions |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', near))
    assert len(actions) > 90
    assert [action for action in sorted(actions) if verb_of(action) == action] == []
