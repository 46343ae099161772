"""Entries of the settings list. It contains only the entries that the user's role permits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.accounts.rules.access import Rank


@dataclass(frozen=True, slots=True)
class SettingsEntry:
    name: str
    label: str
    path: str
    # What the page contains.
    about: str


@dataclass(frozen=True, slots=True)
class SettingsGroup:
    title: str
    entries: tuple[SettingsEntry, ...]


_PROJECT: Final = (
    ("general", "General", "settings/general", "Name, slug, deletion", Rank.ORG_ADMIN),
    ("secrets", "Secrets", "secrets", "Values that monitors refer to", Rank.VIEWER),
    ("channels", "Channels", "channels", "Where alerts are sent", Rank.VIEWER),
    ("routes", "Alert routes", "alert-routes", "Who is paged for external alerts", Rank.VIEWER),
    ("mutes", "Mutes", "mutes", "Alerts that are not sent for a while", Rank.VIEWER),
    (
        "templates",
        "Incident templates",
        "incident-templates",
        "Prepared texts",
        Rank.VIEWER,
    ),
    ("bundle", "Configuration as code", "bundle", "Export, plan and apply", Rank.EDITOR),
)
_ORGANIZATION: Final = (
    ("projects", "Projects", "projects", "Create, open and delete projects"),
    ("people", "Organization members", "people", "Roles, invitations, what each role may do"),
    ("tokens", "API tokens", "tokens", "Access for pipelines and scripts"),
    ("webhooks", "Webhooks", "webhooks", "Signed events for other programs"),
    ("audit", "Audit log", "audit", "Who changed what"),
)
_ALERTS: Final = (
    ("defaults", "Monitor defaults", "/admin/monitor-defaults", "Interval, timeout, retries"),
    ("silence", "Mute all alerts", "/admin/silence", "Stop all alerts for a while"),
    ("failed", "Failed deliveries", "/admin/dead-letters", "Retry what was not delivered"),
)
_INSTALLATION: Final = (
    ("users", "Users", "/admin/people", "Accounts and global admins"),
    ("limits", "Organization limits", "/admin/organization-limits", "Monitors, interval, runs"),
    ("policy", "Sign-in policy", "/admin/sign-in-policy", "Passwords, two-factor, sessions"),
    ("sso", "Single sign-on", "/admin/single-sign-on", "OpenID Connect"),
    ("group-roles", "Roles of groups", "/admin/group-roles", "Groups of the identity provider"),
    ("mail", "Mail server", "/admin/mail", "Sender of e-mail"),
    ("gateway", "SMS and calls", "/admin/gateway", "Gateway for contact methods by phone"),
    ("buttons", "Answers by buttons", "/admin/answer-buttons", "Slack and Telegram"),
    ("branding", "Branding", "/admin/branding", "Logo and accent colour of status pages"),
    ("fleet", "Workers and agents", "/admin/fleet", "Where checks run"),
    ("instance-audit", "Installation audit log", "/admin/audit", "Changes of these settings"),
)


def found_in(groups: Sequence[SettingsGroup], text: str) -> list[SettingsGroup]:
    """Returns the entries whose name or description contains a text, in their groups."""
    wanted = text.lower()
    found = []
    for group in groups:
        entries = tuple(
            one for one in group.entries if wanted in f"{one.label}\n{one.about}".lower()
        )
        if entries:
            found.append(SettingsGroup(group.title, entries))
    return found


def project_group(project: UUID, name: str, rank: Rank) -> SettingsGroup:
    """Returns the pages of a project that `rank` permits."""
    base = f"/projects/{project}/"
    entries = [
        SettingsEntry(key, label, base + path, about)
        for key, label, path, about, least in _PROJECT
        if rank >= least
    ]
    return SettingsGroup(f"Project: {name}", tuple(entries))


def organization_group(organization: UUID, name: str) -> SettingsGroup:
    base = f"/organizations/{organization}/"
    entries = [
        SettingsEntry(key, label, base + path, about) for key, label, path, about in _ORGANIZATION
    ]
    return SettingsGroup(name, tuple(entries))


def installation_group() -> SettingsGroup:
    return SettingsGroup(
        "Installation", tuple(SettingsEntry(*row) for row in (*_ALERTS, *_INSTALLATION))
    )
