"""Names of the roles, and what each role may do."""

from collections.abc import Mapping
from typing import Final

ROLE_WORDS: Final[Mapping[str, str]] = {
    "viewer": "Viewer",
    "editor": "Editor",
    "project_admin": "Project admin",
    "org_admin": "Organization admin",
}
_SIGN_IN_WORDS: Final[Mapping[str, str]] = {
    "local": "Password",
    "oidc": "SSO",
    "both": "Password, SSO",
    "none": "Not set up",
}


def sign_in_words(auth_type: str, *, has_factor: bool) -> str:
    """Returns the ways to sign in: `Password, 2FA`."""
    words = _SIGN_IN_WORDS[auth_type]
    return f"{words}, 2FA" if has_factor else words


# Each action with the lowest role that can do it.
ABILITIES: Final = (
    ("See monitors, services, incidents, figures and schedules", "viewer"),
    ("Acknowledge incidents, write updates and postmortems", "editor"),
    ("Add, change and delete monitors, services and objectives", "editor"),
    ("Plan maintenance, change schedules and escalation policies", "editor"),
    ("Change channels and secrets", "editor"),
    ("Change gate policies, record changes, export the configuration", "editor"),
    ("Apply bundles", "project_admin"),
    ("Override the gate", "project_admin"),
    ("Change status pages and their subscribers", "org_admin"),
    ("Rename, create and delete projects", "org_admin"),
    ("Invite members and change their roles", "org_admin"),
    ("Manage API tokens and webhooks, read the audit log", "org_admin"),
)
