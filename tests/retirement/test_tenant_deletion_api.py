"""DELETE of projects and organizations: contents, counts, refusals, background operation."""

from typing import Any

import pytest

from leadline.http.accounts.routes import tenant_deletion
from leadline.storage.accounts.tables.tenant_deletion import count_contents
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.partitions import make_partitions
from tests.support.app.cast import Api
from tests.support.worlds.background import operation_runner

KEPT = {
    "audit_entries",
    "schedule_edits",
    "operations",
    "organizations",
    "projects",
    "memberships",
    "users",
}


def project_path(api: Api) -> str:
    return f"/api/v1/projects/{api.project}"


async def filled_shop(api: Api) -> None:
    """A shop with one of everything that belongs to a project."""
    monitors = [await api.new_monitor() for _ in range(3)]
    children = {"children": [str(monitors[0].uid), str(monitors[1].uid)], "mode": "all"}
    await api.new_monitor(type="composite", target="", config=children)
    await api.new_monitor(depends_on=[monitors[2].uid])
    schedule = await api.new_schedule()
    await api.new_policy(schedule=schedule)
    await api.attach(monitors[0].uid, await api.new_channel())
    service = await api.new_service(aims=True)
    await api.new_gate_policy()
    await api.new_gate_override(service)
    await api.new_decision(service)
    await api.new_change(service)
    page = await api.new_status_page()
    await api.new_component(page, monitor=monitors[0].uid)
    await api.new_incident(explained=True)
    await api.new_incident_template()
    await api.new_maintenance()
    await api.new_secret()


async def counted(api: Api, path: str, who: str = "org_admin") -> dict[str, Any]:
    response = await api.ask(who, "DELETE", path, query={"dry_run": "true"})
    assert response.status_code == 200
    found: dict[str, Any] = await response.get_json()
    return found


async def refusal(response: Any) -> tuple[int, str]:
    body = await response.get_json()
    return response.status_code, body["error"]


async def write(api: Api, query: str, **given: Any) -> None:
    async with api.pool.transaction("write") as tx:
        await tx.execute(query, **given)


async def runs(api: Api) -> None:
    """Runs the background process until it has no work."""
    later = api.context.clock() + MINUTE
    runner = operation_runner(api.pool, api.context.keyring, lambda: Instant(later))
    while await runner.pass_once():
        pass


async def test_a_dry_run_counts_and_deletes_no_row(api: Api) -> None:
    await filled_shop(api)
    now = api.context.clock()
    await make_partitions(api.pool, "heartbeats", "ts", from_=now, through=Instant(now + MINUTE))
    org = api.orgs["acme"][0]
    monitor = (await api.rows("select id from monitors order by id limit 1"))[0][0]
    await write(
        api,
        "insert into heartbeats (org, monitor, ts, latency_ms, up, msg)"
        " select %(org)s, %(monitor)s, at(%(now)s) + n * interval '1 second', 1, true, ''"
        " from generate_series(1, 7) n",
        org=org,
        monitor=monitor,
        now=now,
    )
    counts = await counted(api, project_path(api))
    pages = (await api.rows("select count(*) from status_pages where project is not null"))[0][0]
    assert counts == {
        "projects": 1,
        "monitors": 5,
        "services": 1,
        "incidents": 1,
        "status_pages": pages,
        "results": 7,
    }
    whole = await counted(api, f"/api/v1/organizations/{api.org}", "global_admin")
    assert whole == {**counts, "projects": 2, "status_pages": 1}
    assert (await api.ask("org_admin", "GET", project_path(api))).status_code == 200
    assert await api.rows("select from audit_entries where action like '%%.delete'") == []


async def test_results_are_counted_from_days_hours_and_the_rest(api: Api) -> None:
    """Each figure that counts is a power of ten, so that a double count is seen."""
    row = await api.new_monitor(name="Old")
    now = api.context.clock()
    kept_from = Instant(now - now % DAY - 3 * DAY - 4 * HOUR)
    rolled = Instant(now - now % DAY + 5 * HOUR)
    await make_partitions(api.pool, "heartbeats", "ts", from_=rolled, through=Instant(now + DAY))
    await write(api, "update shards set rolled_up_through = at(%(at)s)", at=rolled)
    given = {"org": row.org, "id": row.id}
    put = (
        "insert into monitor_{0}s (org, monitor, {0}, good_us, bad_us, unknown_us, excluded_us,"
        " up, total) values (%(org)s, %(id)s, at(%(at)s), 0, 0, 0, 0, 0, %(total)s)"
    )
    today = Instant(rolled - rolled % DAY)
    first_day = kept_from + (-kept_from) % DAY
    days = [(first_day, 1), (today - DAY, 10), (first_day - DAY, 900), (today, 900)]
    hours = [
        (today, 100),
        (rolled - HOUR, 1_000),
        (rolled, 900),
        (today - HOUR, 900),
        (first_day - HOUR, 10_000),
        (kept_from - HOUR, 900),
    ]
    for at, total in days:
        await write(api, put.format("day"), at=at, total=total, **given)
    for at, total in hours:
        await write(api, put.format("hour"), at=at, total=total, **given)
    for ts in (rolled, rolled + HOUR):
        await write(
            api,
            "insert into heartbeats (org, monitor, ts, latency_ms, up)"
            " values (%(org)s, %(id)s, at(%(ts)s), 1, true)",
            ts=ts,
            **given,
        )

    async def results() -> int:
        async with api.pool.transaction("count", read_only=True) as tx:
            project = [api.projects["acme/shop"][0]]
            counts = await count_contents(tx, row.org, project, whole=False, kept_from=kept_from)
        return counts.results

    assert await results() == 11_113
    # A region that has rolled up no hour since the start of the stored results.
    await write(api, "update shards set rolled_up_through = at(%(at)s)", at=kept_from - DAY)
    assert await results() == 2


async def test_a_project_is_deleted_with_its_contents_and_one_audit_entry(api: Api) -> None:
    await filled_shop(api)
    response = await api.ask("org_admin", "DELETE", project_path(api))
    assert (response.status_code, await response.get_data()) == (204, b"")
    tables = await api.rows(
        "select c.table_name from information_schema.columns c join information_schema.tables t"
        " using (table_schema, table_name) where c.column_name = 'project'"
        " and table_schema = 'public' and table_type = 'BASE TABLE'"
    )
    # The ledger of the gate is kept for its retention, the log of schedule edits for an hour.
    for (table,) in tables:
        if table in KEPT or table.startswith("gate_decisions"):
            continue
        left = await api.rows(
            f"select count(*) from {table} where project::text in (%(id)s, %(uid)s)",
            id=str(api.projects["acme/shop"][0]),
            uid=str(api.project),
        )
        assert left == [(0,)], table
    entries = await api.rows(
        "select action, target from audit_entries where action like '%%delete'"
    )
    assert [action for action, _ in entries] == ["project.delete"]
    assert f"project:{api.project} slug=shop projects=1 monitors=5 services=1" in entries[0][1]


async def test_a_deletion_during_a_long_change_of_the_project_is_refused(api: Api) -> None:
    await filled_shop(api)
    async with api.pool.transaction("long_change") as tx:
        await tx.execute("select from projects where uid = %(uid)s for update", uid=api.project)
        response = await api.ask("org_admin", "DELETE", project_path(api))
        assert await refusal(response) == (
            409,
            "the project is locked by another change: try again later",
        )
    assert (await api.ask("org_admin", "DELETE", project_path(api))).status_code == 204


@pytest.mark.parametrize("kind", ["monitors", "services"])
async def test_a_managed_object_is_named_and_prevents_the_deletion(api: Api, kind: str) -> None:
    await filled_shop(api)
    await write(
        api,
        f"update {kind} set managed_by = 'files', name = 'Front door'"
        f" where id = (select max(id) from {kind})",
    )
    expected = f"managed_by_file: {kind[:-1]} Front door: managed by files"
    for who, path in (
        ("org_admin", project_path(api)),
        ("global_admin", f"/api/v1/organizations/{api.org}"),
    ):
        for query in ({}, {"dry_run": "true"}):
            response = await api.ask(who, "DELETE", path, query=query)
            assert await refusal(response) == (409, expected)
    assert await api.rows("select count(*) from monitors") == [(5,)]
    await write(api, f"update {kind} set orphaned_at = now() where managed_by <> ''")
    assert (await api.ask("org_admin", "DELETE", project_path(api))).status_code == 204


async def test_a_large_deletion_continues_after_the_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_deletion, "DELETED_AT_ONCE_MOST", 6)
    await filled_shop(api)
    response = await api.ask("org_admin", "DELETE", project_path(api))
    assert response.status_code == 202
    operation = await response.get_json()
    assert operation["kind"] == "project_delete"
    assert (operation["state"], operation["done"], operation["total"]) == ("running", 0, 7)
    assert "finished_at" not in operation

    # The project is not found, and no object can be added to it.
    assert (await api.ask("org_admin", "GET", project_path(api))).status_code == 404
    body = {"name": "late", "type": "tcp", "target": "127.0.0.1:1"}
    added = await api.ask("org_admin", "POST", f"{project_path(api)}/monitors", body)
    assert added.status_code == 404
    listed = await api.ask("org_admin", "GET", f"/api/v1/organizations/{api.org}/projects")
    assert [one["slug"] for one in await listed.get_json()] == ["mill"]
    assert (await api.ask("org_admin", "DELETE", project_path(api))).status_code == 404

    path = f"/api/v1/operations/{operation['id']}"
    for who, status in (("org_admin", 200), ("viewer", 403), ("stranger", 404), ("nobody", 401)):
        assert (await api.ask(who, "GET", path)).status_code == status, who
    await runs(api)
    done = await (await api.ask("org_admin", "GET", path)).get_json()
    assert (done["state"], done["done"], done["total"]) == ("succeeded", 7, 7)
    assert done["finished_at"] >= done["created_at"]
    assert await api.rows("select from monitors") == []
    assert await api.rows("select from projects where uid = %(uid)s", uid=api.project) == []


async def test_an_organization_is_deleted_in_the_background(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_deletion, "DELETED_AT_ONCE_MOST", 0)
    await filled_shop(api)
    path = f"/api/v1/organizations/{api.org}"
    response = await api.ask("global_admin", "DELETE", path)
    assert response.status_code == 202
    operation = await response.get_json()
    assert (operation["kind"], operation["total"]) == ("organization_delete", 8)
    assert (await api.ask("global_admin", "GET", path)).status_code == 404
    body = {"slug": "late", "name": "Late"}
    assert (await api.ask("global_admin", "POST", f"{path}/projects", body)).status_code == 404
    await runs(api)
    found = await api.ask("global_admin", "GET", f"/api/v1/operations/{operation['id']}")
    assert (await found.get_json())["state"] == "succeeded"
    assert await api.rows("select slug from organizations") == [("other",)]


async def test_a_member_cannot_delete_and_a_stranger_sees_no_project(api: Api) -> None:
    for query in ({}, {"dry_run": "true"}):
        for who, status in (("project_admin", 403), ("editor", 403), ("stranger", 404)):
            response = await api.ask(who, "DELETE", project_path(api), query=query)
            assert response.status_code == status, who
        path = f"/api/v1/organizations/{api.org}"
        assert (await api.ask("org_admin", "DELETE", path, query=query)).status_code == 403
