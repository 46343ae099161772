"""Incidents and services: affected services and probable roots along the graph, the members during
the incident, and the revision of a postmortem."""

from typing import Any
from uuid import UUID

import pytest

from leadline.http.incidents.routes import incidents
from leadline.storage.core.instant import MINUTE, Instant, to_text
from leadline.storage.incidents.queries.incident_impacts import select_impacts
from leadline.storage.incidents.queries.incidents import select_incident
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from leadline.storage.incidents.transactions.write_incident import Opening, open_incident
from leadline.storage.services.tables.services import select_service
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call, document, new, uid_of


async def opened(api: Api, path: str, *, began: int = 0, over: int | None = None) -> str:
    """Opens an incident of a service and returns its path. `began` and `over` are minutes from
    now."""
    async with api.pool.transaction("open") as tx:
        service = await select_service(tx, UUID(uid_of(path)))
        assert service is not None
        opening = Opening(
            org=service.org,
            project=service.project,
            monitor=None,
            service=service.id,
            title="Down",
            status=IncidentStatus.INVESTIGATING if over is None else IncidentStatus.RESOLVED,
            impact=IncidentImpact.MAJOR,
            source=IncidentSource.AUTO,
            body="",
            started_at=Instant(FROZEN_NOW + began * MINUTE),
            author=None,
        )
        row = await open_incident(tx, opening)
        if over is not None:
            await tx.execute(
                "update incidents set resolved_at = at(%(at)s) where id = %(id)s",
                at=FROZEN_NOW + over * MINUTE,
                id=row.id,
            )
    return f"/incidents/{row.uid}"


async def govern(api: Api, path: str, revision: int, minutes: int) -> None:
    """Makes a revision govern from `minutes` minutes from now."""
    async with api.pool.transaction("govern") as tx:
        await tx.execute(
            "update service_revisions r set governs_from = at(%(at)s), effective_at = at(%(at)s) "
            "from services s where s.id = r.service and s.uid = %(uid)s "
            "and r.revision = %(revision)s",
            at=FROZEN_NOW + minutes * MINUTE,
            uid=UUID(uid_of(path)),
            revision=revision,
        )


def ways(incident: Any) -> list[tuple[str, list[str]]]:
    return [(impact["role"], impact["path"]) for impact in incident["impacts"]]


async def test_an_incident_affects_dependents_and_names_probable_roots(api: Api) -> None:
    disk = await new(api, "disk")
    database = await new(api, "database", depends_on=[uid_of(disk)])
    cache = await new(api, "cache")
    shop = await new(api, "shop", depends_on=[uid_of(database), uid_of(cache)])
    site = await new(api, "site", depends_on=[uid_of(shop)])
    await new(api, "office", depends_on=[uid_of(site), uid_of(shop)])
    await new(api, "elsewhere", depends_on=[uid_of(database)])
    await opened(api, disk)
    await opened(api, cache, began=-60, over=-30)
    found = await call(api, "GET", await opened(api, shop), who="viewer")
    assert ways(found) == [
        ("probable_root", ["shop", "database", "disk"]),
        ("affected", ["shop", "office"]),
        ("affected", ["shop", "site"]),
    ]
    first = found["impacts"][0]
    assert (first["service_id"], first["slug"], first["name"]) == (uid_of(disk), "disk", "disk")
    assert first["computed_at"] == to_text(FROZEN_NOW)
    assert found["members"] == []
    # For a past incident, the services that were down during it.
    past = await call(api, "GET", await opened(api, shop, began=-45, over=-40))
    assert [way for role, way in ways(past) if role == "probable_root"] == [["shop", "cache"]]


async def test_a_monitor_s_incident_reaches_whom_it_is_declared_of(api: Api) -> None:
    monitor = await api.new_monitor(slug="probe")
    bare = await api.new_incident(monitor=monitor.uid)
    assert (await call(api, "GET", f"/incidents/{bare}"))["impacts"] is None
    database, shop = await new(api, "database"), await new(api, "shop")
    site = await new(api, "site", depends_on=[uid_of(database), uid_of(shop)])
    for path in (database, shop):
        await call(api, "PUT", f"{path}/declaration", document(monitor.uid))
        await govern(api, path, 1, -60)
    # A declaration that governs only later does not count.
    later = await new(api, "later")
    await call(api, "PUT", f"{later}/declaration", document(monitor.uid))
    found = await call(api, "GET", f"/incidents/{bare}")
    assert [impact["path"] for impact in found["impacts"]] == [
        ["probe", "database"],
        ["probe", "shop"],
        ["database", "site"],
    ]
    assert {impact["role"] for impact in found["impacts"]} == {"affected"}
    assert found["impacts"][2]["service_id"] == uid_of(site)
    assert "members" not in found


async def test_members_are_those_that_were_declared_while_it_lasted(api: Api) -> None:
    path = await new(api, "shop")
    one, two, three = [await api.new_monitor(name=name) for name in ("a", "b", "c")]
    drafts = [
        document(one.uid, two.uid),
        {**document(one.uid, two.uid, revision=1), "sli": [str(one.uid)]},
        document(three.uid, revision=2),
    ]
    for number, draft in enumerate(drafts, 1):
        await call(api, "PUT", f"{path}/declaration", draft)
        await govern(api, path, number, -60 + 20 * (number - 1))
    incident = await opened(api, path, began=-50, over=-30)
    members = (await call(api, "GET", incident))["members"]
    assert members == [
        {"monitor_id": str(one.uid), "name": "a", "roles": ["sli"]},
        {"monitor_id": str(two.uid), "name": "b", "roles": ["context", "sli"]},
    ]


async def test_a_postmortem_names_a_revision_that_governed(api: Api) -> None:
    path = await new(api, "shop")
    monitor = (await api.new_monitor()).uid
    for revision in range(3):
        body = {**document(monitor, revision=revision), "sli": []}
        body["policies"] = {"missing_data": ["unknown", "bad", "ignore"][revision]}
        await call(api, "PUT", f"{path}/declaration", body)
        await govern(api, path, revision + 1, -60 + 20 * revision)
    incident = await opened(api, path, began=-30, over=-20)
    where = f"{incident}/postmortem"
    said = await call(api, "PUT", where, {"body": "x"}, 400)
    assert said["error"].startswith("declaration_revision: is required")
    for foreign in (0, 1, 4):
        body = {"body": "x", "declaration_revision": foreign}
        assert await call(api, "PUT", where, body, 400) == {"error": "revision_foreign"}
    # The form of the console names the last revision that governed.
    answer = await api.ask(
        "editor",
        "POST",
        where.removeprefix("/api/v1").removesuffix("/postmortem"),
        data=b"act=postmortem&body=By+form",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 303
    assert (await call(api, "GET", where))["body"] == "By form"
    # The third revision began to govern at the end of the incident.
    for governed in (2, 3):
        body = {"body": "x", "declaration_revision": governed}
        assert (await call(api, "PUT", where, body))["declaration_revision"] == governed
    still = await opened(api, path, began=-10)
    body = {"body": "x", "declaration_revision": 3}
    assert await call(api, "PUT", f"{still}/postmortem", body, 409) == {"error": "not_resolved"}


async def test_an_incident_of_a_service_names_its_service(api: Api) -> None:
    path = await new(api, "shop")
    incident = await opened(api, path)
    found = await call(api, "GET", incident)
    assert found["service_id"] == uid_of(path)
    assert "monitor_id" not in found
    listed = await call(api, "GET", f"/projects/{api.project}/incidents")
    assert [one["service_id"] for one in listed] == [uid_of(path)]
    # It is kept when the service is gone.
    await call(api, "DELETE", path, status=204)
    found = await call(api, "GET", incident)
    assert found["impacts"] is None
    assert "service_id" not in found
    assert "members" not in found


async def test_a_monitor_that_is_deleted_meanwhile_has_no_impacts(api: Api) -> None:
    monitor = await api.new_monitor(slug="probe")
    uid = await api.new_incident(monitor=monitor.uid)
    async with api.pool.transaction("read", read_only=True) as tx:
        incident = await select_incident(tx, uid)
    assert incident is not None
    response = await api.ask("editor", "DELETE", f"/api/v1/monitors/{monitor.uid}")
    assert response.status_code == 204
    async with api.pool.transaction("impacts", read_only=True) as tx:
        assert await select_impacts(tx, incident) == []


@pytest.mark.parametrize(
    ("table", "missing"),
    [
        ("service_dependencies", ["impacts_unavailable"]),
        ("service_revisions", ["impacts_unavailable", "members_unavailable"]),
    ],
)
async def test_an_incident_is_answered_while_its_services_cannot_be_read(
    api: Api, monkeypatch: pytest.MonkeyPatch, table: str, missing: list[str]
) -> None:
    monkeypatch.setattr(incidents, "PART_SECONDS", 0.2)
    path = await opened(api, await new(api, "shop"))
    whole = await call(api, "GET", path)
    assert (whole["impacts"], whole["members"]) == (None, [])
    assert not {"impacts_unavailable", "members_unavailable"} & whole.keys()
    async with api.pool.transaction("hold") as tx:
        await tx.execute(f"lock table {table} in access exclusive mode")
        found = await call(api, "GET", path)
    assert [name for name in found if name.endswith("_unavailable")] == missing
    assert all(found[name] is True for name in missing)
    assert found["impacts"] is None
    assert ("members" in found) is ("members_unavailable" not in missing)
