"""Global admins list dead letters and replay them with a new count of attempts."""

from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.storage.notifications.tables import dead_letters
from leadline.storage.notifications.transactions import replay_dead
from tests.support.app.cast import Api

DEAD = "/api/v1/admin/outbox/dead"


async def rows_of(api: Api) -> list[tuple[UUID, str, int]]:
    return [
        (row[0], row[1], row[2])
        for row in await api.rows("select uid, status, attempts from outbox order by id")
    ]


async def test_dead_letters_are_listed_newest_first(api: Api) -> None:
    older = await api.new_dead_letter("First")
    newer = await api.new_dead_letter("Second")
    async with api.pool.transaction("age") as tx:
        await tx.execute(
            "update outbox set updated_at = updated_at - interval '1 hour' where uid = %(uid)s",
            uid=older,
        )
    answer = await api.ask("global_admin", "GET", DEAD)
    found = await answer.get_json()
    assert [event["id"] for event in found] == [str(newer), str(older)]
    assert found[0]["payload"]["title"] == "Second"
    assert {key: found[0][key] for key in ("topic", "status", "attempts", "last_error")} == {
        "topic": "incident_event",
        "status": "dead",
        "attempts": 24,
        "last_error": "http_status 503",
    }
    few = await (await api.ask("global_admin", "GET", DEAD, query={"limit": 1})).get_json()
    assert [event["id"] for event in few] == [str(newer)]


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
async def test_an_invalid_limit_is_refused(api: Api, limit: str) -> None:
    answer = await api.ask("global_admin", "GET", DEAD, query={"limit": limit})
    assert answer.status_code == 400
    assert (await api.ask("global_admin", "GET", DEAD, query={"limit": 501})).status_code == 200


async def test_an_event_is_replayed_once_and_audited_in_its_organization(api: Api) -> None:
    event, other = await api.new_dead_letter(), await api.new_dead_letter()
    async with api.pool.transaction("rest") as tx:
        await tx.execute("update destinations set backoff_until = now() + interval '1 day'")
    answer = await api.ask("global_admin", "POST", f"{DEAD}/{event}/replay")
    assert answer.status_code == 204
    assert await rows_of(api) == [(event, "pending", 0), (other, "dead", 24)]
    due = "select due_at <= now() from outbox where uid = %(uid)s"
    assert await api.rows(due, uid=event) == [(True,)]
    assert await api.rows("select count(*) from destinations where backoff_until is null") == [(1,)]
    again = await api.ask("global_admin", "POST", f"{DEAD}/{event}/replay")
    assert again.status_code == 404
    nowhere = await api.ask("global_admin", "POST", f"{DEAD}/{uuid7()}/replay")
    assert (await nowhere.get_data()) == (await again.get_data())
    audited = "select org, action, target from audit_entries where action like 'outbox%%'"
    assert await api.rows(audited) == [
        (api.orgs["acme"][0], "outbox.replay", f"outbox_event:{event}")
    ]


async def test_all_are_replayed_and_counted(api: Api) -> None:
    for _ in range(3):
        await api.new_dead_letter()
    answer = await api.ask("global_admin", "POST", f"{DEAD}/replay-all")
    assert await answer.get_json() == {"replayed": 3}
    assert {status for _, status, _ in await rows_of(api)} == {"pending"}
    again = await api.ask("global_admin", "POST", f"{DEAD}/replay-all")
    assert await again.get_json() == {"replayed": 0}


@pytest.mark.parametrize("count", [4, 5])
async def test_all_are_replayed_over_many_transactions(
    api: Api, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(dead_letters, "BATCH_MOST", 2)
    monkeypatch.setattr(replay_dead, "BATCH_MOST", 2)
    for _ in range(count):
        await api.new_dead_letter()
    answer = await api.ask("global_admin", "POST", f"{DEAD}/replay-all")
    assert await answer.get_json() == {"replayed": count}
    assert {status for _, status, _ in await rows_of(api)} == {"pending"}
