"""Actions on many monitors in the background: progress, result, failures, stop and undo."""

import re
from typing import Any
from uuid import UUID

from leadline.storage.bulk.transactions import BulkContext, perform_next
from tests.support.app.cast import Api
from tests.support.worlds.background import operation_runner

from ..home.test_monitor_list_screen import acted, many, toast, undo_of
from ..incidents.test_incidents_screen import seen, send


async def in_background(api: Api, path: str, **form: Any) -> tuple[str, str]:
    """The first line of the progress, and the page of the result."""
    began = await send(api, path, **form)
    assert began.status_code == 303
    where = began.headers["Location"]
    progress = await seen(api, where, who="editor")
    runner = operation_runner(api.pool, api.context.keyring, api.context.clock)
    while await runner.pass_once():
        pass
    ended = await api.ask("editor", "GET", where)
    assert ended.status_code == 303
    line = re.sub("<[^>]+>", "", progress.partition("<h1>")[2].partition("</h1>")[0])
    return line, await seen(api, ended.headers["Location"])


async def test_an_action_on_many_monitors_continues_in_the_background(api: Api) -> None:
    """The result and the undo cover all monitors. Monitors that need no change count too."""
    path = f"/projects/{api.project}/monitors"
    await many(api, 22)
    await api.new_monitor(name="Monitor 050b", enabled=False)
    line, page = await in_background(api, path, act="pause", all="on", filter="q=Monitor")
    assert line == "Pausing monitors: 0 of 23"
    assert toast(page) == "22 monitors paused."
    assert "?q=Monitor" in page
    paused = "select count(*) from monitors where not enabled"
    assert await api.rows(paused) == [(23,)]
    line, page = await in_background(api, path, **undo_of(page))
    assert (line, toast(page)) == ("Resuming monitors: 0 of 22", "22 monitors resumed.")
    assert await api.rows(paused) == [(1,)]


async def test_few_monitors_are_changed_at_once(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 20)
    assert toast(await acted(api, path, act="pause", ids=",".join(uids))) == "20 monitors paused."


async def test_every_failure_in_the_background_is_counted(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 30)
    async with api.pool.transaction("manage") as tx:
        await tx.execute(
            "update monitors set managed_by = 'files', bundle_uid = uid"
            " where name between 'Monitor 005' and 'Monitor 027'"
        )
    began = await send(api, path, act="tag", tag="edge", all="on", filter="")
    await api.rows("select 1")
    async with api.pool.transaction("delete") as tx:
        await tx.execute("delete from monitors where uid = %(uid)s", uid=UUID(uids[0]))
    runner = operation_runner(api.pool, api.context.keyring, api.context.clock)
    await runner.pass_once()
    ended = await api.ask("editor", "GET", began.headers["Location"])
    page = await seen(api, ended.headers["Location"])
    assert toast(page) == "6 monitors tagged."
    assert "Monitor 000: deleted meanwhile." in page
    assert page.count(": managed by a bundle.</li>") == 19
    assert "4 more." in page
    operation = await api.rows("select state, done, total from operations")
    assert operation == [("succeeded", 30, 30)]
    ((uid,),) = await api.rows("select uid from operations")
    # The author is an editor.
    for who in ("editor", "org_admin"):
        shown = await seen(api, f"/operations/{uid}", who=who)
        assert "The action on monitors has ended" in shown
        assert "24 monitors not changed" in shown
        assert shown.count(">managed by file</td>") == 23
    assert (await api.ask("viewer", "GET", f"/operations/{uid}")).status_code == 403
    told = await (await api.ask("editor", "GET", f"/api/v1/operations/{uid}")).get_json()
    assert (told["failed"], len(told["failures"])) == (24, 24)
    assert told["failures"][0] == {"name": "Monitor 000", "code": "not_found", "message": ""}


async def test_a_stopped_action_states_what_was_not_tried(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    await many(api, 30)
    began = (await send(api, path, act="pause", all="on", filter="")).headers["Location"]
    (uid,) = await api.rows("select uid from operations")
    ground = BulkContext(keyring=api.context.keyring, raw_days=30)
    for _ in range(5):
        assert await perform_next(api.pool, uid[0], ground)
    assert "Pausing monitors: 5 of 30" in await seen(api, path)
    assert (await send(api, began)).status_code == 303
    assert "Stopping after the current monitor." in await seen(api, began, who="editor")
    assert not await perform_next(api.pool, uid[0], ground)
    ended = await api.ask("editor", "GET", began)
    page = await seen(api, ended.headers["Location"])
    said = r"5 monitors paused. Stopped by [^:]+: 25 monitors were not tried."
    assert re.fullmatch(said, toast(page))
    assert await api.rows("select count(*) from monitors where not enabled") == [(5,)]
    _, page = await in_background(api, path, **undo_of(page))
    assert toast(page) == "5 monitors resumed."
    answer = await api.ask("viewer", "GET", f"/api/v1/operations/{uid[0]}")
    assert answer.status_code == 403
    answer = await api.ask("editor", "GET", f"/api/v1/operations/{uid[0]}")
    found = await answer.get_json()
    assert (found["kind"], found["state"], found["done"]) == ("monitors_edit", "failed", 5)


async def test_an_action_ends_when_its_author_may_no_longer_edit(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    await many(api, 21)
    began = (await send(api, path, act="pause", all="on", filter="")).headers["Location"]
    async with api.pool.transaction("demote") as tx:
        await tx.execute("update memberships set role = 'viewer' where role = 'editor'")
    await operation_runner(api.pool, api.context.keyring, api.context.clock).pass_once()
    ((state, error),) = await api.rows("select state, error from operations")
    assert (state, "may no longer edit" in error) == ("failed", True)
    assert await api.rows("select count(*) from monitors where not enabled") == [(0,)]
    assert (await api.ask("viewer", "GET", began)).status_code == 403
    assert (await send(api, began.replace("actions/", "actions/0"))).status_code in (403, 404)


async def test_a_deletion_in_the_background_asks_for_the_number_once(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    uids = await many(api, 21)
    given_ = {"act": "delete", "ids": ",".join(uids)}
    assert (await send(api, path, count="20", **given_)).status_code == 400
    line, page = await in_background(api, path, count="21", **given_)
    assert (line, toast(page)) == ("Deleting monitors: 0 of 21", "21 monitors deleted.")
    assert await api.rows("select count(*) from monitors") == [(0,)]


async def test_a_second_action_in_the_background_is_refused(api: Api) -> None:
    path = f"/projects/{api.project}/monitors"
    await many(api, 21)
    await send(api, path, act="pause", all="on", filter="")
    page = await acted(api, path, act="tag", tag="edge", all="on", filter="")
    said = "another action on monitors of the project runs: try again later."
    assert toast(page) == f"No monitor was changed: {said}"
    assert "Pausing monitors: 0 of 21" in page
