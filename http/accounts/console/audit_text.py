"""Audit entries as sentences: what was done, to which object, and the recorded details."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.accounts.queries.audit_log import AuditRow
from ....storage.accounts.queries.audit_names import AuditedObject

_KINDS: Final = {
    "agent_token": "agent token",
    "channel": "channel",
    "escalation_policy": "escalation policy",
    "group_role": "role of a group",
    "incident": "incident",
    "incident_template": "incident template",
    "invitation": "invitation",
    "maintenance": "maintenance",
    "maintenance_series": "maintenance series",
    "membership": "membership",
    "monitor": "monitor",
    "mute": "mute",
    "oncall_cover_request": "cover request",
    "oncall_override": "override",
    "oncall_schedule": "schedule",
    "organization": "organization",
    "outbox_event": "message",
    "project": "project",
    "secret": "secret",
    "service": "service",
    "status_component": "component",
    "status_page": "status page",
    "subscriber": "subscriber",
    "token": "API token",
    "user": "user",
    "webhook": "webhook",
}
_VERBS: Final = {
    "annul": "Annulled",
    "attach": "Attached a channel to",
    "create": "Created",
    "delete": "Deleted",
    "detach": "Detached a channel from",
    "update": "Changed",
    "test": "Tested",
}
# Actions whose words do not follow from their verb. The object is appended.
_ACTIONS: Final = {
    "agent_token.revoke": "Revoked",
    "bundle.release": "Released the objects of a bundle in",
    "gate_override.create": "Opened a gate override for",
    "gate_override.revoke": "Revoked a gate override of",
    "gate_policy.create": "Created the gate policy of",
    "gate_policy.delete": "Deleted the gate policy of",
    "gate_policy.update": "Changed the gate policy of",
    "incident.snooze": "Snoozed",
    "oncall_cover_request.accept": "Accepted",
    "incident.reassign": "Reassigned",
    "incident.answer": "Answered a message about",
    "incident.acknowledge": "Acknowledged",
    "incident.note": "Posted an update to",
    "incident.postmortem": "Edited the postmortem of",
    "incident.status": "Changed the status of",
    "invitation.accept": "Accepted",
    "invitation.create": "Sent",
    "invitation.delete": "Withdrew",
    "invitation.resend": "Sent again",
    "maintenance.end": "Ended",
    "maintenance.repeat": "Planned",
    "maintenance.repeat_end": "Ended",
    "member.create": "Added",
    "member.delete": "Removed",
    "member.keep": "Kept",
    "member.update": "Changed",
    "monitor.convert": "Converted to a service",
    "monitor.reactivate": "Reactivated",
    "monitor.retire": "Retired",
    "monitor.supersede": "Set the successor of",
    "monitor.target": "Changed the objective of",
    "mute.end": "Ended",
    "organization.limits": "Set the limits of",
    "outbox.replay": "Sent again",
    "outbox.replay_all": "Sent failed deliveries again",
    "project.alert_routes": "Changed the alert routes of",
    "project.report": "Changed the SLA report of",
    "project.target": "Changed the objective of",
    "provider.release": "Released the objects of a file provider",
    "service.declare": "Declared",
    "settings.alerting": "Changed the mute of all alerts",
    "settings.auth_policy": "Changed the sign-in policy",
    "settings.branding": "Changed the branding",
    "settings.mail": "Changed the mail server",
    "contact_method.verify": "Verified",
    "contact_rules.update": "Changed the notification rules of",
    "settings.answer_buttons": "Changed the secrets of answer buttons",
    "settings.gateway": "Changed the gateway for SMS and calls",
    "settings.monitor_defaults": "Changed the monitor defaults",
    "settings.oidc": "Changed single sign-on",
    "settings.organization_limits": "Changed the limits of organizations",
    "status_component.convert": "Converted",
    "status_page.claim_domain": "Claimed a domain for",
    "status_page.lose_domain": "Moved away the domain of",
    "status_page.remove_subscriber": "Removed a subscriber of",
    "status_page.set_domain": "Changed the domain of",
    "token.rotate": "Rotated",
    "user.groups_unread": "Received no usable groups of",
    "user.link_identity": "Linked an identity to",
    "user.password": "Changed the password of",
    "user.provision": "Created from single sign-on",
    "user.reset_by_mail": "Reset by e-mail the password of",
    "user.reset_password": "Reset the password of",
    "user.totp_disable": "Disabled two-factor authentication of",
    "user.totp_enable": "Enabled two-factor authentication of",
    "user.totp_remove": "Removed two-factor authentication of",
}
_PATHS: Final = {
    "monitor": "/monitors/{uid}",
    "service": "/services/{uid}",
    "incident": "/incidents/{uid}",
    "project": "/projects/{uid}",
    "status_page": "/projects/{project}/status-pages/{uid}",
    "channel": "/projects/{project}/channels",
    "incident_template": "/projects/{project}/incident-templates",
    "mute": "/projects/{project}/mutes",
    "oncall_schedule": "/projects/{project}/on-call",
    "escalation_policy": "/projects/{project}/on-call",
}
# The words of these actions name the object that the entry states second.
_OF_SECOND: Final = {"gate_override", "membership", "subscriber"}
_OBJECT: Final = re.compile(r"([a-z_]+):([0-9a-f]{8}-[0-9a-f-]{27})(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class AuditSentence:
    """`name` is empty if the object is gone; `details` then begin with its id.

    `path` is empty if no screen shows the object.
    """

    did: str
    kind: str
    name: str
    path: str
    details: str


def objects_of(rows: Iterable[AuditRow]) -> set[UUID]:
    """Returns the ids of the objects that entries begin with."""
    found = (_OBJECT.match(_about(row)) for row in rows)
    return {UUID(one[2]) for one in found if one is not None}


def sentence(row: AuditRow, objects: Mapping[tuple[str, UUID], AuditedObject]) -> AuditSentence:
    """Returns the entry as a sentence. An unknown action or target is shown as recorded."""
    did = verb_of(row.action)
    about = _about(row)
    found = _OBJECT.match(about)
    if found is None:
        return AuditSentence(did, "", "", "", row.target)
    kind, uid = found[1], UUID(found[2])
    details = _without_project(about[found.end() :])
    word = _KINDS.get(kind, kind.replace("_", " "))
    known = objects.get((kind, uid))
    if known is None:
        return AuditSentence(did, word, "", "", f"{uid} {details}".strip())
    path = _PATHS.get(kind, "")
    if "{project}" in path and known.project is None:
        path = ""
    return AuditSentence(
        did, word, known.name, path.format(uid=uid, project=known.project), details
    )


def verb_of(action: str) -> str:
    """Returns the words of an action. They precede the object."""
    if action in _ACTIONS:
        return _ACTIONS[action]
    return _VERBS.get(action.partition(".")[2], action)


def _about(row: AuditRow) -> str:
    """Returns the target from the object on that the sentence names."""
    first = _OBJECT.match(row.target)
    if first is None or first[1] not in _OF_SECOND:
        return row.target
    rest = row.target[first.end() :]
    return rest if _OBJECT.match(rest) else row.target


def _without_project(details: str) -> str:
    """Returns the details without the project that objects of projects state first."""
    found = _OBJECT.match(details)
    return details[found.end() :] if found and found[1] == "project" else details
