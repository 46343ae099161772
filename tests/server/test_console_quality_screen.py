"""Every screen in both color schemes, at desktop and phone width: axe finds no violation, nothing
overflows, and the size is bounded.
"""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import axe_core_python
import psycopg
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.app.browser import DESK, PHONE, TABLET, WIDE, make_monitor
from tests.support.app.fixtures import Open, Target
from tests.support.app.layout_audit import faint_texts, layout_faults
from tests.support.processes.daemon_process import Daemon
from tests.support.run.effort import IS_SOAK

pytestmark = [pytest.mark.needs("chromium")]

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
# Compressed, as it is sent.
PAGE_BYTES_MOST = 25_000
ZONE = {"time_zone": "America/Argentina/Buenos_Aires", "hour_clock": 12}
# What stays in UTC in every zone: counted days, and what the public sees.
OF_UTC = re.compile(
    r"Day, UTC|Days of availability and status pages stay in UTC|Default UTC with fixed"
    r"|>UTC</option>|label=.UTC.|by UTC"
    # Instants in texts of the API, such as targets of the audit log.
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
)
# Screens of no user, the preview of what the public sees, and screens of errors.
IN_FRAME = re.compile(
    r"/(admin|monitors|services|profile|organizations|incidents)\b|/projects/[^/]+/"
)
PUBLIC = re.compile(r"^/status/|^/sign-in|^/invitations/|/preview$|^/nowhere$|01a20031")
PAGES = [
    "/sign-in",
    "/projects/{project}",
    "/projects/{project}?q=nothing-is-called-so",
    "/projects/{large}",
    "/projects/{large}?show=region",
    "/projects/{project}/monitors",
    "/projects/{project}/monitors?status=down,up&sort=uptime",
    "/projects/{project}/monitors?q=nothing-is-called-so",
    "/monitors/{good}",
    "/monitors/{bad}",
    "/monitors/{push}",
    "/monitors/{paused}",
    "/monitors/{bad}?range=1h",
    "/monitors/{bad}?from=2026-01-01T00:00&to=2026-01-02T00:00",
    "/monitors/{bad}/copy",
    "/monitors/{bad}/copy?show=yaml",
    "/monitors/{bad}/edit",
    "/projects/{project}/monitors/new?clone={bad}",
    "/monitors/{bad}/delete",
    "/monitors/{bad}/successor",
    "/projects/{project}/channels",
    "/projects/{project}/channels?show=add",
    "/projects/{project}/channels?show=edit&uid={channel}",
    "/projects/{project}/channels?show=uses&uid={channel}",
    "/projects/{project}/channels?show=delete&uid={channel}",
    "/projects/{project}/secrets",
    "/admin/dead-letters",
    "/invitations/{link}",
    f"/invitations/leadline_invitation_{'0' * 43}",
    "/projects/{project}/bundle",
    "/projects/{project}/import",
    "/organizations/{organization}/people",
    "/organizations/{organization}/people?show=invite",
    "/organizations/{organization}/people?show=roles",
    "/organizations/{organization}/webhooks",
    "/organizations/{organization}/webhooks?show=new",
    "/organizations/{organization}/webhooks?show=delete&uid={webhook}",
    "/organizations/{organization}/tokens",
    "/organizations/{organization}/tokens?show=new",
    "/organizations/{organization}/tokens?show=edit&uid={token}",
    "/organizations/{organization}/tokens?show=edit&uid={rotated}",
    "/organizations/{organization}/tokens?show=rotate&uid={token}",
    "/organizations/{organization}/tokens?show=revoke&uid={token}",
    "/organizations/{organization}/audit",
    "/organizations/{organization}/audit?object=monitor&page=2",
    "/organizations/{organization}/audit?q=nothing-is-called-so&from=2026-01-01",
    "/admin/audit",
    "/admin/people",
    "/projects/{project}/on-call",
    "/projects/{project}/on-call?schedule={hourly}",
    "/oncall-schedules/{hourly}/edit",
    "/projects/{project}/oncall-schedules/new",
    "/projects/{project}/escalation-policies/new",
    "/escalation-policies/{ladder}/edit",
    "/projects/{project}/incidents",
    "/projects/{project}/incidents?q=nothing-is-called-so",
    "/projects/{project}/incidents/new",
    "/projects/{project}/incidents/new?template={template}",
    "/projects/{project}/alert-routes",
    "/projects/{project}/alert-routes?show=edit",
    "/projects/{project}/mutes",
    "/projects/{project}/mutes?show=add",
    "/projects/{project}/incident-templates",
    "/projects/{project}/incident-templates?show=add",
    "/projects/{project}/incident-templates?show=edit&uid={template}",
    "/projects/{project}/incident-templates?show=delete&uid={template}",
    "/incidents/{open}",
    "/incidents/{over}",
    "/incidents/{after}",
    "/projects/{project}/services",
    "/projects/{project}/services/new",
    "/services/{service}",
    "/services/{service}?window=7d&range=30d",
    "/services/{undeclared}",
    "/services/{service}/copy",
    "/services/{service}/copy?show=yaml",
    "/services/{service}/declaration",
    "/services/{service}/dependencies",
    "/services/{service}/objective",
    "/services/{service}/alerting",
    "/services/{service}/delete",
    "/projects/{project}/changes",
    "/projects/{project}/changes?kind=flag&q=no-such-change",
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
    "/projects/{project}/maintenance?show=plan",
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
    "/profile/contacts",
    "/profile/contacts?kind=mattermost",
    "/profile/contacts?delete={contact}",
    "/help",
    "/organizations/{organization}/projects",
    "/projects/{project}/settings",
    "/projects/{project}/settings/general",
    "/projects/{project}/settings/delete",
    "/projects/{managed}/settings/delete",
    "/projects/{project}/search?q=certainly",
    "/nowhere",
    "/admin/branding",
    "/admin/monitor-defaults",
    "/admin/organization-limits",
    "/admin/silence",
    "/admin/sign-in-policy",
    "/admin/single-sign-on",
    "/admin/group-roles",
    "/admin/mail",
    "/admin/gateway",
    "/admin/answer-buttons",
    "/admin/fleet",
    "/status/quality",
    "/status/quality/incidents/{open}",
    "/status/quality/history",
    "/status/quality/subscribe",
    f"/status/unsubscribe/leadline_subscription_{'0' * 43}",
    "/monitors/01a20031-f412-7194-981b-2db4350507bf",
]


@pytest.fixture(scope="module")
def places(leadline: Daemon, project: str) -> Iterator[dict[str, str]]:
    server = Target()
    server.start()
    # The widest times, so that every audit covers them.
    leadline.api("PUT", "/me/preferences", ZONE)
    for kind, config in (
        ("ntfy", {"topic": "ops", "token": "tk"}),
        ("email", {"to": "somebody-with-a-long-name@a-company-with-a-long-name.example.com"}),
    ):
        channel = {"type": kind, "name": f"Operators by {kind}", "config": config}
        leadline.api("POST", f"/projects/{project}/notification-channels", channel)
    for kind, config in (
        ("sms", {"to": "+4930123456"}),
        ("webhook", {"url": "https://a-host-with-a-long-name.example.com/" + "x" * 90}),
    ):
        method = {"kind": kind, "label": f"By {kind} at work", "config": config}
        contact = leadline.api("POST", "/me/contact-methods", method)["id"]
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
        "contact": contact,
        "channel": people[1],
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
    there = f"/organizations/{made['organization']}/tokens"
    for name in ("ci", "A token-whose-name-is-long-and-has-no-place-to-break-in-a-column-at-all"):
        token = leadline.api("POST", there, {"name": name, "role": "editor"})["api_token"]
        new = leadline.api("POST", f"/tokens/{token['id']}/rotate", {"overlap_seconds": 604_800})
    made.update(token=new["api_token"]["id"], rotated=token["id"])
    hooks = f"/organizations/{made['organization']}/webhooks"
    for url in ("https://hooks.example.com/leadline", f"https://hooks.example.com/{'long' * 30}"):
        made["webhook"] = leadline.api("POST", hooks, {"url": url})["id"]
    invited = {"email": "somebody-with-a-long-name@a-long-company.example.com", "role": "org_admin"}
    link = leadline.api("POST", f"/organizations/{made['organization']}/members", invited)
    made["link"] = link["accept_url"].rpartition("/")[2]
    made.update(_services(leadline, project, made, ladder["id"]))
    words = "Longer than any line of a telephone, certainly-and-without-a-place-to-break-it-at-all"
    for name in ("Slow", words):
        template = {"name": name, "title": words, "impact": "critical", "body": words}
        there = f"/projects/{project}/incident-templates"
        made["template"] = leadline.api("POST", there, template)["id"]
    route = {"matchers": f'team="{words}"', "escalation_policy_id": ladder["id"]}
    leadline.api("PUT", f"/projects/{project}/alert-routes", {"routes": [route]})
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    mute = {"reason": words, "ends_at": until, "matchers": f'tag="{words}"'}
    leadline.api("POST", f"/projects/{project}/mutes", mute)
    incidents = f"/projects/{project}/incidents"
    for name, status in (("open", "identified"), ("over", "resolved")):
        body = {"title": f"{name}: {words}", "status": status, "body": f"{words}\n{words}"}
        made[name] = leadline.api("POST", incidents, body)["id"]
        leadline.api("POST", f"/incidents/{made[name]}/updates", {"body": words})
    leadline.api("POST", f"/incidents/{made['open']}/acknowledge")
    leadline.api("PUT", f"/incidents/{made['over']}/postmortem", {"body": words})
    _published(leadline, project, made)
    made["large"] = _large(leadline, made["organization"])
    made["managed"] = _managed(leadline, made["organization"], server.url)
    yield made
    server.stop()


def _large(leadline: Daemon, organization: str) -> str:
    """Creates a project whose overview shows groups in place of monitors."""
    body = {"slug": "large", "name": "Large"}
    project: str = leadline.api("POST", f"/organizations/{organization}/projects", body)["id"]
    monitors = {
        f"large-{number:03}": {
            "name": f"Monitor number {number:03}",
            "type": "http",
            "target": "http://127.0.0.1:1/",
            "tags": [f"Group {number // 10:02}"],
            "interval_seconds": 3600,
        }
        for number in range(105)
    }
    # A bundle creates them in one request, and then releases them.
    bundle = {"format": 1, "organization": organization, "project": project, "monitors": monitors}
    leadline.api("POST", f"/projects/{project}/bundle/apply", bundle)
    leadline.api("POST", f"/projects/{project}/bundle/release")
    return project


def _managed(leadline: Daemon, organization: str, target: str) -> str:
    """Creates a project whose monitors a bundle manages."""
    body = {"slug": "managed", "name": "Managed"}
    project = str(leadline.api("POST", f"/organizations/{organization}/projects", body)["id"])
    names = ("Till", "A-monitor-whose-name-is-long-and-has-no-place-to-break-it-at-all-certainly")
    uids = [make_monitor(leadline, project, target, name=name) for name in names]
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        connection.execute(
            "update monitors set managed_by = 'bundle:' || repeat('long', 12), bundle_uid = uid"
            " where uid = any(%s::uuid[])",
            (uids,),
        )
    return project


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
    components: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Good", {"monitor_id": made["good"], "show_latency": True}),
        (
            "A part whose name is longer than any line of a telephone",
            {"monitor_id": made["bad"]},
        ),
        ("Paused", {"monitor_id": made["paused"], "show_latency": True}),
        ("Service", {"service_id": made["service"]}),
        (
            "By-hand-and-without-a-place-to-break-it-at-all-certainly",
            {"manual_status": "degraded"},
        ),
    )
    for n, (name, bound) in enumerate(components):
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
        # Results before the last half hour, if they are of today, whose partition exists.
        connection.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up)"
            " select m.org, m.id, now() - n * interval '10 minutes', 40 + n, true"
            " from monitors m, generate_series(6, 60) n where m.uid = %s"
            " and now() - n * interval '10 minutes' >= date_trunc('day', now(), 'UTC')",
            (made["good"],),
        )
        # Times that need the widest columns. The paused monitor gets no other results.
        connection.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up, msg, dns_us, connect_us,"
            " tls_us, first_byte_us) select m.org, m.id, now() - n * interval '1 second', 123456,"
            " n = 2, case n when 1 then 'connect_timeout' end, 12345678, case n when 2 then"
            " 23456789 end, case n when 2 then 3456789 end, case n when 2 then 45678901 end"
            " from monitors m, generate_series(1, 2) n where m.uid = %s",
            (made["paused"],),
        )
        connection.execute(
            "update monitor_terms t set from_at = from_at - interval '61 days'"
            " from monitors m where m.org = t.org and m.id = t.monitor and m.uid = %s",
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


def violations(page: Page, *, contrast: bool = True, part: str = "html") -> list[str]:
    """Returns the violations that axe finds in a part of the page.

    Its rule of contrast needs two thirds of its time.
    """
    # The rules that are on by default do not need the stylesheets, which axe would load again.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if not contrast:
        options["rules"] = {"color-contrast": {"enabled": False}}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    run = "([part, options]) => axe.run(part === 'html' ? document : part, options)"
    found: dict[str, Any] = page.evaluate(run, [part, options])
    return [
        f"{item['impact']} {item['id']}: {node['target']} {node['failureSummary']}"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical", "moderate")
        for node in item["nodes"]
    ]


def faults(page: Page, part: str = "html") -> list[str]:
    """Returns the violations, with texts of low contrast as `faint_texts` finds them."""
    return violations(page, contrast=False, part=part) + faint_texts(page)


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
    context = chromium.new_context(base_url=leadline.url, bypass_csp=True, reduced_motion="reduce")
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
    open_hidden_parts(page)


def open_hidden_parts(page: Page) -> None:
    page.evaluate(
        "document.querySelectorAll('details:not(.menu)').forEach(found => { found.open = true; })"
    )


@pytest.mark.parametrize("path", PAGES)
def test_every_screen_is_complete_and_accessible_at_each_width(
    audited: Page, places: dict[str, str], path: str
) -> None:
    """One visit for all rules. Of a screen with a query, the layout only: the screen without it has
    most of its elements, and the soak run checks the rest."""
    audited.emulate_media(color_scheme="light")
    audited.set_viewport_size(DESK)
    answer = audited.goto(path.format(**places))
    assert answer is not None
    if not PUBLIC.search(path):
        expect_times_of_the_zone(answer.text())
    if "?" in path:
        expect_layout(audited)
    else:
        expect_quality(audited)


def expect_times_of_the_zone(html: str) -> None:
    """Checks that a page shows no time in UTC, and none of a 24 hour clock."""
    page = OF_UTC.sub("", html)
    assert re.findall(r".{30}\bUTC\b.{30}", page) == []
    # Attributes are read by machines.
    text = re.sub(r"<script.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert re.findall(r".{30}\b\d\d:\d\d(?::\d\d)?(?!\u202f[ap]m)(?![\d:]).{30}", text) == []


def expect_quality(page: Page) -> None:
    """Checks the open page at each width, and leaves it in the dark scheme.

    The soak run audits the contrast with axe too.
    """
    expect_layout(page)
    page.set_viewport_size(DESK)
    # The frame is the same around all screens, and some of them are audited with it.
    part = "main" if IN_FRAME.search(page.url) and not IS_SOAK else "html"
    assert faults(page, part) == []
    page.emulate_media(color_scheme="dark")
    assert faint_texts(page) == []
    assert len(gzip.compress(page.content().encode())) < PAGE_BYTES_MOST


def expect_layout(page: Page) -> None:
    """Checks the layout at each width. Leaves all hidden parts open, at the width of a phone."""
    found = []
    for size in (WIDE, TABLET, PHONE):
        page.set_viewport_size(size)
        found += [f"{size['width']}: {one}" for one in layout_faults(page, is_phone=size == PHONE)]
    assert found == []
    open_hidden_parts(page)
    assert overflow(page) <= 0


def test_the_preview_of_an_import_is_complete_and_accessible(
    audited: Page, places: dict[str, str]
) -> None:
    audited.emulate_media(color_scheme="light")
    audited.set_viewport_size(DESK)
    audited.goto("/projects/{project}/import".format(**places))
    long = "An imported name that is longer than any line of a telephone has room for"
    checks = [
        {"name": long, "timeout": 3600, "grace": 60, "methods": "POST", "filter_subject": "1"},
        {"name": f"{long} twice", "schedule": "0 0 29 2 *", "grace": 60},
    ]
    audited.get_by_label("Healthchecks").check()
    audited.get_by_label("Name of the bundle").fill("old-tool")
    data = json.dumps({"checks": checks}).encode()
    audited.get_by_label("File", exact=True).set_input_files(
        {"name": "c.json", "mimeType": "application/json", "buffer": data}
    )
    audited.get_by_role("button", name="Preview").click()
    heading = audited.get_by_role("heading", name="Healthchecks: 1 imported, 1 skipped")
    expect(heading).to_be_visible()
    expect(audited.get_by_role("heading", name="Plan: 1 to add")).to_be_visible()
    expect(audited.get_by_label("Name of the bundle")).to_have_value("old-tool")
    expect_quality(audited)


def test_the_undo_of_an_update_is_complete_and_accessible(
    audited: Page, leadline: Daemon, places: dict[str, str]
) -> None:
    body = {"title": "Slow", "status": "investigating", "body": "We look into it."}
    incident = leadline.api("POST", f"/projects/{places['project']}/incidents", body)["id"]
    update = {"body": "All customers of Acme.", "public": True}
    written = leadline.api("POST", f"/incidents/{incident}/updates", update)["id"]
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        # The audit takes longer than the 10 s in which the update can be withdrawn.
        connection.execute(
            "update incident_updates set created_at = created_at + interval '1 hour'"
            " where uid = %s",
            (written,),
        )
    audited.emulate_media(color_scheme="light")
    audited.set_viewport_size(DESK)
    audited.goto(f"/incidents/{incident}?done=published")
    expect(audited.get_by_role("status")).to_contain_text("Update published.")
    expect_quality(audited)
    audited.get_by_role("button", name="Undo").click()
    expect(audited.get_by_role("status")).to_contain_text("Update withdrawn.")
    expect(audited.locator("main")).not_to_contain_text("can be withdrawn")
    (hidden,) = [
        one for one in leadline.api("GET", f"/incidents/{incident}/updates") if one["id"] == written
    ]
    assert hidden["public"] is False
    audited.emulate_media(color_scheme="light")
    expect_quality(audited)


def test_the_warning_about_a_message_is_complete_and_accessible(
    audited: Page, leadline: Daemon, places: dict[str, str]
) -> None:
    incidents = f"/projects/{places['project']}/incidents"
    body = {"title": "Slow", "monitor_id": places["bad"]}
    incident = leadline.api("POST", incidents, body)["id"]
    audited.emulate_media(color_scheme="light")
    audited.set_viewport_size(DESK)
    audited.goto(f"/monitors/{places['bad']}")
    expect(audited.get_by_role("heading", level=1)).to_contain_text("is down")
    audited.goto(f"/incidents/{incident}")
    audited.get_by_text("Resolved", exact=True).click()
    audited.get_by_label("Message").fill("It works again.")
    expect(audited.locator("#outside .fact")).to_contain_text("is still down")
    audited.get_by_role("button", name="Publish update").click()
    expect(audited.get_by_role("alert")).to_contain_text("The new status is resolved.")
    expect_quality(audited)
    audited.emulate_media(color_scheme="light")
    audited.set_viewport_size(DESK)
    audited.goto(f"{incidents}/new")
    audited.get_by_text("A monitor", exact=True).click()
    audited.get_by_label("Monitor", exact=True).fill("A name that is longer than any line")
    audited.get_by_label("Title").fill("Slow")
    audited.get_by_text("Monitoring", exact=True).click()
    audited.get_by_role("button", name="Open incident").click()
    expect(audited.get_by_role("alert")).to_contain_text("The new status is monitoring.")
    expect_quality(audited)


def _without_refresh(route: Route) -> None:
    """Answers a request without the header by which the page reloads, also during an audit."""
    answer = route.fetch()
    assert "refresh" in answer.headers
    headers = {name: value for name, value in answer.headers.items() if name != "refresh"}
    route.fulfill(response=answer, headers=headers)


def test_a_running_bundle_and_its_differences_are_complete_and_accessible(
    audited: Page, leadline: Daemon
) -> None:
    (organization,) = leadline.api("GET", "/organizations")
    there = f"/organizations/{organization['id']}/projects"
    project = leadline.api("POST", there, {"slug": "as-code", "name": "As code"})["id"]
    long = "a-name-that-is-longer-than-any-line-of-a-telephone-has-room-for"
    document = {
        "format": 1,
        "organization": organization["slug"],
        "project": "as-code",
        "monitors": {long: {"name": long, "type": "push", "interval_seconds": 3600}},
    }
    for interval in (3600, 7200):
        document["monitors"][long]["interval_seconds"] = interval
        leadline.api("POST", f"/projects/{project}/bundle/apply", document)
    show(audited, f"/projects/{project}/bundle", "light")
    audited.get_by_role("link", name="differences").click()
    expect(audited.get_by_role("heading", name="Revision 2 of default: 1 changed")).to_be_visible()
    expect_quality(audited)
    at = 1_780_000_000_000_000
    steps = [[at, "create", "monitor", long]] * 3
    log = {"first_at": at, "first_done": 0, "at": at + 10_000_000, "done": 50, "total": 200}
    steps_of = [dict(zip(("at", "action", "kind", "uid"), step, strict=True)) for step in steps]
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        # No process performs it, as its bundle does not exist.
        connection.execute(
            "insert into operations (uid, kind, state, org, project, done, total, created_at,"
            " progress) select gen_random_uuid(), 'bundle_apply', 'applying', org, id, 50, 200,"
            " now(), %s from projects where uid = %s",
            (json.dumps({**log, "steps": steps_of}), project),
        )
    audited.route("**/bundle", _without_refresh)
    show(audited, f"/projects/{project}/bundle", "light")
    expect(audited.get_by_text("about 30\u202fs left")).to_be_visible()
    expect_quality(audited)
    audited.unroute("**/bundle")
    with psycopg.connect(leadline.dsn, autocommit=True) as connection:
        connection.execute("delete from operations where state = 'applying'")


@pytest.mark.parametrize(
    ("path", "label"),
    [("/projects/{project}/services/new", "Add a monitor"), ("/monitors/{bad}/edit", "Depends on")],
)
def test_an_open_list_of_a_picker_is_complete_and_accessible(
    audited: Page, places: dict[str, str], path: str, label: str
) -> None:
    show(audited, path.format(**places), "light")
    field = audited.get_by_role("combobox", name=label)
    field.press("ArrowDown")
    expect(audited.locator(".list:visible [role=option]").first).to_be_visible()
    field.press("Enter")
    expect(audited.locator("[data-token]").first).to_be_visible()
    field.press("ArrowDown")
    expect(audited.locator(".list:visible")).to_be_visible()
    expect_quality(audited)


def test_enter_never_takes_an_option_of_an_earlier_text(
    audited: Page, places: dict[str, str]
) -> None:
    show(audited, "/projects/{project}/escalation-policies/new".format(**places), "light")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    audited.route(re.compile(r"/pick\?.*q=$"), hold)
    field = audited.get_by_role("combobox", name="Targets").first
    with audited.expect_request(re.compile(r"/pick\?.*q=$")):
        field.click()
    # The options of the empty text arrive after a text that no key announced yet.
    field.evaluate("field => { field.value = 'somebody-whose' }")
    with audited.expect_event("requestfinished"):
        held[0].continue_()
    field.press("Enter")
    expect(audited.locator("[data-token] > span").first).to_contain_text("Somebody-whose-name")
    audited.unroute(re.compile(r"/pick\?.*q=$"))


def test_the_palette_and_the_menus_have_no_violation(audited: Page, places: dict[str, str]) -> None:
    show(audited, "/projects/{project}".format(**places), "light")
    audited.keyboard.press("Control+k")
    palette = audited.get_by_role("dialog", name="Search, or go to a page")
    expect(palette.get_by_role("link").first).to_be_visible()
    assert faults(audited) == []
    audited.keyboard.press("ArrowDown")
    expect(palette.get_by_role("link").first).to_be_focused()
    audited.keyboard.press("Escape")
    for menu in ("details.switch", "details.me"):
        audited.locator(f"{menu} > summary").click()
        assert faults(audited) == []
        audited.keyboard.press("Escape")
        expect(audited.locator(f"{menu} > .pop")).to_be_hidden()


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
    assert faults(page) == []
    page.get_by_label("Address").fill("gopher://x")
    page.get_by_role("button", name="Add monitor").click()
    assert faults(page) == []
    page.goto(f"/projects/{empty_project}/monitors/new")
    page.get_by_role("button", name="Add monitor").click()
    expect(page.get_by_role("alert")).to_contain_text("errors below")
    assert faults(page) == []
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0


def test_a_list_shows_a_hundred_rows_per_page(open_page: Open, places: dict[str, str]) -> None:
    here = f"/projects/{places['large']}"
    page = open_page(f"{here}?show=notup")
    expect(page.locator("tr[data-live]")).to_have_count(100)
    assert len(gzip.compress(page.content().encode())) < PAGE_BYTES_MOST
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tr[data-live]")).to_have_count(5)
    expect(page.get_by_role("table").get_by_role("link", name="Monitor number 104")).to_be_visible()
    page.goto(f"{here}?q=number+042")
    expect(page.locator("tr[data-live]")).to_have_count(1)


def test_a_large_project_shows_groups_with_monitors_that_are_not_up(
    open_page: Open, leadline: Daemon, places: dict[str, str]
) -> None:
    here = f"/projects/{places['large']}"
    page = open_page(here)
    groups = page.locator("details.fold")
    expect(groups).to_have_count(11)
    expect(groups.first).to_contain_text("Group 00 10 monitors, 10")
    expect(page.locator("#folds tr[data-shown]")).to_have_count(50)
    groups.nth(10).locator("summary").click()
    expect(groups.nth(10)).to_contain_text("5 more monitors not up. Show all in Group 10")
    groups.nth(10).get_by_role("link", name="Show all in Group 10").click()
    expect(page.locator("tr[data-live]")).to_have_count(5)
    page.goto(f"{here}?show=region")
    expect(groups).to_have_count(1)
    expect(groups.first).to_contain_text("core 105 monitors")
    # The groups are swapped when a monitor changes, unless the pointer is over them, and stay
    # folded or unfolded.
    groups.first.locator("summary").click()
    was_open = groups.first.get_attribute("open") is not None
    page.mouse.move(2, 2)
    first = leadline.api("GET", f"{here}/monitors?limit=1")[0]
    leadline.api("PATCH", f"/monitors/{first['id']}", {"enabled": False})
    expect(groups.first).to_contain_text("1 paused", timeout=15_000)
    assert (groups.first.get_attribute("open") is not None) == was_open


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
    expect(page.locator("#attention").get_by_role("link", name="Zebra", exact=True)).to_be_visible()


def test_the_audit_of_contrast_agrees_with_axe(audited: Page, places: dict[str, str]) -> None:
    """Both find a text that is faint in itself, by opacity, and over a ground of an ancestor.

    Axe cannot decide about texts above a background image, such as the line of the frame.
    """
    show(audited, "/projects/{project}/channels".format(**places), "light")
    assert (faint_texts(audited), violations(audited)) == ([], [])
    audited.evaluate(
        """() => {
          document.querySelector('.frame').style.backgroundImage = 'none';
          const made = ['color: #888', 'opacity: .5', 'background: #8a8a8a; color: #777'];
          document.querySelector('main').innerHTML += made
            .map((_, n) => `<p id="made-${n}"><span>Text ${n}</span></p>`).join('');
          made.forEach((style, n) => {
            document.getElementById(`made-${n}`).style.cssText = style;
          });
        }"""
    )
    ours, axes = faint_texts(audited), violations(audited)
    assert [text.partition('"')[2] for text in ours] == ['Text 0"', 'Text 1"', 'Text 2"']
    assert len([one for one in axes if "color-contrast" in one]) == 3
