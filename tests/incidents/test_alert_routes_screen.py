"""The alert routes of a project in the settings: form, test on a sample, and the list."""

from typing import Any
from urllib.parse import urlencode

from tests.support.app.cast import Api

from .test_alertmanager_api import alert, payload
from .test_alertmanager_api import send as send_alerts
from .test_incidents_screen import seen, send


def path_of(api: Api) -> str:
    return f"/projects/{api.project}/alert-routes"


async def policy_text(api: Api) -> str:
    """Creates a policy, and returns the text by which the form names it."""
    uid = await api.new_policy()
    ((name,),) = await api.rows("select name from escalation_policies where uid = %(u)s", u=uid)
    return f"{name}, escalation policy"


async def submit(api: Api, act: str, *lines: tuple[str, ...], **given: str) -> Any:
    fields = [("act", act), *given.items()]
    fields += [
        pair
        for one in lines
        for pair in zip(("matchers", "target", "was"), (*one, "")[:3], strict=True)
    ]
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data = urlencode(fields).encode()
    return await api.ask("editor", "POST", path_of(api), data=data, headers=headers)


async def test_an_editor_tests_saves_and_sees_the_routes(api: Api) -> None:
    target = await policy_text(api)
    path = path_of(api)
    assert "No alert routes" in await seen(api, path)
    lines = [("severity=page", target), ("", ""), ("team=shop", target)]
    answer = await submit(api, "test", *lines, sample="team=shop")
    text = await answer.get_data(as_text=True)
    assert "Route 3 decides." in text
    assert text.count("matches the sample") == 1
    assert "No alert routes" in await seen(api, path), "a test saves nothing"
    answer = await submit(api, "test", *lines, sample="team=x")
    assert "Unrouted: no route matches" in await answer.get_data(as_text=True)
    answer = await submit(api, "save", *lines, default=target)
    assert answer.headers["Location"] == f"{path}?done=save"
    listed = await seen(api, path, "editor")
    assert "<code>team=&#34;shop&#34;</code>" in listed
    assert "Default" in listed
    form = await seen(api, f"{path}?show=edit", "editor")
    assert 'value="severity=&#34;page&#34;"' in form
    await send_alerts(api, payload(alert(labels={"team": "shop"})))
    assert "unrouted" not in await seen(api, f"/projects/{api.project}/incidents")


async def test_a_refused_form_keeps_its_lines(api: Api) -> None:
    target = await policy_text(api)
    lines = [("", ""), ("team", target)]
    answer = await submit(api, "save", *lines, sample="kept")
    text = await answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert "Route 2: Matchers has no name=" in text
    assert 'value="kept"' in text
    answer = await submit(api, "save", ("team=shop", ""))
    assert "Route 1: Recipient give one of" in await answer.get_data(as_text=True)
    answer = await submit(api, "save", ("team=shop", "nobody"))
    text = await answer.get_data(as_text=True)
    assert "Route 1: Recipient names no recipient of this project." in text
    assert 'value="nobody"' in text
    answer = await submit(api, "test", sample='team!="x"')
    assert "Sample must have the operator = only." in await answer.get_data(as_text=True)


async def test_an_unchanged_recipient_is_kept_when_another_gets_its_name(api: Api) -> None:
    target = await policy_text(api)
    await submit(api, "save", ("team=shop", target))
    async with api.pool.transaction("rename") as tx:
        await tx.execute("update escalation_policies set name = 'Same'")
    form = await seen(api, f"{path_of(api)}?show=edit", "editor")
    ((uid,),) = await api.rows("select uid from escalation_policies")
    was = f"{uid} Same, escalation policy"
    assert f'value="{was}"' in form
    await api.new_policy()
    async with api.pool.transaction("rename") as tx:
        await tx.execute("update escalation_policies set name = 'Same'")
    line = ("team=shop", "Same, escalation policy")
    assert (await submit(api, "save", (*line, was))).status_code == 303
    answer = await submit(api, "save", line)
    assert "Route 1: Recipient matches several" in await answer.get_data(as_text=True)
    names = "select p.uid from alert_routes r join escalation_policies p on p.id = r.policy"
    assert await api.rows(names) == [(uid,)]


async def test_a_list_of_recipients_has_services_with_a_policy(api: Api) -> None:
    policy = await api.new_policy()
    service = await api.new_service(name="Paged shop")
    pick = f"/projects/{api.project}/pick?kind=recipient&q=paged"
    assert "Paged shop" not in await seen(api, pick)
    async with api.pool.transaction("page") as tx:
        await tx.execute(
            "update services set escalation_policy = p.id from escalation_policies p"
            " where services.uid = %(service)s and p.uid = %(policy)s",
            service=service,
            policy=policy,
        )
    assert "Paged shop, service" in await seen(api, pick)


async def test_the_list_of_incidents_marks_an_unrouted_alert(api: Api) -> None:
    await send_alerts(api, payload(alert()))
    assert "unrouted" in await seen(api, f"/projects/{api.project}/incidents")


async def test_the_form_of_an_incident_names_a_policy(api: Api) -> None:
    policy = await api.new_policy()
    fields = {
        "act": "open",
        "about": "components",
        "title": "It burns",
        "impact": "major",
        "status": "investigating",
        "policy": str(policy),
    }
    path = f"/projects/{api.project}/incidents/new"
    assert (await send(api, path, **fields)).status_code == 303
    rows = await api.rows(
        "select p.uid from incidents i"
        " join escalation_policies p on p.org = i.org and p.id = i.escalation_policy"
    )
    assert rows == [(policy,)]
