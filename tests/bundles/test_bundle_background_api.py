"""Bundles that are applied in the background: progress, result, failure, and waits for locks."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
import trio

from leadline.daemon.loops.bundles import bundle_applier
from leadline.daemon.loops.operation_runner import FAILURES_MOST, OperationRunner
from leadline.http.bundles.routes.bundles import prefers_async
from leadline.storage.accounts.tables.operations import lock_running
from leadline.storage.bundles.rules.apply_log import ApplyLog
from leadline.storage.bundles.tables import bundle_applications
from leadline.storage.bundles.tables.bundle_applications import lock_application
from leadline.storage.bundles.transactions import apply_in_background, stored_changes
from leadline.storage.bundles.transactions.apply_bundle import write_bundle
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import LockTimeout, Tx
from tests.bundles.test_bundles_api import PUSH, WEB, ask, bundle, monitors
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.worlds.background import operation_runner

ASYNC = {"Prefer": "return=minimal, Respond-Async; wait=10"}


async def begin(api: Api, document: dict[str, Any], status: int = 202, query: str = "") -> Any:
    path = f"/api/v1/projects/{api.project}/bundle/apply{query}"
    answer = await api.ask("project_admin", "POST", path, document, headers=ASYNC)
    assert answer.status_code == status, await answer.get_data()
    if status == 202:
        assert answer.headers["preference-applied"] == "respond-async"
    return await answer.get_json()


async def operation(api: Api, uid: str, who: str = "project_admin") -> Any:
    return await call(api, "GET", f"/operations/{uid}", who=who)


def runner(api: Api) -> OperationRunner:
    return operation_runner(api.pool, api.context.keyring, api.context.clock)


async def test_a_bundle_is_applied_after_the_answer(api: Api) -> None:
    document = bundle({"web": WEB, "nightly": PUSH}, {"shop": {"monitors": ["web"]}})
    planned = await ask(api, "plan", document)
    begun = await begin(api, document)
    assert (begun["kind"], begun["state"], begun["done"], begun["total"]) == (
        "bundle_apply",
        "running",
        0,
        3,
    )
    assert "result" not in begun
    assert await monitors(api) == {}
    # One at a time.
    assert await begin(api, document, 409) == {
        "error": "another bundle is being applied to the project: try again later"
    }
    await runner(api).pass_once()
    ended = await operation(api, begun["id"])
    assert (ended["state"], ended["done"], ended["total"]) == ("succeeded", 3, 3)
    assert ended["result"] == {"changes": planned["changes"], "applied": True}
    assert set(await monitors(api)) == {"web", "nightly"}
    assert await api.rows("select from bundle_applications") == []
    assert await api.rows("select action from audit_entries") == []
    # Without the header, the answer has the changes.
    assert (await ask(api, "apply", document))["applied"] is True


async def test_a_scenario_is_encrypted_until_the_end_and_not_in_the_result(api: Api) -> None:
    expected = {"kind": "body_contains", "op": "contains", "value": "hunter2"}
    step = {"method": "GET", "url": "https://a.example/", "assert": [expected]}
    scenario = {"steps": [step]}
    entry = {"name": "Login", "type": "synthetic"}
    document = bundle({"login": {**entry, "config": {"scenario": scenario}}})
    begun = await begin(api, document)
    ((text, sealed),) = await api.rows(
        "select document, document_ciphertext from bundle_applications"
    )
    assert text is None
    assert b"hunter2" not in sealed
    await runner(api).pass_once()
    ended = await operation(api, begun["id"])
    assert ended["state"] == "succeeded", ended["error"]
    assert set(await monitors(api)) == {"login"}
    assert "hunter2" not in str(await api.rows("select result from operations"))


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("respond-async", True),
        ("wait=5, RESPOND-ASYNC;x=1", True),
        ("", False),
        ("respond-asynchronously", False),
        ("return=minimal; respond-async", False),
    ],
)
def test_the_preference_of_a_header(header: str, wanted: bool) -> None:
    assert prefers_async(header) is wanted


async def test_a_failure_changes_no_object_and_has_its_reason(api: Api) -> None:
    begun = await begin(api, bundle({"web": WEB, "other": {**WEB, "target": "ftp://x"}}))
    await runner(api).pass_once()
    ended = await operation(api, begun["id"])
    assert ended["state"] == "failed"
    assert ended["error"].startswith("monitors.other.target: ")
    assert "result" not in ended
    assert await monitors(api) == {}
    assert await api.rows("select from bundle_applications") == []


async def test_the_request_refuses_what_needs_no_comparison(api: Api) -> None:
    assert await begin(api, bundle({"web": {**WEB, "colour": "red"}}), 400) == {
        "error": "monitors.web.colour: is not known here"
    }
    document = {**bundle({"web": WEB}), "project": "mill"}
    assert await begin(api, document, 400) == {
        "error": "project: is another than the one it is applied to"
    }
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    answer = await api.ask("editor", "POST", path, bundle({"web": WEB}), headers=ASYNC)
    assert answer.status_code == 403
    assert await api.rows("select from operations") == []


async def test_name_and_takeover_are_those_of_the_request(api: Api) -> None:
    await api.new_monitor(slug="web", name="Old", type="http", target=WEB["target"])
    begun = await begin(api, bundle({"web": WEB}), query="?name=shop&take_over=true")
    await runner(api).pass_once()
    assert (await operation(api, begun["id"]))["state"] == "succeeded"
    assert (await monitors(api))["web"]["management"]["path"] == "shop"
    rows = await api.rows("select path, revision, taken_over, updated from bundle_revisions")
    assert rows == [("shop", 1, 1, 1)]


async def test_only_applications_that_change_something_are_revisions(api: Api) -> None:
    query = "select path, revision, created, updated, orphaned from bundle_revisions order by 1, 2"
    for document in (bundle({"web": WEB}), bundle({"web": WEB}), bundle({})):
        await ask(api, "plan", document)
        await ask(api, "apply", document)
    assert await api.rows(query) == [("", 1, 1, 0, 0), ("", 2, 0, 0, 1)]


async def test_progress_is_visible_before_the_end(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_applier, "REPORT_SECONDS", 0.01)
    begun = await begin(api, bundle({"web": WEB, "nightly": PUSH}))
    seen: list[tuple[Any, Any]] = []

    async def slow(*given: Any) -> Any:
        changes = await write_bundle(*given)
        with trio.fail_after(10):
            while not seen or seen[-1] != (2, 2):
                rows: list[Any] = []

                async def read_progress() -> None:
                    query = "select done, total from operations where progress is not null"
                    rows.extend(await api.rows(query))  # noqa: B023

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(read_progress)
                seen.extend(rows)
        return changes

    monkeypatch.setattr(apply_in_background, "write_bundle", slow)
    await runner(api).pass_once()
    assert (await operation(api, begun["id"]))["state"] == "succeeded"
    ((text,),) = await api.rows("select progress from operations")
    log = msgspec.json.decode(text, type=ApplyLog)
    assert {(step.action, step.kind, step.uid) for step in log.steps} == {
        ("create", "monitor", "web"),
        ("create", "monitor", "nightly"),
    }
    assert (log.done, log.total) == (2, 2)


async def test_a_revision_has_its_changes_without_documents_and_within_its_bounds(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = {"steps": [{"url": "https://example.com/hidden-path"}]}
    flow = {"name": "Flow", "type": "synthetic", "config": {"scenario": scenario}}
    many = {f"m{n}": {**WEB, "name": f"M {n}"} for n in range(5)}
    await ask(api, "apply", bundle({"web": WEB, "flow": flow, **many}))
    other = {"steps": [{"url": "https://example.com/other-path"}]}
    flow = {**flow, "config": {"scenario": other}}
    await ask(api, "apply", bundle({"web": {**WEB, "name": "Web 2"}, "flow": flow, **many}))
    rows = await api.rows("select changes from bundle_revisions order by revision")
    first, second = (msgspec.json.decode(text) for (text,) in rows)
    assert {one["uid"] for one in first} == {"web", "flow", *many}
    assert all("fields" not in one for one in first), "new objects have no settings"
    assert {one["uid"]: [f["name"] for f in one["fields"]] for one in second} == {
        "web": ["name"],
        "flow": ["config.scenario"],
    }
    assert not any("-path" in text for (text,) in rows)
    monkeypatch.setattr(stored_changes, "REVISION_CHANGES_MOST", 3)
    await ask(api, "apply", bundle({}))
    monkeypatch.setattr(stored_changes, "REVISION_BYTES_MOST", 10)
    monkeypatch.setattr(bundle_applications, "CHANGES_KEPT", 2)
    await ask(api, "apply", bundle({"web": WEB}))
    rows = await api.rows("select changes from bundle_revisions order by revision")
    assert [None if text is None else len(msgspec.json.decode(text)) for (text,) in rows] == [
        None,
        None,
        3,
        0,
    ]


async def test_an_operation_that_another_process_performs_is_left_to_it(api: Api) -> None:
    begun = await begin(api, bundle({"web": WEB}))
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(runner(api).pass_once)
    assert (await operation(api, begun["id"]))["state"] == "succeeded"
    assert await api.rows("select revision from bundle_revisions") == [(1,)]


async def test_a_document_is_read_only_by_the_process_that_performs_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other processes look at the operation every second until it ends."""
    begun = await begin(api, bundle({"web": WEB}))
    read: list[str] = []
    monkeypatch.setattr(bundle_applier, "_read", read.append)
    async with api.pool.transaction("perform") as tx:
        assert await lock_application(tx, UUID(begun["id"]))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner(api).pass_once)
    assert read == []
    assert (await operation(api, begun["id"]))["state"] == "running"


@pytest.mark.parametrize(
    ("error", "passes", "said"),
    [
        (RuntimeError("x"), 1, "internal error; see the log of the server"),
        (LockTimeout("lock"), FAILURES_MOST, "the database did not answer in time: lock"),
        (Unavailable("away"), FAILURES_MOST, "the database did not answer in time: away"),
    ],
)
async def test_an_application_that_cannot_be_performed_ends(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, passes: int, said: str
) -> None:
    begun = await begin(api, bundle({"web": WEB}))

    async def failing(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(apply_in_background, "write_bundle", failing)
    instants = [api.context.clock()]
    running = operation_runner(api.pool, api.context.keyring, lambda: instants[-1])
    for _ in range(passes):
        assert (await operation(api, begun["id"]))["state"] == "running"
        await running.pass_once()
        instants.append(Instant(instants[-1] + MINUTE))
    ended = await operation(api, begun["id"])
    assert (ended["state"], ended["error"]) == ("failed", said)
    # The project is free for the next application.
    monkeypatch.undo()
    await begin(api, bundle({"web": WEB}))


async def test_a_project_that_is_deleted_meanwhile_ends_the_application(api: Api) -> None:
    begun = await begin(api, bundle({"web": WEB}))
    async with api.pool.transaction("delete") as tx:
        await tx.execute("update projects set deleting_since = now()")
    await runner(api).pass_once()
    ((state, error),) = await api.rows("select state, error from operations")
    assert (state, error) == ("failed", "the project was deleted")
    assert begun["state"] == "running"


async def test_the_wait_for_a_deletion_has_a_bound(api: Api) -> None:
    """A deletion holds the lock of the project."""
    document = bundle({"web": WEB})
    answers: dict[str, Any] = {}
    verbs = ("plan", "apply")

    async def send(verb: str) -> None:
        answers[verb] = await ask(api, verb, document, 409)

    async def send_async() -> None:
        answers["async"] = await begin(api, document, 409)

    async with api.pool.transaction("delete") as tx:
        await tx.execute("select from projects for update")
        with trio.fail_after(12):
            async with trio.open_nursery() as nursery:
                for verb in verbs:
                    nursery.start_soon(send, verb)
                nursery.start_soon(send_async)
    said = "the project is locked by another change: try again later"
    assert answers == {way: {"error": said} for way in (*verbs, "async")}
    assert await monitors(api) == {}


async def test_a_release_during_an_application_is_refused(api: Api) -> None:
    answers: list[Any] = []

    async def send() -> None:
        answers.append(await ask(api, "release", {}, 409))

    async with api.pool.transaction("apply") as tx:
        await tx.execute("select from projects for no key update")
        with trio.fail_after(12):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
    assert answers == [{"error": "the project is locked by another change: try again later"}]


async def test_a_process_of_the_version_before_does_not_take_a_bundle_for_a_deletion(
    api: Api,
) -> None:
    """It performs every operation that these two statements find as a deletion."""
    begun = await begin(api, bundle({"web": WEB}))
    assert await api.rows("select uid from operations where state = 'running'") == []
    async with api.pool.transaction("lock") as tx:
        assert await lock_running(tx, UUID(begun["id"])) is None


async def test_an_operation_is_readable_by_its_starter_and_by_admins(api: Api) -> None:
    begun = await begin(api, bundle({"web": WEB}))
    path = f"/api/v1/operations/{begun['id']}"
    statuses = {
        who: (await api.ask(who, "GET", path)).status_code
        for who in ("viewer", "editor", "project_admin", "org_admin")
    }
    assert statuses == {"viewer": 403, "editor": 403, "project_admin": 200, "org_admin": 200}
    assert (await api.ask("org_admin", "GET", f"/api/v1/operations/{uuid4()}")).status_code == 404


async def test_a_running_application_is_stopped_and_rolled_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application has written everything, and waits. Its process sees the request."""
    monkeypatch.setattr(bundle_applier, "REPORT_SECONDS", 0.01)
    begun = await begin(api, bundle({"web": WEB, "nightly": PUSH}))
    written = trio.Event()

    async def endless(*given: Any) -> Any:
        await write_bundle(*given)
        written.set()
        await trio.sleep_forever()

    monkeypatch.setattr(apply_in_background, "write_bundle", endless)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runner(api).pass_once)
            await written.wait()
            assert await stop(api, begun["id"])
            assert not await stop(api, begun["id"]), "it is to stop already"
    ended = await operation(api, begun["id"])
    assert (ended["state"], ended["error"]) == ("failed", "stopped by tests")
    assert await monitors(api) == {}
    monkeypatch.undo()
    # The project is free for the next application.
    await begin(api, bundle({"web": WEB}))


REVOKED = (
    "the account or the token that began the application may no longer apply bundles to the project"
)


USER = "(select id from users where email = 'project_admin@example.com')"


@pytest.mark.parametrize(
    ("who", "change"),
    [
        ("project_admin", f"delete from memberships where user_id = {USER}"),
        ("project_admin", f"update memberships set role = 'editor' where user_id = {USER}"),
        ("project_admin", f"delete from users where id = {USER}"),
        ("token", "delete from api_tokens"),
        ("token", "update api_tokens set expires_at = '2000-01-01'"),
        ("token", "update api_tokens set role = 'viewer'"),
        ("token", "update api_tokens set actions = '{gate:evaluate}'"),
    ],
)
@pytest.mark.parametrize("is_running", [False, True])
async def test_a_right_that_is_lost_before_the_commit_is_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch, who: str, change: str, is_running: bool
) -> None:
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    answer = await api.ask(who, "POST", path, bundle({"web": WEB}), headers=ASYNC)
    assert answer.status_code == 202, await answer.get_data()
    begun = await answer.get_json()

    async def lose() -> None:
        async with api.pool.transaction("revoke") as tx:
            assert await tx.execute(change)

    async def write_and_lose(*given: Any) -> Any:
        changes = await write_bundle(*given)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
        return changes

    if is_running:
        monkeypatch.setattr(apply_in_background, "write_bundle", write_and_lose)
    else:
        await lose()
    await runner(api).pass_once()
    ended = await operation(api, begun["id"], "org_admin")
    assert (ended["state"], ended["error"]) == ("failed", REVOKED)
    assert await api.rows("select from monitors") == []
    assert await api.rows("select from bundle_applications") == []


@pytest.mark.parametrize("who", ["token", "shopkeeper", "global_admin"])
async def test_each_kind_of_caller_keeps_its_right(api: Api, who: str) -> None:
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    answer = await api.ask(who, "POST", path, bundle({"web": WEB}), headers=ASYNC)
    await runner(api).pass_once()
    assert (await operation(api, (await answer.get_json())["id"], who))["state"] == "succeeded"


async def test_a_stop_that_is_requested_before_the_end_wins(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await begin(api, bundle({"web": WEB}))

    async def stopped(*given: Any) -> Any:
        changes = await write_bundle(*given)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop, api, begun["id"])
        running = await operation(api, begun["id"])
        assert (running["state"], "error" in running) == ("running", False)
        return changes

    monkeypatch.setattr(apply_in_background, "write_bundle", stopped)
    await runner(api).pass_once()
    ended = await operation(api, begun["id"])
    assert (ended["state"], ended["error"]) == ("failed", "stopped by tests")
    assert await monitors(api) == {}
    assert not await stop(api, begun["id"])


async def stop(api: Api, uid: str) -> bool:
    who = replace(api.editor, is_global_admin=True, label="tests")

    async def work(tx: Tx) -> bool:
        return await apply_in_background.stop_application(tx, who, api.project, UUID(uid))

    return await api.pool.transact("stop", work)


async def test_a_write_that_waits_too_long_is_asked_to_come_back(api: Api) -> None:
    await ask(api, "apply", bundle({"web": WEB}))
    web = (await monitors(api))["web"]["id"]
    answers: dict[str, Any] = {}

    async def patch() -> None:
        path = f"/api/v1/monitors/{web}"
        answers["api"] = await api.ask("token", "PATCH", path, {"enabled": False})

    async def submit() -> None:
        path, headers = f"/monitors/{web}", {"Content-Type": "application/x-www-form-urlencoded"}
        given: dict[str, Any] = {"data": b"act=pause", "headers": headers}
        answers["page"] = await api.ask("project_admin", "POST", path, **given)

    async with api.pool.transaction("apply") as tx:
        await tx.execute("select from monitors for update")
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(patch)
                nursery.start_soon(submit)
    api_answer, page = answers["api"], answers["page"]
    assert api_answer.status_code == page.status_code == 503
    assert api_answer.headers["retry-after"] == page.headers["retry-after"] == "5"
    said = await api_answer.get_json()
    assert said["error"].startswith("locked: another change, such as the application of a bundle")
    assert "Not saved. Another change" in await page.get_data(as_text=True)
