"""The shell: the project switcher, the remembered project and the theme."""

import pytest

from tests.support.app.cast import Api

from ..incidents.test_incidents_screen import send
from ..services.test_services_screen import seen


def switcher(page: str) -> str:
    return page.partition('class="menu switch"')[2].partition("</details>")[0]


def together(api: Api, who: str, cookie: str) -> dict[str, str]:
    """Headers with the session of one of the cast and another cookie."""
    return {"Cookie": f"{api.credentials[who]['Cookie']}; {cookie}"}


async def test_organizations_of_one_name_are_apart(api: Api) -> None:
    async with api.pool.transaction("rename") as tx:
        await tx.execute("update organizations set name = 'Twins'")
    page = switcher(await seen(api, f"/projects/{api.project}", who="global_admin"))
    assert page.count("<h3>Twins</h3>") == len(api.orgs)


async def test_the_switcher_states_that_there_are_more_projects(api: Api) -> None:
    path = f"/projects/{api.project}"
    assert "Search for more projects" not in await seen(api, path, who="org_admin")
    async with api.pool.transaction("projects") as tx:
        await tx.execute(
            "insert into projects (org, uid, slug, name, created_at, updated_at)"
            " select %(org)s, gen_random_uuid(), 'zz-' || n, 'P ' || n, now(), now()"
            " from generate_series(1, 200) n",
            org=api.orgs["acme"][0],
        )
    page = switcher(await seen(api, path, who="org_admin"))
    assert "Search for more projects" in page
    assert page.count('<a href="/projects/') == 200 + 1


async def test_a_screen_outside_projects_has_the_project_opened_last(api: Api) -> None:
    opened = await api.ask("global_admin", "GET", f"/projects/{api.project}")
    cookie = opened.headers["Set-Cookie"].partition(";")[0]
    assert cookie == f"leadline_project={api.project}"
    again = await api.ask(
        "global_admin", "GET", "/profile", headers=together(api, "global_admin", cookie)
    )
    page = switcher(await again.get_data(as_text=True))
    assert f'href="/projects/{api.project}" class="on"' in page


@pytest.mark.parametrize(
    ("given", "kept", "to"),
    [
        ({"theme": "dark", "next": "/profile"}, "dark", "/profile"),
        ({"theme": "purple", "next": "//evil.example/"}, "", "/"),
        ({"theme": "", "next": "https://evil.example/"}, "", "/"),
    ],
)
async def test_the_theme_is_stored_and_the_form_leads_back(
    api: Api, given: dict[str, str], kept: str, to: str
) -> None:
    answer = await send(api, "/preferences", **given)
    assert (answer.status_code, answer.headers["Location"]) == (303, to)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"leadline_theme={kept};")
    headers = together(api, "editor", cookie.partition(";")[0])
    page = await (await api.ask("editor", "GET", "/profile", headers=headers)).get_data(
        as_text=True
    )
    assert (' data-theme="dark" ' in page) == (kept == "dark")
