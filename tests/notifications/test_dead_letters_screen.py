"""The screen of failed deliveries shows event, destination and reason, and replays an event."""

from typing import Any
from uuid import uuid4

from tests.support.app.cast import Api

PATH = "/admin/dead-letters"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def seen(api: Api) -> str:
    answer = await api.ask("global_admin", "GET", PATH)
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


async def send(api: Api, form: str) -> Any:
    return await api.ask("global_admin", "POST", PATH, data=form.encode(), headers=FORM)


async def test_the_page_shows_dead_letters_and_the_events_behind_them(api: Api) -> None:
    assert "No failed deliveries" in await seen(api)
    event = await api.new_dead_letter("<b>Shop</b> is down")
    async with api.pool.transaction("behind") as tx:
        for _ in range(2):
            await tx.execute(
                "insert into outbox (org, uid, project, topic, destination, stream, thread, "
                "event, payload, ready, due_at, created_at, updated_at) "
                "select org, gen_random_uuid(), project, topic, destination, stream, thread, "
                "event, payload, false, due_at, created_at, updated_at from outbox "
                "where uid = %(uid)s",
                uid=event,
            )
    page = await seen(api)
    assert "1 delivery failed" in page
    assert "&lt;b&gt;Shop&lt;/b&gt; is down" in page
    assert "http_status 503" in page
    assert "24\u202ftries" in page or "24 tries" in page
    assert "blocked events: 2" in page
    assert "(webhook)" in page


async def test_of_a_webhook_only_the_host_is_shown(api: Api) -> None:
    hook = await api.new_webhook()
    event = await api.new_dead_letter()
    async with api.pool.transaction("turn") as tx:
        await tx.execute(
            "update webhooks set url = 'https://name:canary@hook.example.com:8443/canary?k=canary' "
            "where uid = %(hook)s",
            hook=hook,
        )
        await tx.execute(
            "update destinations set channel = null, "
            "webhook = (select id from webhooks where uid = %(hook)s) "
            "where id = (select destination from outbox where uid = %(uid)s)",
            hook=hook,
            uid=event,
        )
    page = await seen(api)
    assert "Webhook to hook.example.com:8443" in page
    assert "canary" not in page


async def test_one_is_tried_again_and_then_all(api: Api) -> None:
    first, *_ = [await api.new_dead_letter() for _ in range(3)]
    answer = await send(api, f"act=replay&event={first}")
    assert (answer.status_code, answer.headers["Location"]) == (303, PATH)
    assert "2 deliveries failed" in await seen(api)
    assert (await send(api, "act=replay-all")).status_code == 303
    assert "No failed deliveries" in await seen(api)


async def test_an_event_that_was_deleted_is_reported_in_the_page(api: Api) -> None:
    for form in (f"act=replay&event={uuid4()}", "act=replay&event=x", "act=replay"):
        answer = await send(api, form)
        assert answer.status_code == 400
        assert "was deleted" in await answer.get_data(as_text=True)


async def test_only_who_runs_the_installation_is_led_there(api: Api) -> None:
    for who, led in (("org_admin", False), ("global_admin", True)):
        answer = await api.ask(who, "GET", f"/projects/{api.project}/settings")
        page = await answer.get_data(as_text=True)
        assert (PATH in page) == led


async def test_a_dead_letter_of_a_deleted_project_is_still_shown(api: Api) -> None:
    """The event counts, blocks its stream and can be replayed, so the screen must show it."""
    hook = await api.new_webhook()
    event = await api.new_dead_letter()
    async with api.pool.transaction("turn") as tx:
        await tx.execute(
            "update destinations set channel = null, "
            "webhook = (select id from webhooks where uid = %(hook)s) "
            "where id = (select destination from outbox where uid = %(uid)s)",
            hook=hook,
            uid=event,
        )
        project = api.projects["acme/shop"][0]
        await tx.execute("delete from projects where id = %(id)s", id=project)
    page = await seen(api)
    assert "1 delivery failed" in page
    assert str(event) in page
    assert "a deleted project" in page
    assert (await send(api, f"act=replay&event={event}")).status_code == 303
