"""Every route is called as every principal through the real app: 401, 404, 403 or an answer, in
this order. The permissions are written a second time here, in the letters of the interface, and
decided by the rules of this file. The tests use neither the route table nor rules/access.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
import pytest
from uuid_utils.compat import uuid7

from leadline.http.server.route_table import ROUTES
from leadline.http.wire.route import NoQuery, Route
from tests.support.app.cast import PEOPLE, TOKENS, Api

# The letters of the interface. The routes below /auth and /public need no credential.
STATED = """
* GET /me
* GET /version
S GET /me/preferences
S PUT /me/preferences
S POST /me/password
* GET /openapi.json
S GET /me/sessions
S DELETE /me/sessions/{sessionID}
* GET /organizations
G POST /organizations
V GET /organizations/{orgID}
O PATCH /organizations/{orgID}
G DELETE /organizations/{orgID}
V GET /organizations/{orgID}/limits
G PUT /organizations/{orgID}/limits
V GET /organizations/{orgID}/projects
O POST /organizations/{orgID}/projects
O GET /organizations/{orgID}/members
O POST /organizations/{orgID}/members
O GET /organizations/{orgID}/audit
O GET /organizations/{orgID}/invitations
O POST /invitations/{invitationID}/resend
O DELETE /invitations/{invitationID}
O PATCH /organizations/{orgID}/members/{membershipID}
O DELETE /organizations/{orgID}/members/{membershipID}
V GET /projects/{projectID}
O PATCH /projects/{projectID}
O DELETE /projects/{projectID}
O GET /organizations/{orgID}/tokens
O POST /organizations/{orgID}/tokens
O DELETE /tokens/{tokenID}
O PATCH /tokens/{tokenID}
O POST /tokens/{tokenID}/rotate
G GET /agent-tokens
G POST /agent-tokens
G DELETE /agent-tokens/{tokenID}
* GET /regions
V GET /operations/{operationID}
V GET /operations/{operationID}/objects
E POST /operations/{operationID}/undo
E POST /operations/{operationID}/stop
V GET /projects/{projectID}/monitors
E POST /projects/{projectID}/monitors
A POST /projects/{projectID}/bundle/plan
A POST /projects/{projectID}/bundle/apply
A POST /projects/{projectID}/bundle/release
E GET /projects/{projectID}/bundle
G GET /admin/file-providers
O GET /organizations/{orgID}/file-providers
E POST /projects/{projectID}/monitors/test
E POST /projects/{projectID}/monitors/actions
V GET /projects/{projectID}/services/{serviceID}/month-report
V GET /status-pages/{pageID}/month-report
V GET /monitors/{monitorID}
E PATCH /monitors/{monitorID}
E DELETE /monitors/{monitorID}
V GET /monitors/{monitorID}/heartbeats
V GET /monitors/{monitorID}/latency
V GET /monitors/{monitorID}/availability
E POST /monitors/{monitorID}/check
E POST /monitors/{monitorID}/push-token
E GET /projects/{projectID}/push-key
E POST /projects/{projectID}/push-key
E PATCH /projects/{projectID}/push-key
E DELETE /projects/{projectID}/push-key
V GET /monitors/{monitorID}/push-runs
E GET /monitors/{monitorID}/push-bodies
E PUT /monitors/{monitorID}/successor
E POST /monitors/{monitorID}/retire
E POST /monitors/{monitorID}/reactivate
E POST /monitors/{monitorID}/convert-to-service
V GET /projects/{projectID}/monitors/{monitorID}/expected-runs
V GET /projects/{projectID}/secrets
E POST /projects/{projectID}/secrets
E PATCH /projects/{projectID}/secrets/{name}
E DELETE /projects/{projectID}/secrets/{name}
O GET /organizations/{orgID}/webhooks
O POST /organizations/{orgID}/webhooks
O PATCH /webhooks/{webhookID}
O DELETE /webhooks/{webhookID}
O POST /webhooks/{webhookID}/test
V GET /projects/{projectID}/notification-channels
E POST /projects/{projectID}/notification-channels
E PATCH /notification-channels/{channelID}
E DELETE /notification-channels/{channelID}
E POST /notification-channels/{channelID}/test
E POST /projects/{projectID}/notification-channels/preview
V GET /projects/{projectID}/alert-routes
E PUT /projects/{projectID}/alert-routes
E POST /projects/{projectID}/alert-routes/test
V GET /projects/{projectID}/mutes
E POST /projects/{projectID}/mutes
V GET /mutes/{muteID}
E PATCH /mutes/{muteID}
E DELETE /mutes/{muteID}
V GET /monitors/{monitorID}/mutes
V GET /projects/{projectID}/services/{serviceID}/mutes
V GET /incidents/{incidentID}/mutes
V GET /projects/{projectID}/incident-templates
E POST /projects/{projectID}/incident-templates
E PATCH /incident-templates/{templateID}
E DELETE /incident-templates/{templateID}
V GET /projects/{projectID}/escalation-policies
E POST /projects/{projectID}/escalation-policies
V GET /projects/{projectID}/default-escalation-policy
E PUT /projects/{projectID}/default-escalation-policy
E PUT /escalation-policies/{policyID}
E DELETE /escalation-policies/{policyID}
V GET /projects/{projectID}/oncall-schedules
E POST /projects/{projectID}/oncall-schedules
E PUT /oncall-schedules/{scheduleID}
E DELETE /oncall-schedules/{scheduleID}
V GET /oncall-schedules/{scheduleID}/current
V GET /oncall-schedules/{scheduleID}/overrides
E POST /oncall-schedules/{scheduleID}/overrides
E DELETE /oncall-overrides/{overrideID}
V GET /oncall-schedules/{scheduleID}/calendar.ics
E POST /oncall-schedules/{scheduleID}/calendar-token
V GET /projects/{projectID}/oncall
V GET /oncall-schedules/{scheduleID}/shifts
V GET /oncall-schedules/{scheduleID}/badge.svg
V GET /oncall-schedules/{scheduleID}/cover-requests
E POST /oncall-schedules/{scheduleID}/cover-requests
V POST /oncall-cover-requests/{requestID}/accept
E DELETE /oncall-cover-requests/{requestID}
V GET /monitors/{monitorID}/notifications
E POST /monitors/{monitorID}/notifications
E DELETE /monitors/{monitorID}/notifications/{channelID}
V GET /projects/{projectID}/maintenance
E POST /projects/{projectID}/maintenance
E POST /projects/{projectID}/maintenance/preview
E DELETE /maintenance/{maintenanceID}
E POST /maintenance/{maintenanceID}/annul
V GET /projects/{projectID}/maintenance-series
E POST /projects/{projectID}/maintenance-series
E DELETE /maintenance-series/{seriesID}
V GET /organizations/{orgID}/status-pages
O POST /organizations/{orgID}/status-pages
V GET /status-pages/{pageID}
O PATCH /status-pages/{pageID}
O PUT /status-pages/{pageID}/domain
O GET /status-pages/{pageID}/subscribers
O DELETE /status-pages/{pageID}/subscribers/{subscriberID}
O DELETE /status-pages/{pageID}
V GET /status-pages/{pageID}/components
V GET /status-pages/{pageID}/render
V GET /status-pages/{pageID}/feed
V GET /status-pages/{pageID}/history
O POST /status-pages/{pageID}/components
O PATCH /components/{componentID}
O DELETE /components/{componentID}
O POST /components/{componentID}/conversion/preview
O POST /components/{componentID}/conversion
V GET /monitors/{monitorID}/sla
E PUT /monitors/{monitorID}/sla-target
V GET /projects/{projectID}/sla
V GET /projects/{projectID}/availability
V GET /projects/{projectID}/sla-target
E PUT /projects/{projectID}/sla-target
E DELETE /projects/{projectID}/sla-target
E PUT /projects/{projectID}/sla-report
V GET /projects/{projectID}/services
E POST /projects/{projectID}/services
V GET /projects/{projectID}/services/{serviceID}
E DELETE /projects/{projectID}/services/{serviceID}
E PUT /projects/{projectID}/services/{serviceID}/declaration
V GET /projects/{projectID}/services/{serviceID}/dependencies
E PUT /projects/{projectID}/services/{serviceID}/dependencies
V GET /projects/{projectID}/services/{serviceID}/reliability
V GET /projects/{projectID}/services/{serviceID}/health
V GET /projects/{projectID}/services/{serviceID}/response-times
V GET /projects/{projectID}/services/{serviceID}/reliability/series
E PUT /projects/{projectID}/services/{serviceID}/sla-target
V GET /projects/{projectID}/services/{serviceID}/alerting
V GET /projects/{projectID}/services/{serviceID}/alerting/state
E PATCH /projects/{projectID}/services/{serviceID}/alerting
E PUT /projects/{projectID}/services/{serviceID}/escalation-policy
E PUT /projects/{projectID}/services/{serviceID}/runbook
E PUT /projects/{projectID}/services/{serviceID}/support-hours
E PUT /projects/{projectID}/services/{serviceID}/sla-target/burn-alerting
V POST /projects/{projectID}/services/{serviceID}/gate
V GET /projects/{projectID}/services/{serviceID}/gate/policy
E PUT /projects/{projectID}/services/{serviceID}/gate/policy
E DELETE /projects/{projectID}/services/{serviceID}/gate/policy
V GET /projects/{projectID}/gate/policy
E PUT /projects/{projectID}/gate/policy
E DELETE /projects/{projectID}/gate/policy
V GET /projects/{projectID}/services/{serviceID}/gate/override
A POST /projects/{projectID}/services/{serviceID}/gate/override
V GET /projects/{projectID}/services/{serviceID}/gate/overrides
V GET /projects/{projectID}/services/{serviceID}/gate/overrides/{overrideID}
A DELETE /projects/{projectID}/services/{serviceID}/gate/overrides/{overrideID}
V POST /projects/{projectID}/services/{serviceID}/gate/policy/replay
V GET /projects/{projectID}/gate/decisions
V GET /projects/{projectID}/gate/decisions/{decisionID}
E POST /projects/{projectID}/services/{serviceID}/changes
V GET /projects/{projectID}/services/{serviceID}/changes
V GET /projects/{projectID}/services/{serviceID}/changes/compare
V GET /projects/{projectID}/incidents/{incidentID}/changes
V GET /projects/{projectID}/incidents
E POST /projects/{projectID}/incidents
E POST /projects/{projectID}/alerts/alertmanager
V GET /incidents/{incidentID}
V GET /incidents/{incidentID}/updates
E POST /incidents/{incidentID}/updates
E POST /incidents/{incidentID}/updates/{updateID}/undo
V GET /incidents/{incidentID}/postmortem
E PUT /incidents/{incidentID}/postmortem
E POST /incidents/{incidentID}/acknowledge
E POST /incidents/{incidentID}/snooze
E POST /incidents/{incidentID}/reassign
* GET /search
* GET /events
T GET /agent/jobs
T POST /agent/heartbeat
T POST /agent/results
T POST /agent/backfill
T POST /agent/certificates
T POST /agent/tests
S GET /me/contact-methods
S POST /me/contact-methods
S PATCH /me/contact-methods/{methodID}
S DELETE /me/contact-methods/{methodID}
S POST /me/contact-methods/{methodID}/code
S POST /me/contact-methods/{methodID}/verify
S POST /me/contact-methods/{methodID}/test
S GET /me/notification-rules
S PUT /me/notification-rules
S POST /me/totp/enroll
S POST /me/totp/enable
S POST /me/totp/disable
G GET /settings/alerting
G PUT /settings/alerting
G GET /settings/auth-policy
G PUT /settings/auth-policy
G GET /settings/oidc
G PUT /settings/oidc
G GET /settings/oidc/group-roles
G POST /settings/oidc/group-roles
G DELETE /settings/oidc/group-roles/{ruleID}
G GET /settings/mail
G PUT /settings/mail
G GET /settings/gateway
G PUT /settings/gateway
G GET /settings/answer-buttons
G PUT /settings/answer-buttons
G GET /settings/branding
G PUT /settings/branding
* GET /monitor-defaults
G GET /settings/monitor-defaults
G PUT /settings/monitor-defaults
G GET /settings/organization-limits
G PUT /settings/organization-limits
G GET /admin/audit
G GET /admin/outbox/dead
G POST /admin/outbox/dead/replay-all
G POST /admin/outbox/dead/{eventID}/replay
G GET /admin/fleet
G GET /admin/users
G POST /admin/users
G PATCH /admin/users/{userID}
G DELETE /admin/users/{userID}
"""
LETTERS = {
    (method, f"/api/v1{path}"): letter
    for letter, method, path in (line.split() for line in STATED.strip().splitlines())
}
LADDER = ["viewer", "editor", "project_admin", "org_admin"]
LEAST = {"V": "viewer", "E": "editor", "A": "project_admin", "O": "org_admin"}
# The routes that a token with restricted actions can use, independent of its role.
FOR_NARROW_TOKENS = {("GET", "/api/v1/me"), ("GET", "/api/v1/version")}
# Routes that ask the gate, and the reads that belong to it.
FOR_GATE_TOKENS = {
    (method, path)
    for method, path in LETTERS
    if "/gate" in path and (method == "GET" or path.endswith(("/gate", "/replay")))
}
# Routes that record changes, and the reads that belong to them.
FOR_CHANGE_TOKENS = {(method, path) for method, path in LETTERS if "/changes" in path}
# Tokens make no tokens, and put nobody on call.
NOT_FOR_TOKENS = (
    ("POST", "/api/v1/organizations/{orgID}/tokens"),
    ("POST", "/api/v1/tokens/{tokenID}/rotate"),
    ("PATCH", "/api/v1/tokens/{tokenID}"),
    ("POST", "/api/v1/agent-tokens"),
    ("POST", "/api/v1/oncall-cover-requests/{requestID}/accept"),
)
# The console has its own matrix, because it answers with HTML and redirects to the sign-in.
API = [route for route in ROUTES if not route.page]
ASKED = [route for route in API if route.action.need.value != "-"]
LADDER_GIVEN: dict[str, Any] = {
    "name": "ladder",
    "steps": [{"after_seconds": 0, "targets": [{"type": "channel", "id": "{channelID}"}]}],
}
SCHEDULE_GIVEN: dict[str, Any] = {
    "name": "schedule",
    "shift_seconds": 604_800,
    "anchor_at": "2026-01-05T00:00:00Z",
    "participants": ["{channelID}"],
}
MAINTENANCE_GIVEN: dict[str, Any] = {
    "starts_at": "2026-06-01T00:00:00Z",
    "ends_at": "2026-06-01T01:00:00Z",
}
BY_HAND: dict[str, Any] = {"source": "manual", "manual_status": "degraded"}
SERVICE = "/projects/{projectID}/services/{serviceID}"
GATE_POLICY: dict[str, Any] = {
    "expected_revision": 1,
    "schema_version": 1,
    "window": "30d",
    "clauses": {
        "budget_exhausted": "block",
        "budget_consumed": "warn",
        "page_burn_firing": "block",
        "ticket_burn_firing": "warn",
        "service_incident_open": "block",
    },
    "budget_consumed_percent": 80,
    "max_seal_lag_seconds": 3600,
    "unknown_behavior": "block",
}
BUNDLE_GIVEN: dict[str, Any] = {
    "format": 1,
    "organization": "acme",
    "project": "shop",
    "monitors": {"till": {"name": "Till", "type": "push"}},
}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/organizations"): {"slug": "new-{n}", "name": "New"},
    ("PATCH", "/organizations/{orgID}"): {"name": "Renamed"},
    ("POST", "/organizations/{orgID}/projects"): {"slug": "new-{n}", "name": "New"},
    ("PATCH", "/projects/{projectID}"): {"name": "Renamed"},
    ("POST", "/organizations/{orgID}/members"): {"email": "someone-{n}@x", "role": "viewer"},
    ("PATCH", "/organizations/{orgID}/members/{membershipID}"): {"role": "editor"},
    ("POST", "/organizations/{orgID}/tokens"): {"name": "ci", "role": "viewer"},
    ("PATCH", "/tokens/{tokenID}"): {"name": "renamed {n}"},
    ("POST", "/tokens/{tokenID}/rotate"): {"overlap_seconds": 3600},
    ("POST", "/agent-tokens"): {"name": "attic {n}", "region": "eu"},
    ("POST", "/admin/users"): {"email": "new-{n}@example.com"},
    ("PATCH", "/admin/users/{userID}"): {"is_global_admin": True},
    ("PUT", "/me/preferences"): {"time_zone": "Europe/Berlin", "hour_clock": 12},
    ("POST", "/me/password"): {"current_password": "x" * 12, "new_password": "y" * 12},
    ("POST", "/me/totp/enable"): {"code": "000000"},
    ("POST", "/me/totp/disable"): {"password": "x" * 12},
    ("POST", "/projects/{projectID}/monitors"): {"name": "new {n}", "type": "push"},
    ("POST", "/projects/{projectID}/monitors/actions"): {
        "act": "pause",
        "selector": {"tag": ["on no monitor"]},
    },
    ("POST", "/projects/{projectID}/monitors/test"): {
        "name": "new",
        "type": "tcp",
        "target": "127.0.0.1:1",
    },
    ("PATCH", "/monitors/{monitorID}"): {"name": "renamed {n}"},
    ("POST", "/projects/{projectID}/secrets"): {"name": "new-{n}", "value": "v"},
    ("POST", "/projects/{projectID}/push-key"): {"creates_monitors": False},
    ("PATCH", "/projects/{projectID}/push-key"): {"creates_monitors": False},
    ("PATCH", "/projects/{projectID}/secrets/{name}"): {"value": "w"},
    ("POST", "/organizations/{orgID}/webhooks"): {"url": "https://hook.example.com/"},
    ("PATCH", "/webhooks/{webhookID}"): {"enabled": False},
    ("POST", "/projects/{projectID}/notification-channels"): {
        "type": "webhook",
        "name": "hook",
        "config": {"url": "https://hook.example.com/"},
    },
    ("PATCH", "/notification-channels/{channelID}"): {"name": "renamed"},
    ("PUT", "/projects/{projectID}/alert-routes"): {},
    ("POST", "/projects/{projectID}/notification-channels/preview"): {"title_template": "{title}"},
    ("POST", "/projects/{projectID}/alert-routes/test"): {"labels": {"team": "shop"}},
    ("POST", "/projects/{projectID}/mutes"): {
        "matchers": "tag=db",
        "reason": "known",
        "ends_at": "2026-01-06T00:00:00Z",
    },
    ("PATCH", "/mutes/{muteID}"): {"reason": "renamed {n}"},
    ("POST", "/projects/{projectID}/incident-templates"): {"name": "new {n}", "title": "New"},
    ("PATCH", "/incident-templates/{templateID}"): {"name": "renamed {n}"},
    ("POST", "/projects/{projectID}/incidents"): {"title": "new {n}"},
    ("POST", "/projects/{projectID}/alerts/alertmanager"): {
        "version": "4",
        "alerts": [{"status": "firing", "fingerprint": "new-{n}"}],
    },
    ("POST", "/incidents/{incidentID}/updates"): {"body": "new {n}"},
    ("PUT", "/incidents/{incidentID}/postmortem"): {"body": "new {n}"},
    ("POST", "/projects/{projectID}/maintenance"): MAINTENANCE_GIVEN,
    ("POST", "/projects/{projectID}/maintenance/preview"): MAINTENANCE_GIVEN,
    ("POST", "/maintenance/{maintenanceID}/annul"): {},
    ("POST", "/projects/{projectID}/maintenance-series"): {
        "rrule": "FREQ=DAILY",
        "starts_at": "2026-01-06T00:00:00Z",
        "duration_seconds": 3600,
    },
    ("PUT", "/settings/branding"): {"product_name": "New"},
    ("PUT", "/settings/monitor-defaults"): {"retries": 1},
    ("PUT", "/settings/organization-limits"): {"monitors": 1_000},
    ("PUT", "/organizations/{orgID}/limits"): {"monitors": 1_000},
    ("PUT", "/settings/alerting"): {"global_silence": {"enabled": False}},
    ("PUT", "/settings/auth-policy"): {"min_password_len": 12},
    ("PUT", "/settings/mail"): {"enabled": False},
    ("PUT", "/settings/gateway"): {"provider": ""},
    ("PUT", "/settings/answer-buttons"): {},
    ("PUT", "/projects/{projectID}/default-escalation-policy"): {"escalation_policy_id": None},
    ("POST", "/incidents/{incidentID}/snooze"): {"minutes": 5},
    ("POST", "/incidents/{incidentID}/reassign"): {"type": "policy", "id": "{policyID}"},
    ("PUT", "/me/notification-rules"): {},
    ("PATCH", "/me/contact-methods/{methodID}"): {"label": "renamed {n}"},
    ("POST", "/me/contact-methods"): {
        "kind": "email",
        "label": "work",
        "config": {"to": "me@example.com"},
    },
    ("POST", "/me/contact-methods/{methodID}/verify"): {"code": "000000"},
    ("PUT", "/settings/oidc"): {"enabled": False},
    ("POST", "/settings/oidc/group-roles"): {"value": "sre", "org_id": "{orgID}", "role": "viewer"},
    ("POST", "/organizations/{orgID}/status-pages"): {"slug": "new-{n}", "title": "New"},
    ("PATCH", "/status-pages/{pageID}"): {"title": "Renamed {n}"},
    ("PUT", "/status-pages/{pageID}/domain"): {"domain": "status-{n}.example.com"},
    ("POST", "/status-pages/{pageID}/components"): {
        "name": "new {n}",
        "manual_status": "operational",
    },
    ("PATCH", "/components/{componentID}"): {"name": "renamed {n}"},
    ("POST", "/components/{componentID}/conversion/preview"): BY_HAND,
    ("POST", "/components/{componentID}/conversion"): {
        **BY_HAND,
        "revision": 1,
        "page_generation": 2,
    },
    ("PUT", "/monitors/{monitorID}/sla-target"): {"objective": 99.9},
    ("PUT", "/projects/{projectID}/sla-target"): {"objective": 99.9},
    ("PUT", "/projects/{projectID}/sla-report"): {"enabled": True},
    ("POST", "/projects/{projectID}/services"): {"slug": "new-{n}"},
    ("POST", "/projects/{projectID}/bundle/plan"): BUNDLE_GIVEN,
    ("POST", "/projects/{projectID}/bundle/apply"): BUNDLE_GIVEN,
    ("POST", "/projects/{projectID}/bundle/release"): {},
    ("PUT", f"{SERVICE}/declaration"): {
        "expected_revision": 0,
        "monitors": ["{monitorID}"],
        "sli": ["{monitorID}"],
    },
    ("PUT", f"{SERVICE}/dependencies"): {"depends_on": [], "graph_generation": 0},
    ("PUT", f"{SERVICE}/sla-target"): {"objective": 99.9},
    ("PATCH", f"{SERVICE}/alerting"): {"renotify_seconds": 60},
    ("PUT", f"{SERVICE}/escalation-policy"): {"escalation_policy_id": ""},
    ("PUT", f"{SERVICE}/runbook"): {"runbook_url": ""},
    ("PUT", f"{SERVICE}/support-hours"): {"windows": []},
    ("PUT", f"{SERVICE}/sla-target/burn-alerting"): {"burn_alert_enabled": True},
    ("PUT", f"{SERVICE}/gate/policy"): GATE_POLICY,
    ("POST", f"{SERVICE}/gate/policy/replay"): GATE_POLICY,
    ("PUT", "/projects/{projectID}/gate/policy"): GATE_POLICY,
    ("POST", f"{SERVICE}/changes"): {
        "kind": "deploy",
        "phase": "started",
        "source": "ci",
        "external_id": "new-{n}",
    },
    ("POST", f"{SERVICE}/gate/override"): {
        "policy_revision": 1,
        "reason": "It mends it.",
        "expires_at": "2026-01-06T00:00:00Z",
    },
    ("PUT", "/monitors/{monitorID}/successor"): {"service_id": None},
    ("POST", "/monitors/{monitorID}/convert-to-service"): {"sli": []},
    ("POST", "/monitors/{monitorID}/notifications"): {"channel_id": "{channelID}"},
    ("POST", "/projects/{projectID}/escalation-policies"): LADDER_GIVEN,
    ("PUT", "/escalation-policies/{policyID}"): LADDER_GIVEN,
    ("POST", "/projects/{projectID}/oncall-schedules"): SCHEDULE_GIVEN,
    ("PUT", "/oncall-schedules/{scheduleID}"): SCHEDULE_GIVEN,
    ("POST", "/oncall-schedules/{scheduleID}/overrides"): {
        "channel_id": "{channelID}",
        "starts_at": "2026-01-05T00:00:00Z",
        "ends_at": "2026-01-06T00:00:00Z",
    },
    ("POST", "/oncall-schedules/{scheduleID}/cover-requests"): {
        "channel_id": "{channelID}",
        "starts_at": "2026-01-05T00:00:00Z",
        "ends_at": "2026-01-06T00:00:00Z",
    },
}
QUERIES: dict[str, dict[str, str]] = {
    "/organizations/{orgID}": {"dry_run": "true"},
    "/projects/{projectID}": {"dry_run": "true"},
    f"{SERVICE}/response-times": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
    f"{SERVICE}/reliability/series": {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "step": "hour",
    },
    f"{SERVICE}/changes": {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"},
    f"{SERVICE}/changes/compare": {"source": "ci", "external_id": "1"},
    f"{SERVICE}/gate/policy": {"expected_revision": "1"},
    "/projects/{projectID}/gate/policy": {"expected_revision": "1"},
    "/projects/{projectID}/gate/decisions": {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-02-01T00:00:00Z",
    },
    "/search": {"q": "shop"},
    "/oncall-schedules/{scheduleID}/shifts": {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
    },
    "/monitors/{monitorID}/latency": {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
    },
}
# Requests that pass authorization and fail for their content: the users have no passwords, and
# objects in use are not deleted.
REFUSED_LATER = {
    ("POST", "/me/password"): 400,
    ("POST", "/me/totp/enable"): 400,
    ("POST", "/me/totp/disable"): 400,
    ("POST", "/monitors/{monitorID}/retire"): 409,
    ("POST", "/monitors/{monitorID}/reactivate"): 409,
    ("POST", "/monitors/{monitorID}/convert-to-service"): 400,
    # The channel is not on call, and the request is accepted.
    ("POST", "/oncall-schedules/{scheduleID}/cover-requests"): 400,
    ("POST", "/oncall-cover-requests/{requestID}/accept"): 409,
    # The operation is a deletion, and the selector matches no monitor.
    ("POST", "/operations/{operationID}/undo"): 400,
    ("POST", "/operations/{operationID}/stop"): 400,
    ("POST", "/projects/{projectID}/monitors/actions"): 400,
    # An address that belongs to no member is invited.
    ("POST", "/organizations/{orgID}/members"): 202,
    # No issuer is set.
    ("POST", "/settings/oidc/group-roles"): 400,
    # Dry runs.
    ("DELETE", "/organizations/{orgID}"): 200,
    ("DELETE", "/projects/{projectID}"): 200,
    ("GET", f"{SERVICE}/gate/override"): 404,
    # The project has no key.
    ("GET", "/projects/{projectID}/push-key"): 404,
    ("PATCH", "/projects/{projectID}/push-key"): 404,
    ("DELETE", "/projects/{projectID}/push-key"): 404,
}


def stated(who: str, method: str, path: str) -> int:
    """Returns the status that the letters require; 0 if the route must answer."""
    letter = LETTERS[method, path]
    if who == "nobody" or letter == "T":
        # Sessions and user tokens are not accepted as agents.
        return 401
    hidden = _is_hidden(who, path)
    if hidden:
        return 404
    actions = TOKENS[who][3] if who in TOKENS else None
    if actions is not None and (method, path) not in _open_to(actions):
        return 403
    if who in TOKENS and (method, path) in NOT_FOR_TOKENS:
        return 403
    if letter == "S" and who not in PEOPLE:
        return 403
    if letter == "G" and who != "global_admin":
        return 403
    if "/operations/{operationID}" in path:
        # The operation belongs to another user: only admins of its scope can see it.
        letter = "A"
    if letter in LEAST and _rank(who, path) < LADDER.index(LEAST[letter]):
        return 403
    return 0


def _open_to(actions: list[str]) -> set[tuple[str, str]]:
    opened = {"gate:evaluate": FOR_GATE_TOKENS, "change:record": FOR_CHANGE_TOKENS}
    return FOR_NARROW_TOKENS.union(*(opened[action] for action in actions))


def _membership(who: str) -> tuple[str, str | None, str] | None:
    if who in TOKENS:
        tenant, project, role, _ = TOKENS[who]
        return tenant, project, role.value
    place = PEOPLE[who]
    return (place[0], place[1], place[2].value) if place else None


OF_THE_SHOP = (
    "projectID",
    "monitorID",
    "channelID",
    "incidentID",
    "templateID",
    "muteID",
    "policyID",
    "scheduleID",
    "overrideID",
    "requestID",
    "decisionID",
    "maintenanceID",
    "seriesID",
    "pageID",
    "componentID",
    "operationID",
)


def _scope(path: str) -> str:
    """Returns the scope of the ids in the path. All objects belong to Acme and its shop."""
    if path.endswith("/agent-tokens/{tokenID}"):
        return ""
    if any(name in path for name in ("{orgID}", "{tokenID}", "{webhookID}", "{invitationID}")):
        return "organization"
    return "shop" if any(f"{{{name}}}" in path for name in OF_THE_SHOP) else ""


def _is_hidden(who: str, path: str) -> bool:
    if not _scope(path) or who == "global_admin":
        return False
    found = _membership(who)
    if found is None or found[0] != "acme":
        return True
    return _scope(path) == "shop" and found[1] not in (None, "shop")


def _rank(who: str, path: str) -> int:
    if who == "global_admin":
        return LADDER.index("org_admin")
    found = _membership(who)
    assert found is not None
    _, project, role = found
    # On the organization itself every role except org_admin counts as viewer.
    if _scope(path) == "organization" and (project or role != "org_admin"):
        return LADDER.index("viewer")
    return LADDER.index(role)


def test_the_route_table_matches_the_stated_letters() -> None:
    told = {(r.method, r.path): r.action.need.value for r in ASKED}
    assert told == LETTERS


def test_routes_without_credentials_are_below_fixed_prefixes() -> None:
    open_paths = {r.path for r in API if r not in ASKED}
    prefixes = ("/auth/", "/api/v1/public/", "/status/", "/ping/")
    assert all(path.startswith(prefixes) for path in open_paths)


# Their answers depend on earlier requests: limits of attempts, the generation of a graph, a key.
ALONE = re.compile("/me/password|/me/totp/|/dependencies$|/push-key$")
# Routes that ask one application: to make it costs more than the answers to one route.
SHARED = [route for route in ASKED if not ALONE.search(route.path)]
SHARES = [
    *(SHARED[first : first + 8] for first in range(0, len(SHARED), 8)),
    *([route] for route in ASKED if ALONE.search(route.path)),
]


async def _ids(api: Api, who: str, path: str) -> dict[str, UUID | str]:
    """Creates new objects for the ids in the path and the body, because a write can delete them."""
    named = _named(path)
    owner = who if who in PEOPLE else "viewer"
    made: dict[str, UUID | str] = {"orgID": api.org, "projectID": api.project}
    if "monitorID" in named:
        kind = {"type": "push", "target": ""} if path.endswith("/push-token") else {}
        made["monitorID"] = (await api.new_monitor(**kind)).uid
    if "channelID" in named:
        made["channelID"] = channel = await api.new_channel()
        if path.endswith("/notifications/{channelID}"):
            await api.attach(UUID(str(made["monitorID"])), channel)
    if "sessionID" in named:
        made["sessionID"] = (await api.new_session(owner))[0]
    if "methodID" in named:
        is_verified = not path.endswith("/code")
        made["methodID"] = await api.new_contact_method(owner, verified=is_verified)
    if "incidentID" in named:
        made["incidentID"] = await api.new_incident(explained=path.endswith("/postmortem"))
    if "updateID" in named:
        made["updateID"] = await api.new_public_update(UUID(str(made["incidentID"])))
    makers: dict[str, Callable[[], Awaitable[UUID | str]]] = {
        "membershipID": api.new_membership,
        "tokenID": api.new_agent_token if "/agent-tokens/" in path else api.new_token,
        "userID": api.new_user,
        "invitationID": api.new_invitation,
        "webhookID": api.new_webhook,
        "name": api.new_secret,
        "templateID": api.new_incident_template,
        "muteID": api.new_mute,
        "ruleID": api.new_group_role,
        "eventID": api.new_dead_letter,
        "pageID": api.new_status_page,
        "componentID": api.new_component,
        "operationID": api.new_operation,
    }
    for name, make in makers.items():
        if name in named:
            made[name] = await make()
    if "subscriberID" in named:
        made["subscriberID"] = await api.new_subscriber(UUID(str(made["pageID"])))
    return made | await _routing(api, path)


def _named(path: str) -> set[str]:
    short = path.removeprefix("/api/v1")
    bodies = [str(body) for (_, of), body in BODIES.items() if of == short]
    return set(re.findall(r"\{([A-Za-z]+)\}", " ".join([path, *bodies])))


async def _routing(api: Api, path: str) -> dict[str, UUID | str]:
    """Creates escalation policies and schedules without references, if the route needs them."""
    made: dict[str, UUID | str] = {}
    if path.endswith("/projects/{projectID}/sla-target"):
        await api.aim_for_project()
    if "{serviceID}" in path:
        made["serviceID"] = service = await api.new_service(aims=path.endswith("/burn-alerting"))
        if path.endswith("/compare"):
            await api.new_change(service)
    if "{policyID}" in path or path.endswith("/reassign"):
        made["policyID"] = await api.new_policy()
    if "{scheduleID}" in path:
        made["scheduleID"] = await api.new_schedule()
    if "{requestID}" in path:
        made["requestID"] = await api.new_cover_request(accepted=path.endswith("/accept"))
    if "{maintenanceID}" in path:
        made["maintenanceID"] = await api.new_maintenance()
    if "{seriesID}" in path:
        made["seriesID"] = await api.new_series()
    if "/gate" in path:
        made |= await _gating(api, path, made.get("serviceID"))
    elif "{overrideID}" in path:
        made["overrideID"] = await api.new_override()
    return made


async def _gating(api: Api, path: str, service: UUID | str | None) -> dict[str, UUID | str]:
    """Creates the first revision of a gate policy and the objects that belong to it."""
    made: dict[str, UUID | str] = {}
    uid = UUID(str(service)) if service is not None else None
    async with api.pool.transaction("forget_policies") as tx:
        await tx.execute("delete from gate_policies")
    await api.new_gate_policy(uid)
    if "{overrideID}" in path and uid is not None:
        made["overrideID"] = await api.new_gate_override(uid)
    if "{decisionID}" in path:
        made["decisionID"] = await api.new_decision(await api.new_service())
    return made


def _filled(value: Any, known: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, known) for inner in value]
    if isinstance(value, str):
        for name, found in known.items():
            value = value.replace(f"{{{name}}}", str(found))
    return value


async def _call(api: Api, who: str, route: Route, ids: Mapping[str, UUID | str]) -> Any:
    number = next(api.numbers)
    path = route.path
    for name, uid in ids.items():
        path = path.replace(f"{{{name}}}", str(uid))
    short = route.path.removeprefix("/api/v1")
    body = _filled(BODIES.get((route.method, short)), {**ids, "n": number})
    # A stream does not end; HEAD runs the same handler without it.
    method = "HEAD" if short == "/events" else route.method
    return await api.ask(who, method, path, body, query=QUERIES.get(short))


@pytest.mark.parametrize("routes", SHARES, ids=lambda routes: f"{routes[0].path} and more")
async def test_each_principal_gets_the_stated_answer(api: Api, routes: list[Route]) -> None:
    await api.new_monitor()
    for route in routes:
        await _each_principal_gets_the_stated_answer(api, route)


async def _each_principal_gets_the_stated_answer(api: Api, route: Route) -> None:
    short = route.path.removeprefix("/api/v1")
    ids: dict[str, UUID | str] = {}
    are_used = True
    for who in ["nobody", *PEOPLE, *TOKENS]:
        # A session belongs to one user.
        if are_used or {"sessionID", "methodID"} & set(ids):
            ids = await _ids(api, who, route.path)
        audited = await api.rows("select count(*) from audit_entries")
        response = await _call(api, who, route, ids)
        are_used = route.method != "GET" and response.status_code < 400
        expected = stated(who, route.method, route.path) or REFUSED_LATER.get(
            (route.method, short), route.status
        )
        assert response.status_code == expected, (
            who,
            route.method,
            route.path,
            await response.get_data(),
        )
        if response.status_code >= 400:
            assert await api.rows("select count(*) from audit_entries") == audited, who
            assert list(await response.get_json()) == ["error"]


async def test_existing_and_missing_objects_look_equal_to_a_stranger(api: Api) -> None:
    """All routes ask one application: each request is refused and changes nothing."""
    await api.new_monitor()
    for route in ASKED:
        if not _scope(route.path):
            continue
        ids = await _ids(api, "stranger", route.path)
        nowhere: dict[str, UUID | str] = {name: uuid7() for name in ids}
        answers = [
            await _call(api, who, route, where)
            for who, where in [
                ("stranger", ids),
                ("stranger", nowhere),
                ("org_admin", nowhere),
                ("global_admin", nowhere),
                ("foreign_token", ids),
                ("foreign_token", nowhere),
            ]
        ]
        seen = {
            (a.status_code, await a.get_data(), tuple(sorted(a.headers.items()))) for a in answers
        }
        assert len(seen) == 1, (route.method, route.path, seen)
        assert next(iter(seen))[:2] == (404, b'{"error":"not_found"}'), (route.method, route.path)


@pytest.mark.parametrize("bad", ["1", "not-a-uuid", "{uid}x", "{hex}", "%00", "..%2f.."])
async def test_a_malformed_id_is_a_404(api: Api, bad: str) -> None:
    text = bad.replace("{uid}", str(api.org)).replace("{hex}", api.org.hex)
    response = await api.ask("org_admin", "GET", f"/api/v1/organizations/{text}")
    assert response.status_code == 404
    assert await response.get_data() == b'{"error":"not_found"}'


async def test_a_membership_of_another_organization_is_not_found_under_this_one(api: Api) -> None:
    membership = await api.new_membership()
    for method, body in (("PATCH", {"role": "editor"}), ("DELETE", None)):
        path = f"/api/v1/organizations/{api.orgs['other'][1]}/members/{membership}"
        response = await api.ask("stranger", method, path, body)
        assert response.status_code == 404
    assert await api.rows("select role::text from memberships where uid = %(u)s", u=membership) == [
        ("viewer",)
    ]


async def test_a_monitor_is_not_found_under_another_project(api: Api) -> None:
    monitor = (await api.new_monitor()).uid
    for place in ("acme/mill", "other/shop"):
        path = f"/api/v1/projects/{api.projects[place][1]}/monitors/{monitor}/expected-runs"
        assert (await api.ask("org_admin", "GET", path)).status_code == 404, place


ASKED_WITH_QUERY = [
    route for route in ASKED if route.method == "GET" and route.query is not NoQuery
]


async def test_a_nul_in_a_query_is_no_internal_error(api: Api) -> None:
    await api.new_monitor()
    for route in ASKED_WITH_QUERY:
        ids = await _ids(api, "org_admin", route.path)
        path = _filled(route.path, ids)
        # A stream does not end; HEAD runs the same handler without it.
        method = "HEAD" if path.endswith("/events") else "GET"
        for field in msgspec.structs.fields(route.query):
            for who in ("org_admin", "global_admin"):
                answer = await api.ask(who, method, f"{path}?{field.encode_name}=a%00b")
                assert answer.status_code < 500, (route.path, field.encode_name)


# A new value of a secret sets rotated_at, even if it is equal to the former one: the holder states
# that it was rotated.
ROTATES = {"/api/v1/projects/{projectID}/secrets/{name}"}
UPDATES = [
    route for route in ASKED if route.method in ("PATCH", "PUT") and route.path not in ROTATES
]


@pytest.mark.parametrize("route", UPDATES, ids=lambda route: f"{route.method} {route.path}")
async def test_an_update_without_effect_is_not_audited(api: Api, route: Route) -> None:
    """Sends two equal requests. The first one can change something, the second does not."""
    await api.new_monitor()
    ids = await _ids(api, "global_admin", route.path)
    audited = []
    for _ in range(2):
        # Bodies with a number in them are equal too.
        api.numbers = count(100)
        await _call(api, "global_admin", route, ids)
        audited.append(await api.rows("select action, target from audit_entries order by id"))
    assert audited[1] == audited[0]
