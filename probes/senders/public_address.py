"""Rules of the public address of an installation, which links of messages begin with."""

import logging
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

log = logging.getLogger("leadline.public_address")

LONGEST: Final = 100
# First segments of the paths of the installation, and of those at a custom domain: a path shows
# whether it has the prefix.
TAKEN: Final = frozenset(
    (
        *("admin", "answer", "api", "auth", "badge.svg", "escalation-policies", "healthz", "help"),
        *("history", "incidents", "invitations", "metrics", "monitors", "month", "operations"),
        *("oncall-schedules", "organizations", "ping", "preferences", "profile", "projects"),
        *("readyz", "reset", "services", "sign-in", "signed-out", "static", "status"),
        *("subscribe", "theme", "widget"),
    )
)
_FORM: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")


def base_path_fault(text: str) -> str | None:
    """Returns the reason to refuse a prefix; None if it is valid or empty."""
    if not text:
        return None
    if len(text) > LONGEST or not _FORM.fullmatch(text):
        return (
            "must be empty or a path such as /leadline: at most"
            f" {LONGEST} of the characters a-z, A-Z, 0-9, '-', '.', '_', '~' and '/', a '/' at the"
            " beginning and none at the end, and no segment that begins with '.'"
        )
    if text.split("/")[1] in TAKEN:
        return f"must not begin with one of /{', /'.join(sorted(TAKEN))}"
    return None


def outside_base_path(public_base_url: str, base: str) -> str | None:
    """Returns the reason to refuse a public address; None if it is empty or has the prefix."""
    if not public_base_url or not base:
        return None
    path = urlsplit(public_base_url).path.rstrip("/")
    return None if path == base else f"must have the path of server.base_path, {base}"


def redirect_outside_base_path(redirect_url: str, base: str) -> str | None:
    """Returns the reason to refuse a redirect URL; None if it is empty or below the prefix."""
    if not redirect_url or not base or urlsplit(redirect_url).path.startswith(f"{base}/"):
        return None
    return f"must be below the path of server.base_path, {base}"


def used_address(setting: str, stored: str, configured: str, fault: str | None) -> str:
    """Returns the stored address; with a fault the configured one.

    The address can be older than the prefix. Its host then has another application, which must not
    receive the tokens of links.
    """
    if fault is None:
        return stored
    _report(setting, stored, fault)
    return configured


@lru_cache(maxsize=64)
def _report(setting: str, stored: str, fault: str) -> None:
    """Logs an ignored address once in a process."""
    log.warning(
        "stored address ignored", extra={"setting": setting, "address": stored, "fault": fault}
    )
