"""The first hour of a user in a real browser, against a target that really stops."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.app.browser import make_monitor, status_of
from tests.support.app.fixtures import Open, Target
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.needs("chromium")]


def row_of(page, name: str):
    return page.locator("tr[data-live]").filter(has_text=name)


# The browser then posts the same form, whose reading the rule tests cover.
WITHOUT_SCRIPTS = pytest.param(False, marks=pytest.mark.soak)


def test_the_first_monitor_goes_up_then_down_live_with_the_reason(
    open_page: Open, leadline: Daemon, target: Target
) -> None:
    page = open_page("/", cookie="")
    expect(page).to_have_url(re.compile("/sign-in"))
    page.get_by_label("E-mail").fill("admin@localhost")
    page.get_by_label("Password", exact=True).fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("E-mail or password is wrong.")
    expect(page.get_by_label("E-mail")).to_have_value("admin@localhost")
    page.get_by_label("Password", exact=True).fill(leadline.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("No monitors yet")

    page.get_by_label("Address").fill("ftp://example.com")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("alert")).to_contain_text("must begin with")
    expect(page.get_by_label("Address")).to_have_value("ftp://example.com")
    page.get_by_label("Address").fill(target.url)
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("127.0.0.1 is up")

    # Sets an interval that is short enough for the test, with the form.
    page.get_by_role("link", name="Edit").first.click()
    page.get_by_label("Interval", exact=True).fill("5")
    page.get_by_label("Timeout").fill("2")
    page.get_by_label("Name", exact=True).fill("Corner <shop>")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Corner <shop> is up")

    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The monitor is up")
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    page.evaluate("window.unreloaded = true")
    target.stop()
    row = row_of(page, "Corner <shop>")
    expect(row.get_by_role("img", name="down", exact=True)).to_be_visible()
    expect(row).to_contain_text("connect refused")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 monitor is down")
    expect(page).to_have_title(re.compile("1 down"))
    assert page.evaluate("window.unreloaded") is True

    page.locator("#attention").get_by_role("link", name="Corner <shop>", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Corner <shop> is down")
    expect(page.locator("#lede")).to_contain_text("The host refused the connection")
    expect(page.locator("#check")).to_contain_text("Failed in connect")
    expect(page.locator("#failures")).to_contain_text("connect_refused")
    page.evaluate("window.unreloaded = true")
    target.start()
    expect(page.get_by_role("heading", level=1)).to_have_text("Corner <shop> is up")
    assert page.evaluate("window.unreloaded") is True


def test_pause_resume_check_now_and_delete(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    monitor = make_monitor(leadline, project, target.url, name="Doomed", interval_seconds=3600)
    page = open_page(f"/monitors/{monitor}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Doomed is paused")
    assert leadline.api("GET", f"/monitors/{monitor}")["enabled"] is False
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("paused")
    expect(page.get_by_role("heading", level=1)).to_have_text("Doomed is up")
    before = len(leadline.api("GET", f"/monitors/{monitor}/heartbeats"))
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_role("status").first).to_contain_text(re.compile("[Cc]heck"))
    expect(page.locator("#lede")).to_contain_text("up")
    page.wait_for_function(
        "before => fetch(`/api/v1/monitors/${location.pathname.split('/')[2]}/heartbeats`)"
        ".then(a => a.json()).then(beats => beats.length > before)",
        arg=before,
    )
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Delete monitor").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Doomed is up")
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Delete monitor").click()
    delete = page.get_by_role("button", name="Delete monitor")
    expect(delete).to_be_disabled()
    page.get_by_label("to confirm").fill("Doomed")
    delete.click()
    expect(page).to_have_url(re.compile(f"/projects/{project}/monitors$"))
    assert status_of(page, f"/monitors/{monitor}") == 404


def ids_of(leadline: Daemon, project: str) -> list[str]:
    """Returns the ids of the monitors. Their states can change during the test."""
    return [str(m["id"]) for m in leadline.api("GET", f"/projects/{project}/monitors")]


def test_a_test_shows_its_phases_and_stores_nothing(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    before = ids_of(leadline, project)
    page = open_page(f"/projects/{project}/monitors/new")
    page.get_by_label("Address").fill(target.url)
    page.get_by_label("Name", exact=True).fill("Tried")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("#trial")).to_contain_text("Responded with 200")
    expect(page.locator("#trial svg[role=img]")).to_have_attribute(
        "aria-label", re.compile("connect")
    )
    page.get_by_label("Interval", exact=True).fill("soon")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_label("Interval", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_contain_text("Fix 1 error below")
    page.get_by_label("Interval", exact=True).fill("30")
    target.stop()
    page.get_by_role("button", name="Test", exact=True).click()
    # A corrected field is no longer marked as invalid.
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("#trial")).to_contain_text("connect_refused 127.0.0.1")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Tried")
    assert ids_of(leadline, project) == before


def test_a_typed_password_is_used_by_the_test_and_kept_for_saving(
    open_page: Open, project: str, target: Target
) -> None:
    page = open_page(f"/projects/{project}/monitors/new")
    page.get_by_label("Address").fill(target.url)
    page.get_by_label("Name", exact=True).fill("With a password")
    page.get_by_text("http settings").click()
    page.get_by_label("Auth mode").select_option("basic")
    page.get_by_label("Username", exact=True).fill("u")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Password", exact=True).fill("typed")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("#trial")).to_contain_text("Responded with 200")
    expect(page.get_by_label("Password", exact=True)).to_have_value("typed")


def test_all_errors_are_shown_at_their_fields_and_input_is_kept(
    open_page: Open, project: str
) -> None:
    page = open_page(f"/projects/{project}/monitors/new")
    page.get_by_label("Address").fill("https://user:secret@example.com/")
    page.get_by_label("Name", exact=True).fill("Kept as it was typed")
    page.get_by_label("Interval", exact=True).fill("soon")
    page.get_by_label("Timeout").fill("900")
    page.get_by_role("button", name="Text", exact=True).click()
    page.get_by_label("Conditions").fill("[STATUS] == 200\n[RESULT] == 1")
    page.get_by_role("button", name="Add monitor").click()
    for field, words in [
        ("Address", "must not carry a user name"),
        ("Interval", "whole number"),
        ("Timeout", "1 to 300"),
        ("Conditions", "never known for http"),
    ]:
        control = page.get_by_label(field, exact=True)
        expect(control).to_have_attribute("aria-invalid", "true")
        error = (control.get_attribute("aria-describedby") or "").split()[0]
        expect(page.locator(f"#{error}")).to_contain_text(words)
    expect(page.get_by_label("Name", exact=True)).to_have_value("Kept as it was typed")
    expect(page.get_by_label("Interval", exact=True)).to_have_value("soon")
    expect(page.get_by_label("Conditions")).to_have_value("[STATUS] == 200\n[RESULT] == 1")


@pytest.mark.parametrize("scripts", [True, WITHOUT_SCRIPTS])
def test_changing_the_type_shows_its_fields_and_keeps_input(
    open_page: Open, leadline: Daemon, project: str, scripts: bool
) -> None:
    page = open_page(f"/projects/{project}/monitors/new", scripts=scripts)
    name = f"Reports in {scripts}"
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("radio", name=re.compile("^Push")).check(force=True)
    if not scripts:
        page.get_by_role("button", name="Change type").click()
    expect(page.get_by_label("Grace")).to_have_value("60")
    expect(page.get_by_label("Address")).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    page.get_by_label("Grace").fill("7")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name} is pending")
    expect(page.locator("main")).to_contain_text("curl -fsS -X POST")
    (made,) = [m for m in leadline.api("GET", f"/projects/{project}/monitors") if m["name"] == name]
    assert made["grace_seconds"] == 7


def test_a_stored_secret_is_never_shown_and_a_blank_field_keeps_it(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    monitor = make_monitor(
        leadline,
        project,
        "http://127.0.0.1:1/",
        name="Guarded",
        config={"auth_mode": "basic", "username": "u", "password": "the-secret-word"},
    )
    page = open_page(f"/monitors/{monitor}/edit")
    assert "the-secret-word" not in page.content()
    expect(page.get_by_label("Password", exact=True)).to_have_value("")
    expect(page.get_by_label("Password", exact=True)).to_have_attribute(
        "placeholder", re.compile("Stored")
    )
    page.get_by_label("Username", exact=True).fill("other")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Guarded")
    config = leadline.api("GET", f"/monitors/{monitor}")["config"]
    assert config == {"auth_mode": "basic", "username": "other", "password": ""}


def test_a_viewer_sees_no_write_buttons_and_no_push_url(
    open_page: Open, leadline: Daemon, project: str, viewer: str, target: Target
) -> None:
    shop = make_monitor(leadline, project, target.url, name="Seen")
    job = make_monitor(leadline, project, "", name="Job", type="push", config={})
    page = open_page(f"/projects/{project}", cookie=viewer)
    expect(page.get_by_role("link", name="Seen").last).to_be_visible()
    expect(page.get_by_role("link", name="Add monitor")).to_have_count(0)
    for monitor in (shop, job):
        page.goto(f"/monitors/{monitor}")
        for word in ("Pause", "Check now", "Regenerate URL"):
            expect(page.get_by_role("button", name=word)).to_have_count(0)
        for word in ("Edit", "Delete monitor"):
            expect(page.get_by_role("link", name=word)).to_have_count(0)
        assert "leadline_push_" not in page.content()
        assert status_of(page, f"/monitors/{monitor}/edit") == 403
        assert status_of(page, f"/monitors/{monitor}/delete") == 403
    assert status_of(page, f"/projects/{project}/monitors/new") == 403
    status = page.evaluate(
        "path => fetch(path, {method: 'POST', body: new URLSearchParams('act=pause')})"
        ".then(answer => answer.status)",
        f"/monitors/{shop}",
    )
    assert status == 403
    assert leadline.api("GET", f"/monitors/{shop}")["enabled"] is True


def test_the_page_shows_when_live_updates_are_lost_and_restored(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    make_monitor(leadline, project, target.url, name="Seen offline")
    page = open_page(f"/projects/{project}?q=offline")
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    page.context.set_offline(True)
    banner = page.locator("#stream")
    expect(banner).to_contain_text(re.compile(r"Live updates lost \d+.s ago\."))
    expect(banner).to_contain_text(re.compile(r"The data shown is from \d\d:\d\d:\d\d UTC"))
    expect(page.locator("[data-stream]")).not_to_contain_text("Live")
    page.context.set_offline(False)
    banner.get_by_role("button", name="Reconnect now").click()
    expect(banner).to_contain_text("Live updates restored")
    expect(page.locator("[data-stream]")).to_contain_text("Live")


def test_changes_of_the_list_are_reported_without_moving_rows(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    doomed = make_monitor(leadline, project, target.url, name="Deleted elsewhere")
    overview = open_page(f"/projects/{project}?q=elsewhere")
    page = open_page(f"/monitors/{doomed}")
    for one in (overview, page):
        expect(one.locator("[data-stream]")).to_contain_text("Live")
    row_of(overview, "Deleted elsewhere").hover()
    before = row_of(overview, "Deleted elsewhere").bounding_box()
    leadline.api("DELETE", f"/monitors/{doomed}")
    make_monitor(leadline, project, target.url, name="Added elsewhere", tags=["A"])
    for one in (overview, page):
        # A page that the browser restores from its cache asks at once.
        one.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(overview.locator("#stream")).to_contain_text("The list has changed")
    expect(overview.locator("tr.gone")).to_have_text(re.compile("Deleted elsewhere"))
    assert row_of(overview, "Deleted elsewhere").bounding_box() == before
    expect(page.locator("#stream")).to_contain_text("It was deleted")
    expect(page.locator("[data-stream]")).not_to_contain_text("Live")
    overview.get_by_role("link", name="Reload list").click()
    expect(row_of(overview, "Added elsewhere")).to_be_visible()
    expect(row_of(overview, "Deleted elsewhere")).to_have_count(0)


def test_a_full_reload_survives_a_change_that_arrives_during_it(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    known = make_monitor(leadline, project, target.url, name="There before")
    page = open_page("about:blank")
    page.add_init_script(
        "window.EventSource = class extends EventTarget {"
        " static OPEN = 1; readyState = 1; constructor() { super(); window.stream = this; }"
        " close() {} tell(name, data) {"
        " this.dispatchEvent(new MessageEvent(name, {data: JSON.stringify(data)})); } };"
    )
    page.goto(f"{leadline.url}/projects/{project}?q=before")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        held.append(route)

    page.route("**/rows?*", hold)
    change = {"project_id": project, "monitor_id": known, "status": "up"}
    with page.expect_request("**/rows?*"):
        page.evaluate("change => stream.tell('status', change)", change)
    make_monitor(leadline, project, target.url, name="Made before long")
    page.evaluate("change => stream.tell('status', change)", change)
    held[0].continue_()
    expect(page.locator("#stream")).to_contain_text("The list has changed")


def test_a_list_without_a_stream_stays_live_and_a_hidden_one_does_not_ask(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    """The stream of a process without workers tells nothing."""
    monitor = make_monitor(leadline, project, target.url, name="Told by nobody")
    page = open_page("about:blank")
    page.add_init_script(
        "window.EventSource = class extends EventTarget {"
        " static OPEN = 1; static CLOSED = 2; readyState = 1; close() {} };"
        "window.show = shown => { Object.defineProperty(document, 'hidden',"
        " {value: !shown, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); };"
    )
    page.goto(f"{leadline.url}/projects/{project}?q=nobody")
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    leadline.api("PATCH", f"/monitors/{monitor}", {"enabled": False})
    expect(
        row_of(page, "Told by nobody").get_by_role("img", name="paused", exact=True)
    ).to_be_visible()
    page.evaluate("show(false)")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(4_000)
    assert asked == []
    with page.expect_request("**/rows?*"):
        page.evaluate("show(true)")


def test_a_row_that_left_the_filter_is_not_struck_through(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    monitor = make_monitor(leadline, project, target.url, name="Leaves the filter")
    page = open_page(f"/projects/{project}?q=leaves+the")
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    leadline.api("PATCH", f"/monitors/{monitor}", {"name": "Went elsewhere"})
    expect(page.locator("#stream")).to_contain_text("The list has changed")
    expect(row_of(page, "Went elsewhere")).to_be_visible()
    expect(page.locator("tr.gone")).to_have_count(0)


def test_a_signed_out_page_is_no_longer_live(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    make_monitor(leadline, project, target.url, name="Watched by nobody")
    mine = leadline.cookie
    leadline.sign_in()
    other, leadline.cookie = leadline.cookie, mine
    page = open_page(f"/projects/{project}", cookie=other)
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    leadline.cookie = other
    _sign_out(leadline)
    leadline.cookie = mine
    expect(page.locator("#stream")).to_contain_text("You are signed out")
    expect(page.locator("[data-stream]")).not_to_contain_text("Live")


def test_the_answer_of_another_screen_changes_no_row(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    """So is that of an account which owes a second factor since the page was opened."""
    make_monitor(leadline, project, target.url, name="Not deleted")
    page = open_page(f"/projects/{project}")
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    page.route(
        "**/rows?*", lambda route: route.fulfill(status=303, headers={"Location": "/profile"})
    )
    expect(page.locator("#stream")).to_contain_text("Live updates lost")
    expect(page.locator("[data-stream]")).not_to_contain_text("Live")
    expect(page.locator("tr.gone")).to_have_count(0)


def _sign_out(leadline: Daemon) -> None:
    (current,) = [s for s in leadline.api("GET", "/me/sessions") if s["current"]]
    leadline.api("DELETE", f"/me/sessions/{current['id']}")


def test_forms_work_over_plain_http_without_sec_fetch_site(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    """Without a secure origin the browser sends no Sec-Fetch-Site: the server has only Origin."""
    monitor = make_monitor(leadline, project, target.url, name="In the cellar")
    page = open_page("about:blank", cookie="")
    url = f"http://cellar.test:{leadline.port}"
    name, _, value = leadline.cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": url}])
    seen: list[dict[str, str]] = []
    page.on("request", lambda r: seen.append(r.all_headers()) if r.method == "POST" else None)
    page.goto(f"{url}/monitors/{monitor}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("In the cellar is paused")
    assert "sec-fetch-site" not in seen[0]


def _focused_link(page: Page) -> str:
    return str(page.evaluate("document.activeElement.href || ''"))


def test_keyboard_navigation(open_page: Open, leadline: Daemon, target: Target) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "keys", "name": "Keys"}
    there = f"/organizations/{organization['id']}/projects"
    project = str(leadline.api("POST", there, body)["id"])
    # The monitors are checked once: a later change could move a row.
    once = {"interval_seconds": 3_600}
    monitor = make_monitor(leadline, project, target.url, name="Reached by keys", **once)
    make_monitor(leadline, project, target.url, name="Second row", **once)
    page = open_page(f"/monitors/{monitor}")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page).to_have_url(re.compile(f"/projects/{project}"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    rows = page.locator("tr[data-live]")
    expect(rows.get_by_role("img", name="up", exact=True)).to_have_count(2)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    first = _focused_link(page)
    page.keyboard.press("j")
    second = _focused_link(page)
    page.keyboard.press("k")
    assert first
    assert second not in ("", first)
    assert _focused_link(page) == first
    page.keyboard.press("/")
    page.keyboard.type("reached by")
    palette = page.get_by_role("dialog", name="Search, or go to a page")
    expect(palette.get_by_role("link")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("link")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Reached by keys")


@pytest.mark.parametrize("scripts", [True, False])
def test_enter_in_a_field_of_a_bulk_action_never_pauses(
    open_page: Open, leadline: Daemon, project: str, target: Target, scripts: bool
) -> None:
    name = f"Selected {scripts}"
    monitor = make_monitor(leadline, project, target.url, name=name, interval_seconds=86_400)
    page = open_page(f"/projects/{project}/monitors?q={name}", scripts=scripts)
    page.get_by_label(f"Select {name}").check()
    page.locator("#bulk details.menu > summary").click()
    page.get_by_label("Tag", exact=True).fill("edge")
    page.get_by_label("Tag", exact=True).press("Enter")
    if scripts:
        expect(page.get_by_role("status").get_by_text("1 monitor tagged.")).to_be_visible()
    found = leadline.api("GET", f"/monitors/{monitor}")
    assert found["enabled"]
    assert found["tags"] == (["edge"] if scripts else [])


def test_sign_out_leads_to_the_sign_in_and_foreign_next_is_ignored(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    page = open_page("/sign-in?next=https://elsewhere.test/", cookie="")
    page.get_by_label("E-mail").fill("admin@localhost")
    page.get_by_label("Password", exact=True).fill(leadline.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{leadline.url}/projects/{project}")
    page.locator("details.me summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in"))


def test_the_crosshair_and_the_zoom_of_the_latency_plot_work_by_keyboard(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    monitor = make_monitor(leadline, project, target.url, name="Zoomed", interval_seconds=5)
    page = open_page(f"/monitors/{monitor}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Zoomed is up")
    page.reload()
    plot = page.get_by_role("group", name="Latency plot")
    plot.focus()
    page.keyboard.press("Home")
    tip = page.locator("#lat-tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(" to ")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator("#lat-sel")).to_contain_text("Selected")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"from=.*&to=.*#latency$"))
    page.get_by_role("link", name="Clear the range").click()
    expect(page).to_have_url(re.compile(f"/monitors/{monitor}#latency$"))


def test_a_monitor_is_copied_as_text_and_into_the_form(
    open_page: Open, leadline: Daemon, project: str, target: Target
) -> None:
    monitor = make_monitor(leadline, project, target.url, name="Source", interval_seconds=70)
    page = open_page(f"/monitors/{monitor}")
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Copy as bundle YAML").click()
    expect(page.locator("pre")).to_contain_text("name: Source")
    expect(page.locator("pre")).to_contain_text("interval_seconds: 70")
    page.get_by_role("link", name="curl").click()
    expect(page.locator("pre")).to_contain_text('"interval_seconds": 70')
    page.go_back()
    page.go_back()
    page.get_by_label("More actions").click()
    page.get_by_role("link", name="Duplicate").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Source (copy)")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Source (copy)")


@pytest.mark.parametrize("scripts", [True, WITHOUT_SCRIPTS])
def test_conditions_are_edited_as_rows_and_as_text(
    open_page: Open, leadline: Daemon, project: str, target: Target, scripts: bool
) -> None:
    page = open_page(f"/projects/{project}/monitors/new", scripts=scripts)
    name = f"Rows {scripts}"
    page.get_by_label("Address").fill(target.url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Field of condition 1").fill("[STATUS]")
    page.get_by_label("Value of condition 1").fill("200")
    page.get_by_role("button", name="Add condition").click()
    page.get_by_label("Field of condition 2").fill("[CONNECTED]")
    page.get_by_label("Value of condition 2").fill("true")
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.get_by_label("Conditions")).to_have_value("[STATUS] == 200\n[CONNECTED] == true")
    page.get_by_role("button", name="Rows", exact=True).click()
    page.get_by_role("button", name="Remove condition 2").click()
    expect(page.get_by_label("Field of condition 2")).to_have_count(0)
    page.get_by_label("Operator of condition 1").select_option("is at most")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    (made,) = [m for m in leadline.api("GET", f"/projects/{project}/monitors") if m["name"] == name]
    assert made["conditions"] == ["[STATUS] <= 200"]


def test_a_type_is_found_by_its_words(open_page: Open, project: str) -> None:
    page = open_page(f"/projects/{project}/monitors/new")
    page.get_by_label("Find a type").fill("amqp")
    expect(page.locator(".kinds label:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name=re.compile("^RabbitMQ"))).to_be_checked()


@pytest.mark.soak
@pytest.mark.parametrize("scripts", [True, False])
def test_an_action_on_many_monitors_goes_on_without_its_screen(
    leadline: Daemon, open_page: Open, scripts: bool
) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    name = f"many-{scripts}".lower()
    made = leadline.api(
        "POST", f"/organizations/{organization['id']}/projects", {"slug": name, "name": name}
    )
    monitors = {
        f"job-{n}": {"name": f"Job {n}", "type": "push", "interval_seconds": 3600}
        for n in range(120)
    }
    bundle = {"format": 1, "organization": organization["slug"], "project": name}
    path = f"/projects/{made['id']}/monitors"
    leadline.api("POST", f"/projects/{made['id']}/bundle/apply", {**bundle, "monitors": monitors})
    leadline.api("POST", f"/projects/{made['id']}/bundle/release")
    page = open_page(path, scripts=scripts)
    page.get_by_label("Select Job 0", exact=True).check()
    page.get_by_label("All 120").check()
    page.get_by_role("button", name="Pause").click()
    # The screen of the progress loads the list when the action has ended.
    expect(page.locator(".toast")).to_contain_text("120 monitors paused.")
    page.get_by_role("button", name="Undo").click()
    page.goto("about:blank")
    running = [True]
    while running:
        found = leadline.api("GET", path)
        running = [one for one in found if not one["enabled"]]
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("paused")
