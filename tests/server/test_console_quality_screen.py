"""Every screen in both color schemes, at desktop and phone width: axe finds no violation, nothing
overflows, and the size is bounded.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import axe_core_python
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.app.browser import DESK, PHONE, make_monitor
from tests.support.app.fixtures import Open, Target
from tests.support.processes.daemon_process import Daemon

pytestmark = [pytest.mark.needs("chromium")]

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
PAGE_BYTES_MOST = 100_000
PAGES = [
    "/sign-in",
    "/projects/{project}",
    "/projects/{project}?q=nothing-is-called-so",
    "/monitors/{good}",
    "/monitors/{bad}",
    "/monitors/{push}",
    "/monitors/{paused}",
    "/monitors/{bad}/edit",
    "/monitors/{bad}/delete",
    "/monitors/{bad}/successor",
    "/projects/{project}/channels",
    "/projects/{project}/bundle",
    "/organizations/{organization}/people",
    "/organizations/{organization}/audit",
    "/admin/audit",
    "/admin/people",
    "/projects/{project}/on-call",
    "/projects/{project}/on-call?schedule={hourly}",
    "/oncall-schedules/{hourly}/edit",
    "/projects/{project}/oncall-schedules/new",
    "/projects/{project}/escalation-policies/new",
    "/escalation-policies/{ladder}/edit",
    "/projects/{project}/incidents",
    "/incidents/{open}",
    "/incidents/{over}",
    "/incidents/{after}",
    "/projects/{project}/services",
    "/projects/{project}/services/new",
    "/services/{service}",
    "/services/{service}?window=7d&range=30d",
    "/services/{undeclared}",
    "/services/{service}/declaration",
    "/services/{service}/dependencies",
    "/services/{service}/objective",
    "/services/{service}/alerting",
    "/services/{service}/delete",
    "/services/{service}/changes",
    "/services/{service}/changes?range=7d&kind=flag",
    "/services/{undeclared}/changes",
    "/services/{service}/changes/{change}",
    "/services/{service}/changes/{change}?horizon=15m",
    "/services/{service}/gate",
    "/services/{undeclared}/gate",
    "/services/{service}/gate/policy",
    "/projects/{project}/gate",
    "/projects/{project}/gate?state=ALLOW",
    "/projects/{project}/gate/policy",
    "/projects/{project}/gate/decisions/{decision}",
    "/projects/{project}/sla",
    "/projects/{project}/sla?show=monitors",
    "/projects/{project}/maintenance",
    "/projects/{project}/monitors/new",
    "/projects/{project}/monitors/new?type=tcp",
    "/projects/{project}/monitors/new?type=push",
    "/projects/{project}/status-pages",
    "/projects/{project}/status-pages/new",
    "/projects/{project}/status-pages/{page}",
    "/projects/{project}/status-pages/{page}?find=&edit={part}",
    "/projects/{project}/status-pages/{page}/delete",
    "/projects/{project}/status-pages/{page}/preview",
    "/projects/{project}/status-pages/{page}/subscribers",
    "/profile",
    "/admin/branding",
    "/admin/monitor-defaults",
    "/admin/silence",
    "/admin/sign-in-policy",
    "/admin/single-sign-on",
    "/admin/mail",
    "/admin/fleet",
    "/status/quality",
    "/status/quality/history",
    "/status/quality/subscribe",
    f"/status/unsubscribe/leadline_subscription_{'0' * 43}",
    "/monitors/01a20031-f412-7194-981b-2db4350507bf",
]


@pytest.fixture(scope="module")
def places(leadline: Daemon, project: str) -> Iterator[dict[str, str]]:
    server = Target()
    server.start()
    for kind, config in (
        ("ntfy", {"topic": "ops", "token": "tk"}),
        ("email", {"to": "somebody-with-a-long-name@a-company-with-a-long-name.example.com"}),
    ):
        channel = {"type": kind, "name": f"Operators by {kind}", "config": config}
        leadline.api("POST", f"/projects/{project}/notification-channels", channel)
    people = [
        leadline.api("POST", f"/projects/{project}/notification-channels", channel)["id"]
        for channel in (
            {"type": "ntfy", "name": name, "config": {"topic": "ops"}}
            for name in ("Mara Lind", "Somebody-whose-name-has-no-place-to-break-and-is-very-long")
        )
    ]
    schedules = [
        leadline.api(
            "POST",
            f"/projects/{project}/oncall-schedules",
            {
                "name": f"By {seconds}",
                "shift_seconds": seconds,
                "anchor_at": "2026-01-05T08:00:00Z",
                "timezone": "Europe/Berlin",
                "participants": people,
            },
        )["id"]
        for seconds in (604_800, 3_600)
    ]
    for name in ("The attic", "Somewhere-whose-name-has-no-place-to-break-and-is-very-long"):
        made = leadline.api("POST", "/agent-tokens", {"name": name, "region": "core"})
    leadline.api("DELETE", f"/agent-tokens/{made['id']}")
    now = datetime.now(UTC).replace(microsecond=0)
    leadline.api(
        "POST",
        f"/oncall-schedules/{schedules[0]}/overrides",
        {
            "channel_id": people[1],
            "starts_at": (now - timedelta(hours=2)).isoformat(),
            "ends_at": (now + timedelta(hours=40)).isoformat(),
        },
    )
    ladder = leadline.api(
        "POST",
        f"/projects/{project}/escalation-policies",
        {
            "name": "Pages",
            "repeat_last": True,
            "steps": [
                {"after_seconds": 0, "targets": [{"type": "schedule", "id": schedules[0]}]},
                {"after_seconds": 300, "targets": [{"type": "channel", "id": people[1]}]},
            ],
        },
    )
    made = {
        "hourly": schedules[1],
        "ladder": ladder["id"],
        "project": project,
        "organization": leadline.api("GET", "/organizations")[0]["id"],
        "good": make_monitor(leadline, project, server.url, name="Good", tags=["Shop"]),
        "bad": make_monitor(
            leadline,
            project,
            "http://127.0.0.1:1/a/path/that/is/very/long/and/has/no/place/to/break/in/a/column",
            name="A name that is longer than any line of a telephone has room for, certainly",
            description="What it is for.",
        ),
        "push": make_monitor(leadline, project, "", name="Push", type="push"),
        "paused": make_monitor(leadline, project, server.url, name="Paused", enabled=False),
    }
    made.update(_services(leadline, project, made, ladder["id"]))
    words = "Longer than any line of a telephone, certainly-and-without-a-place-to-break-it-at-all"
    incidents = f"/projects/{project}/incidents"
    for name, status in (("open", "identified"), ("over", "resolved")):
        body = {"title": f"{name}: {words}", "status": status, "body": f"{words}\n{words}"}
        made[name] = leadline.api("POST", incidents, body)["id"]
        leadline.api("POST", f"/incidents/{made[name]}/updates", {"body": words})
    leadline.api("POST", f"/incidents/{made['open']}/acknowledge")
    leadline.api("PUT", f"/incidents/{made['over']}/postmortem", {"body": words})
    _published(leadline, project, made)
    yield made
    server.stop()


def _services(leadline: Daemon, project: str, made: dict[str, str], ladder: str) -> dict[str, str]:
    """Creates a service with a declaration, an objective and paging, and one without a declaration
    that it depends on.
    """
    there = f"/projects/{project}/services"
    long = "A service whose name is longer than any line of a telephone has room for"
    undeclared = leadline.api("POST", there, {"name": "Accounts", "slug": "accounts"})["id"]
    body = {
        "name": long,
        "slug": "long",
        "depends_on": [undeclared],
        "escalation_policy_id": ladder,
    }
    service = leadline.api("POST", there, body)["id"]
    members = [made[name] for name in ("good", "bad", "push", "paused")]
    declaration = {"expected_revision": 0, "monitors": members, "sli": members[:2]}
    leadline.api("PUT", f"{there}/{service}/declaration", declaration)
    for window in ("7d", "30d"):
        target = {"window": window, "objective": 99.9}
        leadline.api("PUT", f"{there}/{service}/sla-target", target)
    leadline.api("PATCH", f"{there}/{service}/alerting", {"owns_paging": True})
    now = datetime.now(UTC).replace(microsecond=0)
    for hours, monitor in ((30, None), (200, made["paused"])):
        planned = {
            "starts_at": (now + timedelta(hours=hours)).isoformat(),
            "ends_at": (now + timedelta(hours=hours + 20)).isoformat(),
            "reason": "A reason-that-is-longer-than-any-line-and-has-no-place-to-break-it-at-all",
        }
        if monitor is not None:
            planned["monitor_id"] = monitor
        leadline.api("POST", f"/projects/{project}/maintenance", planned)
    again = {
        "rrule": "FREQ=WEEKLY;INTERVAL=2",
        "starts_at": (now + timedelta(hours=60)).isoformat(),
        "duration_seconds": 3_600,
    }
    leadline.api("POST", f"/projects/{project}/maintenance-series", again)
    decision = _asked(leadline, there, service)
    return {
        "service": service,
        "undeclared": undeclared,
        "decision": decision,
        "change": _changed(leadline, f"{there}/{service}", decision),
        "after": _fallen(leadline, project, service),
    }


def _published(leadline: Daemon, project: str, made: dict[str, str]) -> None:
    """Creates a status page with each kind of component, uptime bars, incidents and maintenance."""
    organization = leadline.api("GET", "/organizations")[0]["id"]
    body = {"slug": "quality", "title": "A title-without-a-place-to-break-it-at-all-certainly"}
    page = leadline.api(
        "POST", f"/organizations/{organization}/status-pages", {**body, "project_id": project}
    )
    for n, (name, bound) in enumerate(
        (
            ("Good", {"monitor_id": made["good"]}),
            (
                "A part whose name is longer than any line of a telephone",
                {"monitor_id": made["bad"]},
            ),
            ("Paused", {"monitor_id": made["paused"]}),
            ("Service", {"service_id": made["service"]}),
            (
                "By-hand-and-without-a-place-to-break-it-at-all-certainly",
                {"manual_status": "degraded"},
            ),
        )
    ):
        component = {"name": name, "description": name, "group": f"Group {n // 2}", **bound}
        part = leadline.api("POST", f"/status-pages/{page['id']}/components", component)
    made.update(page=page["id"], part=part["id"])
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        connection.execute(
            "insert into monitor_days (org, monitor, day, good_us, bad_us, unknown_us, excluded_us,"
            " up, total) select m.org, m.id,"
            " date_trunc('day', now(), 'UTC') - n * interval '1 day',"
            " 86400000000 - n * 10000000, n * 5000000, n * 5000000, 0, 90, 100"
            " from monitors m, generate_series(1, 60) n where m.uid = %s",
            (made["good"],),
        )


def _asked(leadline: Daemon, there: str, service: str) -> str:
    """Creates a policy that blocks, and an override with a long reason."""
    clauses = {
        "budget_exhausted": "block",
        "budget_consumed": "warn",
        "page_burn_firing": "block",
        "ticket_burn_firing": "ignore",
        "service_incident_open": "block",
    }
    policy = {
        "expected_revision": None,
        "schema_version": 2,
        "window_mode": "all",
        "clauses": clauses,
        "budget_consumed_percent": 75,
        "max_seal_lag_seconds": 900,
        "unknown_behavior": "block",
    }
    leadline.api("PUT", f"{there}/{service}/gate/policy", policy)
    leadline.api("POST", f"{there}/{service}/gate")
    override = {
        "policy_revision": 1,
        "reason": "A reason-that-is-longer-than-any-line-and-has-no-place-to-break-it " * 4,
        "expires_at": (datetime.now(UTC) + timedelta(days=6)).isoformat(),
    }
    leadline.api("POST", f"{there}/{service}/gate/override", override)
    return str(leadline.api("POST", f"{there}/{service}/gate")["decision_id"])


def _changed(leadline: Daemon, service: str, decision: str) -> str:
    """Creates a dozen changes of each kind and end, with the longest texts."""
    now = datetime.now(UTC).replace(microsecond=0)
    first = ""
    for n in range(12):
        told = {
            "kind": ("deploy", "rollback", "flag")[n % 3],
            "source": "a-source-whose-name-is-long",
            "external_id": f"{n}-{'x' * 120}",
            "ref": f"{n}-{'r' * 120}",
            "url": f"https://ci.example.com/{'u' * 200}",
            "decision_id": decision,
        }
        began = now - timedelta(hours=1 + 40 * n)
        for phase, at in (
            ("started", began),
            (("succeeded", "failed", "cancelled", "")[n % 4], began + timedelta(minutes=20)),
        ):
            if phase:
                body = {**told, "phase": phase, "occurred_at": at.isoformat()}
                made = leadline.api("POST", f"{service}/changes", body)
                first = first or str(made["change"]["id"])
    return first


def _fallen(leadline: Daemon, project: str, service: str) -> str:
    """Creates an incident of a service that began after some of its changes."""
    body = {"title": "It is down-and-its-name-has-no-place-to-break-at-all", "impact": "major"}
    made = str(leadline.api("POST", f"/projects/{project}/incidents", body)["id"])
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        connection.execute(
            "update incidents set service = (select id from services where uid = %s) "
            "where uid = %s",
            (service, made),
        )
    return made


@pytest.fixture(scope="module")
def empty_project(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "empty", "name": "Empty"}
    made = leadline.api("POST", f"/organizations/{organization['id']}/projects", body)
    return str(made["id"])


def violations(page: Page, *rules: str) -> list[str]:
    """Returns the violations that axe finds: of all its rules, or of the given rules."""
    # The rules that are on by default do not need the stylesheets, which axe would load again.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{item['impact']} {item['id']}: {node['target']} {node['failureSummary']}"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical", "moderate")
        for node in item["nodes"]
    ]


def overflow(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return found


@pytest.fixture(scope="module")
def script_errors() -> list[str]:
    """Script errors of `audited_page`."""
    return []


@pytest.fixture(scope="module")
def audited_page(chromium: Browser, leadline: Daemon, script_errors: list[str]) -> Iterator[Page]:
    """One browser page for the file: a page in a new context costs more time than an audit."""
    context = chromium.new_context(base_url=leadline.url, bypass_csp=True)
    name, _, value = leadline.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": leadline.url}])
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.on("pageerror", lambda error: script_errors.append(str(error)))
    yield page
    context.close()


@pytest.fixture
def audited(audited_page: Page, script_errors: list[str]) -> Iterator[Page]:
    """Returns `audited_page`; the test fails if a script failed."""
    script_errors.clear()
    yield audited_page
    assert script_errors == []


def show(page: Page, path: str, scheme: Literal["light", "dark"]) -> None:
    """Loads the page at desktop width, and opens all its hidden parts."""
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme=scheme)
    page.goto(path)
    page.evaluate("document.querySelectorAll('details').forEach(found => { found.open = true; })")


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_no_violation_and_a_phone_shows_the_full_width(
    audited: Page, places: dict[str, str], path: str
) -> None:
    show(audited, path.format(**places), "light")
    assert violations(audited) == []
    audited.emulate_media(color_scheme="dark")
    assert violations(audited, "color-contrast") == []
    audited.set_viewport_size(PHONE)
    assert overflow(audited) <= 0
    assert len(audited.content().encode()) < PAGE_BYTES_MOST


@pytest.mark.soak
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_axe_rules_in_both_schemes_at_both_widths(
    audited: Page, places: dict[str, str], path: str, scheme: Literal["light", "dark"]
) -> None:
    show(audited, path.format(**places), scheme)
    assert violations(audited) == []
    audited.set_viewport_size(PHONE)
    assert overflow(audited) <= 0
    assert violations(audited) == []


def test_the_first_screen_and_a_form_with_errors_are_accessible(
    open_page: Open, empty_project: str
) -> None:
    page = open_page(f"/projects/{empty_project}", bypass_csp=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("No monitors yet")
    assert violations(page) == []
    page.get_by_label("Address").fill("gopher://x")
    page.get_by_role("button", name="Add monitor").click()
    assert violations(page) == []
    page.goto(f"/projects/{empty_project}/monitors/new")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("alert")).to_contain_text("errors below")
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0


def test_a_list_shows_a_hundred_rows_per_page(
    open_page: Open, leadline: Daemon, empty_project: str
) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "many", "name": "Many"}
    made = leadline.api("POST", f"/organizations/{organization['id']}/projects", body)
    for number in range(105):
        make_monitor(
            leadline,
            made["id"],
            "http://127.0.0.1:1/",
            name=f"Monitor number {number:03}",
            tags=[f"Group {number // 10:02}"],
            interval_seconds=3600,
        )
    page = open_page(f"/projects/{made['id']}")
    expect(page.locator("tr[data-live]")).to_have_count(100)
    assert len(page.content().encode()) < PAGE_BYTES_MOST
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tr[data-live]")).to_have_count(5)
    expect(page.get_by_role("table").get_by_role("link", name="Monitor number 104")).to_be_visible()
    page.goto(f"/projects/{made['id']}?q=number+042")
    expect(page.locator("tr[data-live]")).to_have_count(1)


def test_the_console_works_without_scripts(
    open_page: Open, leadline: Daemon, places: dict[str, str]
) -> None:
    page = open_page(f"/projects/{places['project']}", scripts=False)
    expect(page.get_by_role("link", name="Good").last).to_be_visible()
    # Without scripts the page is not updated, so it must not show "Live".
    expect(page.locator("[data-stream]")).to_contain_text("As of")
    page.goto(f"/monitors/{places['paused']}")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("is paused")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("is paused")


def test_an_update_does_not_move_the_row_below_the_pointer(
    open_page: Open, leadline: Daemon, project: str, places: dict[str, str]
) -> None:
    server = Target()
    server.start()
    make_monitor(leadline, project, server.url, name="Zebra", tags=["Zoo"])
    page = open_page(f"/projects/{project}")
    row = page.locator("tr[data-live]").filter(has_text="Zebra")
    expect(row.get_by_role("img", name="up", exact=True)).to_be_visible()
    expect(page.locator("[data-stream]")).to_contain_text("Live")
    row.hover()
    before = row.bounding_box()
    page.evaluate(
        """() => {
          window.tinted = 0;
          new MutationObserver(() => {
            window.tinted += document.querySelectorAll('tr.changed').length;
          }).observe(document.querySelector('main'), {attributes: true, subtree: true});
        }"""
    )
    server.stop()
    expect(row.get_by_role("img", name="down", exact=True)).to_be_visible()
    assert row.bounding_box() == before
    assert page.evaluate("window.tinted") > 0
    page.mouse.move(2, 2)
    expect(page.locator("#attention").get_by_role("link", name="Zebra")).to_be_visible()
