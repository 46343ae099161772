"""The screen of the bundle of a project shows the plan of a text before its application."""

from typing import Any
from urllib.parse import urlencode

from tests.bundles.test_bundles_api import WEB, bundle
from tests.support.app.cast import Api
from tests.support.app.serving import told

HEAD = "format: 1\norganization: acme\nproject: shop\nmonitors:\n"
TYPED = HEAD + "  web: {name: Web, type: http, target: 'https://shop.example.org/', tags: [<b>]}\n"


async def send(api: Api, who: str = "project_admin", **form: str) -> tuple[int, str]:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/projects/{api.project}/bundle"
    answer = await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=headers)
    return answer.status_code, await answer.get_data(as_text=True)


async def seen(api: Api, path: str, who: str = "project_admin") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


async def listed(api: Api) -> list[Any]:
    found: list[Any] = await told(api, "GET", f"/projects/{api.project}/monitors", who="viewer")
    return found


async def test_a_plan_is_shown_and_then_applied(api: Api) -> None:
    await api.new_monitor(slug="web", name="Old", target="http://old/")
    status, page = await send(api, act="plan", bundle=TYPED.replace("\n", "\r\n"))
    assert status == 200
    assert "If applied: 1 changed." in page
    for text in ("<del>Old</del>", "<ins>Web</ins>", "<ins>[&#34;&lt;b&gt;&#34;]</ins>"):
        assert text in page
    assert (await listed(api))[0]["name"] == "Old"
    assert 'value="apply"' in page
    status, page = await send(api, act="apply", bundle=TYPED)
    assert status == 200
    assert "Applied: 1 changed." in page
    assert (await listed(api))[0]["name"] == "Web"
    # The current bundle is now the applied text.
    assert "Current bundle" in page
    status, page = await send(api, act="plan", bundle=TYPED)
    assert "If applied: no changes." in page
    assert 'value="apply"' not in page


async def test_an_error_is_shown_with_its_line_and_the_text_kept(api: Api) -> None:
    for typed, said in (
        (TYPED + "  web: {}\n", "Line 6, column 3: &#39;web&#39; is given twice."),
        (TYPED.replace("Web,", "Web, colour: red,"), "Line 5, column 20: monitors.web.colour: "),
        (TYPED.replace("shop\n", "mill\n", 1), "Line 3, column 1: project: is another than"),
    ):
        status, page = await send(api, act="plan", bundle=typed)
        assert status == 400
        assert said in page
        assert "colour" in page or "colour" not in typed
        assert "Your input" in page
    assert await listed(api) == []


async def test_an_editor_reads_it_and_a_viewer_does_not(api: Api) -> None:
    path = f"/projects/{api.project}/bundle"
    page = await seen(api, path, "editor")
    assert "readonly" in page
    assert 'value="plan"' not in page
    assert (await send(api, "editor", act="plan", bundle=TYPED))[0] == 403
    assert (await api.ask("viewer", "GET", path)).status_code == 403


async def test_pages_of_managed_objects_show_the_bundle(api: Api) -> None:
    document = bundle({"web": WEB}, {"shop": {"monitors": ["web"], "sli": ["web"]}})
    apply = f"/projects/{api.project}/bundle/apply"
    await told(api, "POST", apply, document, who="project_admin")
    path = f"/monitors/{(await listed(api))[0]['id']}"
    services = await told(api, "GET", f"/projects/{api.project}/services", who="viewer")
    service = f"/services/{services[0]['service']['id']}"
    for one in (path, service):
        page = await seen(api, one)
        assert "Managed by a bundle as" in page
        for link in ("/edit", "/delete", "/declaration", "/alerting"):
            assert f'href="{one}{link}"' not in page
    await told(api, "POST", apply, bundle({}), who="project_admin")
    for one in (path, service):
        page = await seen(api, one)
        assert "no longer in" in page
        assert f'href="{one}/delete"' in page
