"""Every screen is requested as every user through the real app: redirect to the sign-in, 404, 403
or the screen.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.http.home.console import monitor_list
from leadline.http.server.route_table import ROUTES
from leadline.http.ui.shell import error_pages
from leadline.http.ui.shell.page_layout import outer_frame
from leadline.http.wire.route import Route
from leadline.storage.changes.rules.change import ChangeKind, ChangePhaseName, Record
from leadline.storage.changes.transactions import record_change
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.engine.pools import Isolation
from leadline.storage.gate.rules.gate import GateClause, GateClauseAssignment, UnknownBehavior
from leadline.storage.gate.rules.gate_policy import Document, WindowMode
from leadline.storage.gate.transactions.edit_policy import put_policy
from leadline.storage.gate.transactions.evaluate_gate import evaluate_gate
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import PEOPLE, Api
from tests.support.run.effort import IS_SOAK

POLICY = (
    "windows=30d&percent=75&lag=900&unknown=block&budget_exhausted=block&budget_consumed=warn"
    "&page_burn_firing=block&ticket_burn_firing=warn&service_incident_open=block"
)
# The roles of the interface: a viewer can read, an editor can write.
STATED = """
- GET /sign-in
- POST /sign-in
- GET /signed-out
- GET /reset
- POST /reset
- GET /reset/{token}
- POST /reset/{token}
- GET /answer/{token}
- GET /answer/{token}/pick
- POST /answer/{token}
- GET /invitations/{token}
- POST /invitations/{token}
- GET /static/{file}
- POST /preferences
- GET /theme/{color}
- GET /status/{slug}
- GET /status/{slug}/history
- GET /status/{slug}/month
- GET /status/{slug}/incidents/{incidentID}
- GET /status/{slug}/widget
- GET /status/{slug}/subscribe
- POST /status/{slug}/subscribe
- GET /status/confirm/{token}
- POST /status/confirm/{token}
- GET /status/unsubscribe/{token}
- POST /status/unsubscribe/{token}
* GET /
* GET /help
V GET /projects/{projectID}
E POST /projects/{projectID}
V GET /projects/{projectID}/rows
V GET /projects/{projectID}/monitors
E POST /projects/{projectID}/monitors
E GET /projects/{projectID}/monitors/actions/{operationID}
E POST /projects/{projectID}/monitors/actions/{operationID}
V GET /projects/{projectID}/search
V GET /projects/{projectID}/settings
V GET /monitors/{monitorID}
E POST /monitors/{monitorID}
E GET /monitors/{monitorID}/copy
E GET /monitors/{monitorID}/delete
E POST /monitors/{monitorID}/delete
E GET /projects/{projectID}/monitors/new
E POST /projects/{projectID}/monitors/new
V GET /projects/{projectID}/secrets
E POST /projects/{projectID}/secrets
E GET /projects/{projectID}/bundle
A POST /projects/{projectID}/bundle
A GET /projects/{projectID}/import
A POST /projects/{projectID}/import
V GET /projects/{projectID}/channels
E POST /projects/{projectID}/channels
V GET /projects/{projectID}/alert-routes
E POST /projects/{projectID}/alert-routes
V GET /projects/{projectID}/mutes
E POST /projects/{projectID}/mutes
V GET /projects/{projectID}/incident-templates
E POST /projects/{projectID}/incident-templates
V GET /projects/{projectID}/incidents
E GET /projects/{projectID}/incidents/new
E POST /projects/{projectID}/incidents/new
V GET /projects/{projectID}/pick
V GET /incidents/{incidentID}
E POST /incidents/{incidentID}
V GET /projects/{projectID}/services
V GET /services/{serviceID}
V GET /projects/{projectID}/changes
V GET /services/{serviceID}/changes
V GET /services/{serviceID}/changes/{changeID}
V GET /services/{serviceID}/gate
A POST /services/{serviceID}/gate
E GET /services/{serviceID}/gate/policy
E POST /services/{serviceID}/gate/policy
V GET /projects/{projectID}/gate
V GET /projects/{projectID}/gate/decisions/{decisionID}
E GET /projects/{projectID}/gate/policy
E POST /projects/{projectID}/gate/policy
V GET /projects/{projectID}/sla
E GET /projects/{projectID}/services/new
E POST /projects/{projectID}/services/new
E GET /services/{serviceID}/declaration
E POST /services/{serviceID}/declaration
E GET /services/{serviceID}/copy
E GET /services/{serviceID}/dependencies
E POST /services/{serviceID}/dependencies
E GET /services/{serviceID}/objective
E POST /services/{serviceID}/objective
E GET /services/{serviceID}/alerting
E POST /services/{serviceID}/alerting
E GET /services/{serviceID}/delete
E POST /services/{serviceID}/delete
V GET /projects/{projectID}/maintenance
E POST /projects/{projectID}/maintenance
V GET /projects/{projectID}/on-call
E POST /projects/{projectID}/on-call
V POST /projects/{projectID}/on-call/accept
V GET /projects/{projectID}/status-pages
O GET /projects/{projectID}/status-pages/new
O POST /projects/{projectID}/status-pages/new
V GET /projects/{projectID}/status-pages/{pageID}
O POST /projects/{projectID}/status-pages/{pageID}
O GET /projects/{projectID}/status-pages/{pageID}/delete
O POST /projects/{projectID}/status-pages/{pageID}/delete
O GET /projects/{projectID}/status-pages/{pageID}/preview
O GET /projects/{projectID}/status-pages/{pageID}/subscribers
O POST /projects/{projectID}/status-pages/{pageID}/subscribers
E GET /projects/{projectID}/oncall-schedules/new
E POST /projects/{projectID}/oncall-schedules/new
E GET /oncall-schedules/{scheduleID}/edit
E POST /oncall-schedules/{scheduleID}/edit
E GET /projects/{projectID}/escalation-policies/new
E POST /projects/{projectID}/escalation-policies/new
E GET /escalation-policies/{policyID}/edit
E POST /escalation-policies/{policyID}/edit
E GET /monitors/{monitorID}/successor
E POST /monitors/{monitorID}/successor
E GET /monitors/{monitorID}/edit
E POST /monitors/{monitorID}/edit
O GET /organizations/{orgID}/people
O GET /organizations/{orgID}/tokens
O POST /organizations/{orgID}/tokens
O GET /organizations/{orgID}/webhooks
O POST /organizations/{orgID}/webhooks
O GET /organizations/{orgID}/projects
O POST /organizations/{orgID}/projects
O GET /projects/{projectID}/settings/general
O POST /projects/{projectID}/settings/general
O GET /projects/{projectID}/settings/delete
O POST /projects/{projectID}/settings/delete
V GET /operations/{operationID}
O POST /organizations/{orgID}/people
O GET /organizations/{orgID}/audit
O GET /organizations/{orgID}/audit.csv
G GET /admin/audit
G GET /admin/audit.csv
G GET /admin/people
G POST /admin/people
G GET /admin/branding
G POST /admin/branding
G GET /admin/monitor-defaults
G POST /admin/monitor-defaults
G GET /admin/organization-limits
G POST /admin/organization-limits
G GET /admin/silence
G POST /admin/silence
G GET /admin/sign-in-policy
G POST /admin/sign-in-policy
G GET /admin/single-sign-on
G POST /admin/single-sign-on
G GET /admin/group-roles
G POST /admin/group-roles
G GET /admin/mail
G POST /admin/mail
G GET /admin/gateway
G POST /admin/gateway
G GET /admin/answer-buttons
G POST /admin/answer-buttons
S GET /profile
S POST /profile
S GET /profile/contacts
S POST /profile/contacts
G GET /admin/dead-letters
G POST /admin/dead-letters
G GET /admin/fleet
G POST /admin/fleet
"""
LETTERS = {
    (method, path): letter
    for letter, method, path in (line.split() for line in STATED.strip().splitlines())
}
PAGES = [route for route in ROUTES if route.page]
GUARDED = [route for route in PAGES if route.action.need.value != "-"]
SCHEDULE = "act=save&name=S&shift=1&unit=weeks&anchor=2026-01-05T09:00&participant={channel}"
POLICIES = (
    "mode=all&healthy_min=1&degraded_min=1&region_mode=all_regions&healthy_min_regions=1&"
    "degraded_min_regions=1&missing_data=unknown&active_multiplier=3&active_floor=90s"
)
FORMS = {
    "/projects/{projectID}/monitors/actions/{operationID}": "stop=yes",
    "/projects/{projectID}/services/new": f"act=save&revision=0&name=New&{POLICIES}",
    "/services/{serviceID}/declaration": f"act=save&revision=0&{POLICIES}",
    "/services/{serviceID}/dependencies": "generation=0",
    "/services/{serviceID}/objective": "window=30d&objective=99.5",
    "/services/{serviceID}/alerting": "confirm=2&renotify=0&down=on",
    "/services/{serviceID}/delete": "",
    "/services/{serviceID}/gate": "act=override&reason=New&until=1h&source=service&revision=1",
    "/services/{serviceID}/gate/policy": f"act=try&revision=1&{POLICY}",
    "/projects/{projectID}/gate/policy": f"act=save&revision=&{POLICY}",
    "/profile": "act=enrol",
    "/profile/contacts": "act=rules",
    "/admin/branding": "announcement_level=info",
    "/admin/monitor-defaults": "interval_seconds=60&timeout_seconds=5&retries=0"
    "&failure_threshold=1&renotify_seconds=0",
    "/admin/organization-limits": "monitors=1000&shortest_interval_seconds=5&runs_per_minute=1000",
    "/admin/silence": "act=lift",
    "/monitors/{monitorID}/successor": "act=succeed",
    "/admin/sign-in-policy": "require_totp=none&min_password_len=12&session_ttl_seconds=3600",
    "/admin/single-sign-on": "scopes=openid",
    "/admin/group-roles": "act=delete&uid={orgID}",
    "/admin/mail": "smtp_port=25",
    "/admin/gateway": "base_url=https://api.twilio.com&sms_method=POST&sms_format=json"
    "&voice_method=POST&voice_format=json",
    "/admin/answer-buttons": "telegram_secret=",
    "/admin/dead-letters": "act=replay-all",
    "/admin/fleet": "act=make&name=attic&region=eu",
    "/projects/{projectID}": "target=http://127.0.0.1:1/",
    "/monitors/{monitorID}": "act=pause",
    "/monitors/{monitorID}/delete": "act=pause",
    "/projects/{projectID}/monitors/new": "type=push&fields=push&act=save&name=New&"
    "interval_seconds=60&grace_seconds=60&failure_threshold=1",
    "/projects/{projectID}/channels": "act=add&type=ntfy&name=New&config.topic=ops",
    "/projects/{projectID}/incidents/new": (
        "about=components&title=New&impact=minor&status=investigating"
    ),
    "/projects/{projectID}/alert-routes": "act=save",
    "/projects/{projectID}/mutes": "act=add&matchers=tag%3Ddb&for=3600&reason=New",
    "/projects/{projectID}/incident-templates": "act=add&name=new-{n}&title=New&impact=minor",
    "/incidents/{incidentID}": "act=note&body=New",
    "/projects/{projectID}/maintenance": "act=plan&starts=2026-01-06T00:00&ends=2026-01-06T01:00",
    "/projects/{projectID}/status-pages/new": "title=New&slug=new-{n}&visibility=listed&"
    "scope=project",
    "/projects/{projectID}/status-pages/{pageID}": "act=page&title=New&visibility=internal",
    "/projects/{projectID}/status-pages/{pageID}/delete": "",
    "/projects/{projectID}/status-pages/{pageID}/subscribers": "remove={subscriber}",
    "/projects/{projectID}/secrets": "act=add&name=new-{n}&value=x",
    "/projects/{projectID}/monitors": "act=clear",
    "/organizations/{orgID}/projects": "name=Further&slug=further-{n}",
    "/projects/{projectID}/settings/general": "name=Shop",
    "/projects/{projectID}/settings/delete": "name=another+name",
    "/organizations/{orgID}/people": "act=add&email=new-{n}@example.com&role=viewer",
    "/organizations/{orgID}/tokens": "act=create&name=t-{n}&role=viewer",
    "/organizations/{orgID}/webhooks": "act=add&url=https://hook.example.com/{n}",
    "/admin/people": "act=create&email=new-{n}@example.com",
    "/projects/{projectID}/import": 'tool=healthchecks&text={"checks": [{"name": "Job", '
    '"timeout": 3600, "grace": 60}]}',
    "/projects/{projectID}/bundle": "act=plan&bundle={format: 1, organization: acme, "
    "project: shop, monitors: {}}",
    "/projects/{projectID}/on-call": "act=calendar&schedule={schedule}",
    "/projects/{projectID}/on-call/accept": "request={cover}",
    "/projects/{projectID}/oncall-schedules/new": SCHEDULE,
    "/oncall-schedules/{scheduleID}/edit": SCHEDULE,
    "/projects/{projectID}/escalation-policies/new": "act=save&name=L&targets-0={channel}",
    "/escalation-policies/{policyID}/edit": "act=save&name=L&targets-0={channel}",
    "/monitors/{monitorID}/edit": "type=http&fields=http&act=save&name=New&"
    "target=http://127.0.0.1:1/&interval_seconds=60&failure_threshold=1",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SEES_SHOP = {"shopkeeper", "viewer", "editor", "project_admin", "org_admin", "global_admin"}
WRITES_SHOP = SEES_SHOP - {"viewer"}
RUNS_SHOP = {"shopkeeper", "project_admin", "org_admin", "global_admin"}
OWNS_ACME = {"org_admin", "global_admin"}
MAY = {"A": RUNS_SHOP, "E": WRITES_SHOP, "O": OWNS_ACME}


def test_the_screens_match_the_stated_letters() -> None:
    assert {(r.method, r.path): r.action.need.value for r in PAGES} == LETTERS
    assert not any(route.in_document for route in PAGES)


async def decided(api: Api, service: UUID) -> UUID:
    """The project has no policy; the service has one, and one decision."""
    document = Document(
        schema_version=2,
        window_mode=WindowMode.ALL,
        window=None,
        clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
        budget_consumed_percent=75,
        max_seal_lag_seconds=900,
        unknown_behavior=UnknownBehavior.BLOCK,
    )
    await make_partitions(
        api.pool, "gate_decisions", "evaluated_at", from_=FROZEN_NOW, through=FROZEN_NOW
    )
    async with api.pool.transaction("policy") as tx:
        await tx.execute("delete from gate_policies")
        await put_policy(tx, api.editor, api.project, service, None, document)
    async with api.pool.transaction("ask", isolation=Isolation.REPEATABLE_READ) as tx:
        return (await evaluate_gate(tx, api.editor, api.project, service)).row.uid


async def started(api: Api) -> UUID:
    """Returns an operation of the project that somebody else started, also as a bulk action."""
    async with api.pool.transaction("start") as tx:
        uid: UUID = await tx.value(
            "insert into operations (uid, kind, org, project, total, created_at)"
            " select %(uid)s, 'bundle_apply', org, id, 10, now() from projects"
            " where uid = %(project)s returning uid",
            uid=uuid7(),
            project=api.project,
        )
        await tx.execute(
            "insert into bulk_actions (uid, org, project, act, arguments)"
            " select uid, org, project, 'pause', '{}' from operations where uid = %(uid)s",
            uid=uid,
        )
        return uid


async def changed(api: Api, service: UUID) -> UUID:
    """Records a deployment."""
    record = Record(
        kind=ChangeKind.DEPLOY, phase=ChangePhaseName.STARTED, source="ci", external_id="1"
    )
    async with api.pool.transaction("change") as tx:
        return (await record_change(tx, api.editor, api.project, service, record)).phase.uid


NAMED = (
    "channel",
    "schedule",
    "policy",
    "service",
    "decision",
    "change",
    "page",
    "subscriber",
    "operation",
    "cover",
)
# Forms that are refused: the confirmation differs from the name of the object; the cover request is
# already accepted.
NOT_CONFIRMED = {"/projects/{projectID}/settings/delete", "/projects/{projectID}/on-call/accept"}


async def named_by(api: Api, route: Route) -> dict[str, str]:
    """Creates the objects that the path or the form names. Reads get one object of every kind."""
    text = route.path.replace("ID}", "}") + FORMS.get(route.path, "")
    needed = {name for name in NAMED if not route.form or f"{{{name}}}" in text}
    named: dict[str, UUID] = {}
    if needed & {"channel", "schedule", "policy"}:
        named["channel"] = channel = await api.new_channel()
        named["schedule"] = await api.new_schedule(channel)
        named["policy"] = await api.new_policy(channel)
    # The project has a gate policy until `decided` deletes it.
    if needed & {"service", "decision", "change"} or "/gate" in route.path:
        named["service"] = service = await api.new_service(aims=True)
        named["decision"] = await decided(api, service)
        named["change"] = await changed(api, service)
    if needed & {"page", "subscriber"}:
        named["page"] = await api.new_status_page()
        named["subscriber"] = await api.new_subscriber(named["page"])
    if "{cover}" in text:
        named["cover"] = await api.new_cover_request(accepted=True)
    if "operation" in needed:
        named["operation"] = await started(api)
    return {name: str(uid) for name, uid in named.items()}


async def call(
    api: Api,
    who: str,
    route: Route,
    monitor: UUID,
    incident: UUID,
    named: Mapping[str, str],
) -> Any:
    path = route.path.replace("{projectID}", str(api.project))
    path = path.replace("{orgID}", str(api.org))
    path = path.replace("{monitorID}", str(monitor))
    path = path.replace("{incidentID}", str(incident))
    for name, uid in named.items():
        path = path.replace(f"{{{name}ID}}", uid)
    text = FORMS.get(route.path, "").replace("{n}", str(next(api.numbers)))
    for name, uid in named.items():
        text = text.replace(f"{{{name}}}", uid)
    form = text.encode() if route.form else None
    return await api.ask(who, route.method, path, data=form, headers=FORM if route.form else None)


def _seen_by(route: Route) -> set[str]:
    """Returns the users who can see the route. Organization routes include a member of another
    project.
    """
    return {*SEES_SHOP, "neighbour"} if "{orgID}" in route.path else set(SEES_SHOP)


def _status(route: Route, who: str) -> int:
    """Returns the stated status, 200 for a screen or the answer of its form."""
    letter = LETTERS[route.method, route.path]
    if who == "nobody":
        return 303
    if route.path == "/operations/{operationID}":
        # Somebody else started it, so that only admins of its scope see it.
        letter = "A"
    if letter == "G" and who != "global_admin":
        return 403
    if letter not in "*GS" and who not in _seen_by(route):
        return 404
    return 200 if who in MAY.get(letter, PEOPLE) else 403


# Routes that ask one application: to make it costs more than the answers to one route.
SHARES = [GUARDED[first : first + 8] for first in range(0, len(GUARDED), 8)]


@pytest.mark.parametrize("routes", SHARES, ids=lambda routes: f"{routes[0].path} and more")
async def test_each_user_gets_the_stated_answer(api: Api, routes: list[Route]) -> None:
    for route in routes:
        await _each_user_gets_the_stated_answer(api, route)


async def _each_user_gets_the_stated_answer(api: Api, route: Route) -> None:
    made = None
    rendered = 0
    for who in ["nobody", *PEOPLE]:
        expected = _status(route, who)
        # To render a screen costs most. The matrix of the API asks as everybody.
        rendered += expected == 200
        if expected == 200 and rendered > 2 and not IS_SOAK and who != "global_admin":
            continue
        if made is None:
            monitor = await api.new_monitor(interval_seconds=3600)
            made = (monitor.uid, await api.new_incident(), await named_by(api, route))
        audited = await api.rows("select count(*) from audit_entries")
        answer = await call(api, who, route, *made)
        body = await answer.get_data()
        said = (who, route.method, route.path, answer.status_code, body[-600:])
        assert b'{"error"' not in body, said
        if expected == 200:
            allowed = (400,) if route.form and route.path in NOT_CONFIRMED else (200, 303)
            assert answer.status_code in allowed, said
        else:
            assert answer.status_code == expected, said
        if who == "nobody":
            assert answer.headers["Location"].startswith("/sign-in?next=%2F"), said
        if answer.status_code >= 400 or who == "nobody":
            assert await api.rows("select count(*) from audit_entries") == audited, said
        elif route.form:
            # The next user needs objects that the form has not changed.
            made = None
        policy = answer.headers.get("Content-Security-Policy", "")
        assert "default-src 'none'" in policy or answer.status_code == 303, said


async def test_existing_and_missing_objects_look_equal_to_a_stranger(api: Api) -> None:
    """All routes ask one application: each request is refused and changes nothing."""
    monitor = await api.new_monitor()
    incident = await api.new_incident()
    for route in GUARDED:
        if not route.scope:
            continue
        named = await named_by(api, route)
        there = await call(api, "stranger", route, monitor.uid, incident, named)
        ids = ("project", "monitor", "incident", "policy", "schedule", "service", "page", "org")
        path = route.path
        for name in (*ids, "operation"):
            path = path.replace(f"{{{name}ID}}", str(uuid7()))
        form = FORMS[route.path].encode() if route.form else None
        nowhere = await api.ask(
            "stranger", route.method, path, data=form, headers=FORM if route.form else None
        )
        said = (route.method, route.path)
        seen = (there.status_code, await there.get_data())
        assert seen == (404, await nowhere.get_data()), said


async def test_a_form_of_another_site_is_refused(api: Api) -> None:
    """All forms ask one application: each is refused and changes nothing."""
    ids = {
        "project": api.project,
        "org": api.org,
        "monitor": (await api.new_monitor()).uid,
        "incident": await api.new_incident(),
        "schedule": await api.new_schedule(),
        "policy": await api.new_policy(),
        "service": await api.new_service(),
        "page": await api.new_status_page(),
    }
    query = "select count(*), count(*) filter (where enabled), (select sum(seq) from incidents) "
    before = await api.rows(f"{query} from monitors")
    for route in GUARDED:
        if not route.form:
            continue
        path = route.path
        for name, uid in ids.items():
            path = path.replace(f"{{{name}ID}}", str(uid))
        data = FORMS[route.path].encode()
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.test"}):
            sent = {**FORM, **headers}
            answer = await api.ask("org_admin", "POST", path, data=data, headers=sent)
            assert answer.status_code == 403, path
        assert await api.rows(f"{query} from monitors") == before, path


@pytest.mark.parametrize("who", ["viewer", "editor"])
async def test_only_editors_get_secrets_and_buttons(api: Api, who: str) -> None:
    push = await api.new_monitor(type="push", target="", name="Job")
    page = await (await api.ask(who, "GET", f"/monitors/{push.uid}")).get_data(as_text=True)
    writes = who == "editor"
    assert ("leadline_push_" in page) is writes
    for mark in ("Pause</button>", "/edit", "/delete", "Regenerate URL"):
        assert (mark in page) is writes, mark
    guarded = await api.new_monitor(
        name="Guarded",
        config={
            "auth_mode": "basic",
            "username": "u",
            "password": "hidden-word",
            "headers": {"Authorization": "hidden-word", "X-Plain": "shown-word"},
        }
        | {"auth_mode": "none"},
    )
    page = await (await api.ask(who, "GET", f"/monitors/{guarded.uid}")).get_data(as_text=True)
    assert "hidden-word" not in page
    assert "shown-word" in page
    assert "Authorization" not in page


async def test_names_are_escaped(api: Api) -> None:
    nasty = "<img src=x onerror=alert(1)>\"'&"
    made = await api.new_monitor(name=nasty, description=nasty, tags=[nasty])
    incident = await api.new_incident(title=nasty, body=nasty)
    channel = await api.new_channel(name=nasty)
    schedule = await api.new_schedule(channel, name=nasty)
    policy = await api.new_policy(channel)
    template = await api.new_incident_template(name=nasty, title=nasty, body=nasty)
    await api.new_mute(matchers="", monitor=made.uid, reason=nasty)
    for path in (
        f"/projects/{api.project}",
        f"/projects/{api.project}/mutes",
        f"/monitors/{made.uid}",
        f"/monitors/{made.uid}/edit",
        f"/projects/{api.project}/incidents",
        f"/incidents/{incident}",
        f"/projects/{api.project}/incidents/new?template={template}",
        f"/projects/{api.project}/incident-templates",
        f"/projects/{api.project}/incident-templates?show=edit&uid={template}",
        f"/projects/{api.project}/incident-templates?show=delete&uid={template}",
        f"/projects/{api.project}/on-call",
        f"/oncall-schedules/{schedule}/edit",
        f"/escalation-policies/{policy}/edit",
    ):
        page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


async def test_no_screen_has_inline_code_that_its_policy_forbids(api: Api) -> None:
    made = await api.new_monitor()
    for path in (
        "/sign-in",
        f"/projects/{api.project}",
        f"/monitors/{made.uid}",
        f"/monitors/{made.uid}/edit",
        f"/monitors/{made.uid}/delete",
        f"/projects/{api.project}/monitors/new",
        f"/projects/{api.project}/secrets",
        f"/projects/{api.project}/incidents",
        f"/incidents/{await api.new_incident()}",
    ):
        page = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')


@pytest.mark.parametrize(("error", "asks"), [(Unavailable("away"), 0), (RuntimeError("bug"), 1)])
async def test_the_page_of_a_database_failure_does_not_ask_the_database(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, asks: int
) -> None:
    frames: list[str] = []

    async def counted(*given: Any) -> Any:
        frames.append("asked")
        return await outer_frame(*given)

    async def failing(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(error_pages, "outer_frame", counted)
    monkeypatch.setattr(monitor_list, "select_statuses", failing)
    answer = await api.ask("viewer", "GET", f"/projects/{api.project}/monitors")
    text = await answer.get_data(as_text=True)
    assert (answer.status_code, len(frames)) == (500, asks)
    assert ("Internal error" in text, "acme shop" in text) == (True, bool(asks))
