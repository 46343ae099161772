"""The mutes of a project in the settings, and where they apply."""

from tests.incidents.test_incidents_screen import seen, send
from tests.support.app.cast import Api


def path_of(api: Api) -> str:
    return f"/projects/{api.project}/mutes"


async def test_an_editor_mutes_and_ends(api: Api) -> None:
    monitor = await api.new_monitor(name="Checkout")
    path = path_of(api)
    assert "No mutes" in await seen(api, path)
    text = await seen(api, f"{path}?show=add&monitor={monitor.uid}", "editor")
    assert 'value="Checkout"' in text
    form = {"monitor": "Checkout", "for": "28800", "reason": "known fault"}
    answer = await send(api, path, act="add", **form)
    assert answer.headers["Location"] == f"{path}?done=add"
    listed = await seen(api, f"{path}?done=add", "editor")
    assert "monitor Checkout" in listed
    assert "In force" in listed
    incident = await api.new_incident(monitor=monitor.uid)
    for where in (f"/monitors/{monitor.uid}", f"/incidents/{incident}"):
        shown = await seen(api, where)
        assert "Alerts are muted until" in shown
        assert "known fault" in shown
        assert "an outage that outlasts the mute is announced then" in shown
    assert "outage waits" not in await seen(api, path)
    async with api.pool.transaction("down") as tx:
        await tx.execute(
            "insert into outages (org, uid, monitor, began_at, why, suppressed_by)"
            " values (%(org)s, gen_random_uuid(), %(id)s, now(), '', 'silenced')",
            org=monitor.org,
            id=monitor.id,
        )
    assert "1 outage waits" in await seen(api, path)
    overview = await seen(api, f"/projects/{api.project}")
    assert "Alerts of monitor Checkout are muted: known fault." in overview
    ((uid,),) = await api.rows("select uid from mutes")
    answer = await send(api, path, act="end", mute=str(uid))
    assert answer.headers["Location"] == f"{path}?done=end"
    assert "Ended" in await seen(api, path)
    assert "Alerts are muted" not in await seen(api, f"/monitors/{monitor.uid}")


async def test_a_service_shows_its_mute(api: Api) -> None:
    service = await api.new_service()
    await api.new_mute(matchers="", service=service, reason="known fault")
    assert "known fault" in await seen(api, f"/services/{service}")


async def test_a_refused_form_keeps_its_input(api: Api) -> None:
    path = path_of(api)
    form = {"matchers": "tag", "for": "3600", "reason": "typed before"}
    answer = await send(api, path, act="add", **form)
    text = await answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert "Matchers: has no name=" in text
    assert 'value="typed before"' in text
    answer = await send(api, path, act="add", **{**form, "matchers": ""})
    assert "Matchers: give one of" in await answer.get_data(as_text=True)


async def test_a_viewer_sees_the_list_and_no_button(api: Api) -> None:
    await api.new_mute()
    main = (await seen(api, path_of(api))).partition("<main")[2].partition("</main>")[0]
    assert "tag=&#34;db&#34;" in main
    assert 'method="post"' not in main
    assert (await api.ask("viewer", "GET", f"{path_of(api)}?show=add")).status_code == 403
