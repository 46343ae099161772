"""The alert routes of a project in the settings: form, test on a sample, and the list."""

from typing import Any
from urllib.parse import urlencode

from tests.support.app.cast import Api

from .test_alertmanager_api import alert, payload
from .test_alertmanager_api import send as send_alerts
from .test_incidents_screen import seen, send


def path_of(api: Api) -> str:
    return f"/projects/{api.project}/alert-routes"


async def submit(api: Api, act: str, *lines: tuple[str, str], **given: str) -> Any:
    fields = [("act", act), *given.items()]
    fields += [pair for one in lines for pair in zip(("matchers", "target"), one, strict=True)]
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data = urlencode(fields).encode()
    return await api.ask("editor", "POST", path_of(api), data=data, headers=headers)


async def test_an_editor_tests_saves_and_sees_the_routes(api: Api) -> None:
    policy = await api.new_policy()
    path = path_of(api)
    assert "No alert routes" in await seen(api, path)
    target = f"policy:{policy}"
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
    policy = await api.new_policy()
    lines = [("", ""), ("team", f"policy:{policy}")]
    answer = await submit(api, "save", *lines, sample="kept")
    text = await answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert "Route 2: Matchers has no name=" in text
    assert 'value="kept"' in text
    answer = await submit(api, "save", ("team=shop", ""))
    assert "Route 1: Recipient give one of" in await answer.get_data(as_text=True)
    answer = await submit(api, "test", sample='team!="x"')
    assert "Sample must have the operator = only." in await answer.get_data(as_text=True)


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
