"""Incidents in the API: responses equal the webhook documents, and refusals follow the contract."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from leadline.http.incidents.schemas import AuthedIncident, Incident, IncidentUpdate, Postmortem
from tests.support.app.cast import Api


async def ask(
    api: Api, method: str, path: str, body: Any = None, status: int = 200, who: str = "editor"
) -> Any:
    answer = await api.ask(who, method, f"/api/v1{path}", body)
    found = await answer.get_json()
    assert answer.status_code == status, found
    return found


async def make(api: Api, status: int = 201, who: str = "editor", **body: Any) -> Any:
    path = f"/projects/{api.project}/incidents"
    return await ask(api, "POST", path, {"title": "Checkout fails", **body}, status, who)


async def test_an_incident_is_opened_moved_acknowledged_resolved_and_explained(api: Api) -> None:
    made = await make(api, body="We look.", impact="major")
    msgspec.convert(made, Incident)
    assert (made["status"], made["source"], made["seq"]) == ("investigating", "manual", 1)
    one = f"/incidents/{made['id']}"
    moved = await ask(api, "POST", f"{one}/updates", {"status": "identified", "body": "DNS."}, 201)
    assert (moved["seq"], moved["public"], moved["author"]) == (2, True, "editor")
    note = await ask(api, "POST", f"{one}/updates", {"body": "Call Ann."}, 201)
    assert (note["seq"], note["public"]) == (3, False)
    assert "status" not in note
    taken = await ask(api, "POST", f"{one}/acknowledge")
    assert taken["acknowledged_by"] == str(api.users["editor"][1])
    assert taken["acknowledged_by_name"] == "editor"
    assert await ask(api, "POST", f"{one}/acknowledge", who="org_admin") == taken
    await ask(api, "PUT", f"{one}/postmortem", {"body": "x"}, 409)
    await ask(api, "GET", f"{one}/postmortem", status=404, who="viewer")
    await ask(api, "POST", f"{one}/updates", {"status": "resolved"}, 201)
    written = await ask(api, "PUT", f"{one}/postmortem", {"body": "It was DNS."})
    msgspec.convert(written, Postmortem)
    assert await ask(api, "GET", f"{one}/postmortem", who="viewer") == written
    found = await ask(api, "GET", one, who="viewer")
    msgspec.convert(found, AuthedIncident)
    assert (found["status"], found["seq"], found["impacts"]) == ("resolved", 4, None)
    updates = await ask(api, "GET", f"{one}/updates", who="viewer")
    msgspec.convert(updates, list[IncidentUpdate])
    assert [u["seq"] for u in updates] == [1, 2, 3, 4]
    assert updates[1:3] == [moved, note]


async def test_webhook_documents_equal_the_api_responses(api: Api) -> None:
    """A client that reads both must see the same incident."""
    await api.new_webhook()
    monitor = (await api.new_monitor()).uid
    made = await make(api, monitor_id=str(monitor), body="a")
    one = f"/incidents/{made['id']}"
    seen = [(await ask(api, "GET", one), (await ask(api, "GET", f"{one}/updates"))[-1])]
    await ask(api, "POST", f"{one}/acknowledge")
    for body in ({"body": "b"}, {"status": "monitoring", "public": False}, {"status": "resolved"}):
        update = await ask(api, "POST", f"{one}/updates", body, 201)
        seen.append((await ask(api, "GET", one), update))
    rows = await api.rows("select event, payload::text from outbox order by id")
    told = [(event, msgspec.json.decode(text)) for event, text in rows]
    assert [event for event, _ in told] == [
        "incident.opened",
        "incident.updated",
        "incident.updated",
        "incident.resolved",
    ]
    for (event, payload), (incident, update) in zip(told, seen, strict=True):
        assert incident.pop("impacts") is None
        assert payload == {
            "event": event,
            "seq": update["seq"],
            "incident": incident,
            "update": update,
        }


async def test_the_list_is_the_newest_first_filtered_and_bounded(api: Api) -> None:
    made = [(await make(api, title=f"i{n}"))["id"] for n in range(4)]
    await ask(api, "POST", f"/incidents/{made[1]}/updates", {"status": "resolved"}, 201)
    path = f"/projects/{api.project}/incidents"

    async def ids(query: str) -> list[str]:
        found = await ask(api, "GET", f"{path}{query}", who="viewer")
        msgspec.convert(found, list[Incident])
        return [incident["id"] for incident in found]

    assert await ids("") == made[::-1]
    assert await ids("?limit=2") == [made[3], made[2]]
    assert await ids("?limit=100000") == made[::-1]
    assert await ids("?status=open") == [made[3], made[2], made[0]]
    assert await ids("?status=resolved") == [made[1]]
    for query, error in (
        ("?limit=0", "limit_invalid"),
        ("?limit=-1", "limit_invalid"),
        ("?status=gone", "status: must be one of open, resolved"),
    ):
        assert await ask(api, "GET", f"{path}{query}", status=400) == {"error": error}
    mill = api.projects["acme/mill"][1]
    assert await ask(api, "GET", f"/projects/{mill}/incidents") == []


@pytest.mark.parametrize(
    ("present", "body", "status", "error"),
    [
        ("identified", {"status": "investigating"}, 400, "status_backward"),
        ("resolved", {"status": "resolved"}, 409, "incident_resolved"),
        ("resolved", {"status": "investigating", "body": "x"}, 409, "incident_resolved"),
        ("identified", {}, 400, "body: is required if the status does not change"),
        (
            "identified",
            {"status": "identified"},
            400,
            "body: is required if the status does not change",
        ),
        (
            "identified",
            {"status": "fixed"},
            400,
            "status: must be one of investigating, identified, monitoring, resolved",
        ),
        ("identified", {"body": "x" * 10_001}, 400, "body: expected str of length <= 10000"),
        ("identified", {"body": "a\u0007b"}, 400, "body: must not contain control characters"),
        ("identified", {"body": "x", "seq": 7}, 400, "invalid JSON body"),
    ],
)
async def test_an_update_is_refused_in_the_words_that_are_stated(
    api: Api, present: str, body: Any, status: int, error: str
) -> None:
    made = await make(api, status=201)
    path = f"/incidents/{made['id']}/updates"
    await ask(api, "POST", path, {"status": present}, 201)
    assert await ask(api, "POST", path, body, status) == {"error": error}


async def test_a_present_status_may_be_restated_with_words(api: Api) -> None:
    made = await make(api)
    path = f"/incidents/{made['id']}/updates"
    again = await ask(api, "POST", path, {"status": "investigating", "body": "Still."}, 201)
    assert (again["status"], again["public"]) == ("investigating", True)
    ((target,),) = await api.rows("select target from audit_entries where action = %(a)s", a=AUDIT)
    assert target == f"incident:{made['id']} investigating->investigating"


AUDIT = "incident.status"


async def test_a_resolved_one_takes_notes_and_no_acknowledgement(api: Api) -> None:
    made = await make_resolved(api)
    note = await ask(api, "POST", f"/incidents/{made}/updates", {"body": "Later."}, 201)
    assert note["seq"] == 2
    refused = await ask(api, "POST", f"/incidents/{made}/acknowledge", status=409)
    assert refused == {"error": "incident_resolved"}
    assert (await ask(api, "GET", f"/incidents/{made}"))["status"] == "resolved"


async def make_resolved(api: Api) -> UUID:
    path = f"/projects/{api.project}/incidents"
    made = await ask(api, "POST", path, {"title": "Past", "status": "resolved"}, 201)
    assert made["resolved_at"] == made["started_at"]
    return UUID(made["id"])


async def test_a_foreign_revision_is_refused_before_the_status_is_checked(api: Api) -> None:
    resolved, made = await make_resolved(api), await make(api)
    for uid in (resolved, made["id"]):
        refused = await ask(
            api,
            "PUT",
            f"/incidents/{uid}/postmortem",
            {"body": "x", "declaration_revision": 1},
            400,
        )
        assert refused == {"error": "revision_foreign"}
    refused = await ask(api, "PUT", f"/incidents/{made['id']}/postmortem", {"body": "x"}, 409)
    assert refused == {"error": "not_resolved"}
    refused = await ask(api, "PUT", f"/incidents/{resolved}/postmortem", {"body": " "}, 400)
    assert refused == {"error": "body: must not be blank"}


async def test_a_missing_and_a_foreign_monitor_are_refused_alike(api: Api) -> None:
    foreign = (await api.new_monitor("acme/mill")).uid
    other = (await api.new_monitor("other/shop")).uid
    nowhere = "0195e3a0-0000-7000-8000-000000000001"
    answers = [await make(api, 400, monitor_id=str(uid)) for uid in (foreign, other, nowhere)]
    assert answers == [{"error": "monitor_id: names no monitor of this project"}] * 3


async def test_a_change_of_an_incident_wakes_the_outbox(api: Api) -> None:
    woken: list[int] = []
    object.__setattr__(api.context, "on_told", lambda: woken.append(1))
    made = await make(api)
    await ask(api, "POST", f"/incidents/{made['id']}/updates", {"body": "x"}, 201)
    await ask(api, "GET", f"/incidents/{made['id']}")
    assert len(woken) == 2


async def test_a_token_opens_with_source_api_and_is_named_in_the_audit(api: Api) -> None:
    made = await make(api, who="token")
    assert made["source"] == "api"
    taken = await ask(api, "POST", f"/incidents/{made['id']}/acknowledge", who="token")
    assert "acknowledged_by" not in taken
    assert taken["acknowledged_by_name"]
    rows = await api.rows("select action, via_token from audit_entries order by id")
    assert rows == [("incident.create", True), ("incident.acknowledge", True)]


async def test_incidents_are_found_open_ones_first(api: Api) -> None:
    for title, status in (("Needle b", "investigating"), ("Needle a", "resolved")):
        path = f"/projects/{api.project}/incidents"
        await ask(api, "POST", path, {"title": title, "status": status}, 201)
    found = await (
        await api.ask("viewer", "GET", "/api/v1/search", query={"q": "needle"})
    ).get_json()
    hits = [(hit["type"], hit["label"], hit["sub"]) for hit in found["hits"]]
    assert hits == [("incident", "Needle b", "acme shop"), ("incident", "Needle a", "acme shop")]
    hidden = await (
        await api.ask("neighbour", "GET", "/api/v1/search", query={"q": "needle"})
    ).get_json()
    assert hidden["hits"] == []


async def test_an_incident_names_a_service_and_components(api: Api) -> None:
    service = await api.new_service()
    made = await make(api, service_id=str(service))
    assert made["service_id"] == str(service)
    assert made["number"] == 1
    page = await api.new_status_page()
    path = f"/status-pages/{page}/components"
    admin = "org_admin"
    manual = await ask(api, "POST", path, {"name": "Payments"}, 201, admin)
    shop = {"name": "Shop", "service_id": str(service)}
    measured = await ask(api, "POST", path, shop, 201, admin)
    named = [{"component_id": manual["id"], "status": "degraded"}]
    # An editor names components. Their state is set by editors of the page.
    await make(api, 403, components=named)
    assert (await make(api, components=named, who=admin))["number"] == 2
    assert await api.rows("select manual_status from status_components order by id") == [
        ("degraded",),
        (None,),
    ]
    # The state of a measured component cannot be set, and the incident is not opened then.
    faulty = [{"component_id": measured["id"], "status": "degraded"}]
    await make(api, 400, components=faulty, who=admin)
    await make(api, 400, components=[{"component_id": str(page)}])
    await make(api, 400, service_id=str(service), monitor_id=str((await api.new_monitor()).uid))
    assert (await make(api, components=[{"component_id": measured["id"]}]))["number"] == 3


async def test_a_public_update_is_withdrawn_as_a_new_event(api: Api) -> None:
    await api.new_webhook()
    one = f"/incidents/{(await make(api))['id']}"
    said = await ask(
        api, "POST", f"{one}/updates", {"status": "identified", "body": "It is Bob."}, 201
    )
    assert said["undo_until"] > said["created_at"]
    undone = await ask(api, "POST", f"{one}/updates/{said['id']}/undo")
    assert (undone["seq"], undone["withdraws"], undone["public"]) == (3, 2, False)
    assert "undo_until" not in undone
    found = await ask(api, "GET", one)
    assert (found["status"], found["seq"]) == ("identified", 3)
    updates = await ask(api, "GET", f"{one}/updates")
    assert [update["public"] for update in updates] == [True, False, False]
    assert updates[2] == undone
    sent = await api.rows("select payload::text from outbox order by id")
    assert msgspec.json.decode(sent[-1][0])["update"] == undone
    ((target,),) = await api.rows("select target from audit_entries order by id desc limit 1")
    assert target.endswith(" update:2 public=true->false")


async def test_an_undo_is_refused_with_its_reason(api: Api) -> None:
    one = f"/incidents/{(await make(api, body='We look.'))['id']}"
    opening = (await ask(api, "GET", f"{one}/updates"))[0]
    path = f"{one}/updates/{{}}/undo"
    refused = await ask(api, "POST", path.format(opening["id"]), status=409)
    assert refused == {"error": "update_final"}
    moved = await ask(api, "POST", f"{one}/updates", {"status": "identified"}, 201)
    assert "undo_until" not in moved
    refused = await ask(api, "POST", path.format(moved["id"]), status=409)
    assert refused == {"error": "update_final"}
    note = await ask(api, "POST", f"{one}/updates", {"body": "Call Ann."}, 201)
    refused = await ask(api, "POST", path.format(note["id"]), status=409)
    assert refused == {"error": "update_not_public"}
    said = await ask(api, "POST", f"{one}/updates", {"body": "x", "public": True}, 201)
    await ask(api, "POST", path.format(said["id"]), status=403, who="viewer")
    other = f"/incidents/{(await make(api))['id']}"
    await ask(api, "POST", f"{other}/updates/{said['id']}/undo", status=404)
    async with api.pool.transaction("age") as tx:
        await tx.execute(
            "update incident_updates set created_at = created_at - interval '10 s'"
            " where uid = %(uid)s",
            uid=UUID(said["id"]),
        )
    refused = await ask(api, "POST", path.format(said["id"]), status=409)
    assert refused == {"error": "undo_expired"}
