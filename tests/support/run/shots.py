"""Writes pictures of the console and of a status page to docs/shots, from an example shop.

The monitors, the incidents and the page are real objects of a running daemon. Results before its
start are inserted, since the daemon would need three months to record them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import psycopg
from playwright.sync_api import Browser

from tests.support.processes.chromium import browsing
from tests.support.processes.daemon_process import Daemon, daemon

OUT: Final = Path(__file__).parents[3] / "docs" / "shots"
WIDE: Final = (1440, 900)
PHONE: Final = (390, 844)
# Time in which the daemon checks each monitor and opens the incident.
SETTLE_SECONDS: Final = 40
# (tag, name, path of the target)
MONITORS: Final = (
    ("checkout", "Checkout API, eu-west", "/broken"),
    ("checkout", "Checkout API, core", "/ok"),
    ("checkout", "Payment gateway", "/slow"),
    ("checkout", "Tax service", "/ok"),
    ("checkout", "Fraud scoring", "/ok"),
    ("storefront", "Storefront", "/ok"),
    ("storefront", "Product page", "/slow"),
    ("storefront", "Basket", "/ok"),
    ("storefront", "Image CDN", "/ok"),
    ("storefront", "Recommendations", "/ok"),
    ("accounts", "Sign-in", "/slow"),
    ("accounts", "Accounts API", "/ok"),
    ("accounts", "Session store", "/ok"),
    ("data", "Orders database", "/ok"),
    ("data", "Catalogue database", "/ok"),
    ("data", "Nightly backup", ""),
)
# Results of the last hour before the start, and figures of the last 90 days.
_HISTORY: Final = (
    "update monitors set created_at = created_at - interval '100 days'",
    "update monitor_terms set from_at = from_at - interval '100 days'",
    "insert into heartbeats (org, monitor, ts, latency_ms, code, up)"
    " select m.org, m.id, date_trunc('minute', now()) - n * interval '1 minute',"
    " 20 + (m.id * 37) % 180 + (n * n) % 9, 200, true"
    " from monitors m, generate_series(2, 70) n where m.type = 'http'",
    "insert into monitor_days"
    " (org, monitor, day, good_us, bad_us, unknown_us, excluded_us, up, total)"
    " select m.org, m.id, date_trunc('day', now(), 'UTC') - n * interval '1 day',"
    " 86400000000 - b.bad, b.bad, 0, 0, 1440 - b.bad / 60000000, 1440"
    " from monitors m, generate_series(1, 89) n,"
    " lateral (select case when (m.id * 7 + n * 13) % 41 = 0 then 600000000 else 0 end::bigint"
    " as bad) b",
)
_PAGES: Final = {
    "overview": "/projects/{project}",
    "monitors": "/projects/{project}/monitors",
    "monitor": "/monitors/{bad}?range=1h",
    "monitor-form": "/projects/{project}/monitors/new",
    "services": "/projects/{project}/services",
    "service": "/services/{service}",
    "incidents": "/projects/{project}/incidents",
    "incident": "/incidents/{incident}",
    "on-call": "/projects/{project}/on-call",
    "gate": "/projects/{project}/gate",
    "maintenance": "/projects/{project}/maintenance",
    "maintenance-form": "/projects/{project}/maintenance?show=plan",
    "status-pages": "/projects/{project}/status-pages",
    "status-page-editor": "/projects/{project}/status-pages/{page}",
    "status-page": "/status/shop",
    "settings": "/projects/{project}/settings",
    "members": "/organizations/{organization}/people",
    "tokens": "/organizations/{organization}/tokens",
    "token-form": "/organizations/{organization}/tokens?show=new",
    "audit-log": "/organizations/{organization}/audit",
    "channels": "/projects/{project}/channels",
    "alert-routes": "/projects/{project}/alert-routes",
    "mutes": "/projects/{project}/mutes",
    "incident-templates": "/projects/{project}/incident-templates",
    "mute": "/admin/silence",
    "service-copy": "/services/{service}/copy?show=yaml",
    "bundle": "/projects/{project}/bundle",
    "import": "/projects/{project}/import",
    "users": "/admin/people",
    "sign-in-policy": "/admin/sign-in-policy",
    "single-sign-on": "/admin/single-sign-on",
    "mail-server": "/admin/mail",
    "branding": "/admin/branding",
    "workers": "/admin/fleet",
    "search": "/projects/{project}/search?q=checkout",
    "profile": "/profile",
}
_DARK: Final = ("overview", "monitor", "incident")


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        threading.Event().wait(0.15 if self.path == "/slow" else 0.02)
        self.send_response(503 if self.path == "/broken" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _target() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def _shop(leadline: Daemon, target: str) -> dict[str, str]:
    """Creates the shop. Returns the ids that the paths of the pages name."""
    (organization,) = leadline.api("GET", "/organizations")
    org = organization["id"]
    leadline.api("PATCH", f"/organizations/{org}", {"name": "Harbour Goods"})
    project = leadline.api("GET", f"/organizations/{org}/projects")[0]["id"]
    leadline.api("PATCH", f"/projects/{project}", {"name": "Shop"})
    there = f"/projects/{project}"
    channels = [
        leadline.api(
            "POST",
            f"{there}/notification-channels",
            {"type": "ntfy", "name": name, "config": {"topic": name.partition(" ")[0].lower()}},
        )["id"]
        for name in ("Mara Lind", "Jonas Weber")
    ]
    for name, impact in (("Payments fail", "major"), ("Planned failover is slow", "minor")):
        texts = {"title": f"{name} for some customers", "body": "We are investigating."}
        template = {"name": name, "impact": impact, **texts}
        leadline.api("POST", f"{there}/incident-templates", template)
    schedule = {
        "name": "Primary",
        "shift_seconds": 604_800,
        "anchor_at": "2026-01-05T08:00:00Z",
        "timezone": "Europe/Berlin",
        "participants": channels,
    }
    oncall = leadline.api("POST", f"{there}/oncall-schedules", schedule)["id"]
    steps = [
        {"after_seconds": 0, "targets": [{"type": "schedule", "id": oncall}]},
        {"after_seconds": 600, "targets": [{"type": "channel", "id": channels[1]}]},
    ]
    policy = {"name": "Shop", "repeat_last": True, "steps": steps}
    ladder = leadline.api("POST", f"{there}/escalation-policies", policy)["id"]
    monitors = {}
    for tag, name, path in MONITORS:
        body: dict[str, Any] = {"name": name, "tags": [tag], "interval_seconds": 60}
        body |= {"type": "http", "target": f"{target}{path}"} if path else {"type": "push"}
        if path:
            body |= {"conditions": ["[STATUS] == 200"], "failure_threshold": 1}
        body |= {"escalation_policy_id": ladder, "target": body.get("target", "")}
        monitors[name] = leadline.api("POST", f"{there}/monitors", body)["id"]
    services = {}
    for tag in ("checkout", "storefront", "accounts", "data"):
        body = {"name": tag.capitalize(), "slug": tag}
        uid = services[tag] = leadline.api("POST", f"{there}/services", body)["id"]
        members = [monitors[name] for of, name, _ in MONITORS if of == tag]
        declared = {"expected_revision": 0, "monitors": members, "sli": members[:1]}
        leadline.api("PUT", f"{there}/services/{uid}/declaration", declared)
        goal = {"window": "30d", "objective": 99.9}
        leadline.api("PUT", f"{there}/services/{uid}/sla-target", goal)
    now = datetime.now(UTC).replace(microsecond=0)
    change = {
        "kind": "deploy",
        "source": "ci",
        "external_id": "2026.48.2",
        "ref": "2026.48.2",
        "phase": "succeeded",
        "occurred_at": (now - timedelta(minutes=9)).isoformat(),
    }
    leadline.api("POST", f"{there}/services/{services['checkout']}/changes", change)
    planned = {
        "starts_at": (now + timedelta(hours=20)).isoformat(),
        "ends_at": (now + timedelta(hours=21)).isoformat(),
        "reason": "Database upgrade",
        "monitor_id": monitors["Orders database"],
    }
    leadline.api("POST", f"{there}/maintenance", planned)
    page = leadline.api(
        "POST",
        f"/organizations/{org}/status-pages",
        {"slug": "shop", "title": "Harbour Goods", "project_id": project, "visibility": "listed"},
    )["id"]
    for name, of in (
        ("Checkout", "Checkout API, eu-west"),
        ("Shop", "Storefront"),
        ("Accounts", "Sign-in"),
    ):
        component = {"name": name, "monitor_id": monitors[of]}
        leadline.api("POST", f"/status-pages/{page}/components", component)
    return {
        "project": project,
        "organization": org,
        "bad": monitors["Checkout API, eu-west"],
        "service": services["checkout"],
        "page": page,
    }


def _incident(leadline: Daemon, ids: dict[str, str]) -> str:
    """Returns the incident of the failing monitor, after its first answer."""
    found = leadline.api("GET", f"/projects/{ids['project']}/incidents")
    uid = str(found[0]["id"])
    leadline.api("POST", f"/incidents/{uid}/acknowledge")
    body = {"status": "identified", "body": "A deploy broke card payments. We roll it back."}
    leadline.api("POST", f"/incidents/{uid}/updates", body)
    return uid


def _pictures(browser: Browser, leadline: Daemon, ids: dict[str, str]) -> None:
    name, _, value = leadline.cookie.partition("=")
    for scheme, width, suffix, names in (
        ("light", WIDE, "", tuple(_PAGES)),
        ("light", PHONE, "-phone", tuple(_PAGES)),
        ("dark", WIDE, "-dark", _DARK),
    ):
        context = browser.new_context(
            base_url=leadline.url,
            viewport={"width": width[0], "height": width[1]},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        context.add_cookies([{"name": name, "value": value, "url": leadline.url}])
        page = context.new_page()
        for shot in names:
            page.goto(_PAGES[shot].format(**ids))
            page.screenshot(path=OUT / f"{shot}{suffix}.png", full_page=width == PHONE)
        context.close()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with _target() as target, daemon() as leadline, browsing() as browser:
        leadline.start()
        leadline.sign_in()
        ids = _shop(leadline, target)
        with psycopg.connect(leadline.dsn, autocommit=True) as connection:
            for statement in _HISTORY:
                connection.execute(statement)
        threading.Event().wait(SETTLE_SECONDS)
        ids["incident"] = _incident(leadline, ids)
        _pictures(browser, leadline, ids)


if __name__ == "__main__":
    main()
