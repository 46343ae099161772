"""Actions on the monitors of a selector by the API: what is selected, changed, named and undone."""

from typing import Any
from uuid import UUID

from leadline.storage.bulk.transactions import BulkContext, perform_next
from leadline.storage.core.instant import HOUR, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

START, END = (to_text(Instant(FROZEN_NOW + hours * HOUR)) for hours in (2, 3))


async def begin(api: Api, status: int = 202, who: str = "editor", **body: Any) -> Any:
    path = f"/api/v1/projects/{api.project}/monitors/actions"
    answer = await api.ask(who, "POST", path, body)
    assert answer.status_code == status, await answer.get_data()
    return await answer.get_json()


async def perform(api: Api, uid: str) -> None:
    ground = BulkContext(keyring=api.context.keyring, raw_days=30)
    while await perform_next(api.pool, UUID(uid), ground):
        pass


async def operation(api: Api, uid: str, part: str = "", method: str = "GET") -> Any:
    answer = await api.ask("editor", method, f"/api/v1/operations/{uid}{part}")
    assert answer.status_code in (200, 202), await answer.get_data()
    return await answer.get_json()


async def three(api: Api) -> None:
    for name, tags in (("a", ["web", "eu"]), ("b", ["web"]), ("c", ["db"])):
        await api.new_monitor(name=name, tags=tags)


async def test_a_selector_is_resolved_once_and_the_action_is_undone(api: Api) -> None:
    await three(api)
    begun = await begin(api, act="pause", selector={"tag": ["web"]})
    assert (begun["act"], begun["total"], begun["state"]) == ("pause", 2, "running")
    # Neither a new member of the selection nor a lost tag changes the action.
    await api.new_monitor(name="d", tags=["web"])
    async with api.pool.transaction("untag") as tx:
        await tx.execute("update monitors set tags = '{}' where name = 'b'")
    await perform(api, begun["id"])
    assert await api.rows("select name from monitors where not enabled order by 1") == [
        ("a",),
        ("b",),
    ]
    listed = await operation(api, begun["id"], "/objects?limit=1")
    rest = await operation(api, begun["id"], f"/objects?cursor={listed['next_cursor']}")
    assert [(one["name"], one["state"]) for one in listed["items"] + rest["items"]] == [
        ("a", "changed"),
        ("b", "changed"),
    ]
    undo = await operation(api, begun["id"], "/undo", "POST")
    await perform(api, undo["id"])
    assert await api.rows("select name from monitors where not enabled") == []
    done = await operation(api, begun["id"])
    assert (done["state"], done["changed"], done["failed"]) == ("succeeded", 2, 0)
    assert done["undone_by"] == undo["id"]


async def test_planned_maintenance_of_a_selector_is_undone(api: Api) -> None:
    await three(api)
    wanted: dict[str, Any] = {"starts_at": START, "ends_at": END, "reason": "Move"}
    begun = await begin(api, act="maintain", selector={"q": "a"}, **wanted)
    await perform(api, begun["id"])
    found = "select count(*), min(m.starts_at)::text from maintenances m where archived_at is null"
    assert (await api.rows(found))[0][0] == 1
    answer = await api.ask("viewer", "GET", f"/api/v1/projects/{api.project}/maintenance")
    ((window,),) = (await answer.get_json(),)
    assert (window["starts_at"], window["ends_at"], window["reason"]) == (START, END, "Move")
    undo = await operation(api, begun["id"], "/undo", "POST")
    await perform(api, undo["id"])
    assert (await api.rows(found))[0][0] == 0


async def test_a_dry_run_answers_the_monitors_and_begins_nothing(api: Api) -> None:
    await three(api)
    path = f"/api/v1/projects/{api.project}/monitors/actions?dry_run=true"
    body = {"act": "delete", "selector": {"status": ["pending"], "type": ["http"]}}
    answer = await api.ask("editor", "POST", path, body)
    found = await answer.get_json()
    assert (answer.status_code, found["count"]) == (200, 3)
    assert [one["name"] for one in found["monitors"]] == ["a", "b", "c"]
    assert await api.rows("select 1 from operations") == []


ALL = {"selector": {"all": True}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"act": "pause"}, "selector: give one of selector and monitor_ids"),
    ({"act": "pause", "selector": {}}, "selector: give q, tag, type, region or status, or "),
    ({"act": "pause", "selector": {"all": True, "q": "a"}}, "selector: give q, tag, type, "),
    ({"act": "pause", "selector": {"tag": ["x"]}}, "selector: selects no monitor"),
    ({"act": "delete", "selector": {"tag": ["web"]}}, "count: must be the number of selected"),
    ({"act": "pause", **ALL, "count": 2}, "count: must be the number of "),
    ({"act": "tag", **ALL}, "tag: must have 1 to 64 characters"),
    ({"act": "tag", **ALL, "tag": " "}, "tag: must not be blank"),
    ({"act": "untag", **ALL, "tag": "a\x07"}, "tag: must not contain control characters"),
    ({"act": "attach", **ALL}, "channel_id: attach needs a channel"),
    ({"act": "attach", **ALL, "channel_id": str(UUID(int=1))}, "channel_id: names no channel of"),
    ({"act": "detach", **ALL, "channel_id": str(UUID(int=1))}, "channel_id: names no channel of"),
    ({"act": "maintain", **ALL}, "minutes: maintain needs minutes"),
    ({"act": "maintain", **ALL, "starts_at": START}, "ends_at: starts_at and ends_at need each"),
    ({"act": "maintain", **ALL, "starts_at": "soon"}, "starts_at: must be an RFC 3339 instant"),
]


async def test_a_bad_action_names_the_field_and_begins_nothing(api: Api) -> None:
    await three(api)
    for body, error in REFUSED:
        refused = await begin(api, 400, **body)
        assert error in refused["error"], refused
        if not (body["act"] == "delete" and "count" not in body):
            path = f"/api/v1/projects/{api.project}/monitors/actions?dry_run=true"
            answer = await api.ask("editor", "POST", path, body)
            assert (answer.status_code, await answer.get_json()) == (400, refused)
    assert await api.rows("select 1 from operations") == []


async def test_monitors_of_another_project_are_not_selected(api: Api) -> None:
    await three(api)
    other = await api.new_monitor("acme/mill", name="mine", tags=["web"])
    begun = await begin(api, act="pause", selector={"all": True})
    await perform(api, begun["id"])
    assert await api.rows("select name from monitors where enabled") == [("mine",)]
    refused = await begin(api, 400, act="pause", monitor_ids=[str(other.uid)])
    assert refused["error"] == "monitor_ids: names a monitor that is not in this project"
    await begin(api, 403, "viewer", act="pause", selector={"all": True})


async def test_the_maintenance_form_takes_tags(api: Api) -> None:
    await three(api)
    form = {"act": "plan", "tags": "web, db", "starts": START[:16], "ends": END[:16]}
    path = f"/projects/{api.project}/maintenance"
    answer = await api.client.post(path, form=form, headers=api.credentials["editor"])
    assert answer.status_code == 303, await answer.get_data()
    await perform(api, answer.headers["Location"].rsplit("/", 1)[1])
    assert await api.rows("select count(*) from maintenances") == [(3,)]
    for wrong, said in (
        ({"tags": "none"}, "Tags: no monitor has one of them."),
        ({"again": "FREQ=DAILY"}, "Tags: cannot be combined with Repeats."),
        ({"starts": "2020-01-01T00:00"}, "Start: must not be in the past"),
    ):
        answer = await api.client.post(
            path, form={**form, **wrong}, headers=api.credentials["editor"]
        )
        page = str(await answer.get_data(as_text=True))
        assert (answer.status_code, said in page) == (400, True), page[-3000:]
