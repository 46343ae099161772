"""Public branding of an installation (name, colour, logo, announcement) and of a status page.

The accent colour never carries text or a mark: every colour keeps the contrast of the page.
"""

import re
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from ...core.naming import text_rule_broken

NAME_LONGEST: Final = 100
URL_LONGEST: Final = 500
FOOTER_LONGEST: Final = 500
ANNOUNCEMENT_LONGEST: Final = 1_000

# A URL becomes part of the Content-Security-Policy, in which spaces, commas and semicolons are
# separators, and of a header, which contains no control characters.
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f;,'\"<>\\]")
# A host of the policy can contain a wildcard; that of a URL cannot.
_PLACE: Final = re.compile(
    r"(?:[a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII
)
_COLOR: Final = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE | re.ASCII)


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    enabled: bool = False
    text: str = ""
    level: Level = Level.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Branding:
    """Branding. Empty fields have the default of Leadline."""

    product_name: str = ""
    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""
    announcement: Announcement = field(default_factory=Announcement)


NO_BRANDING: Final = Branding()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBranding:
    """Branding of a status page. Empty fields are those of the installation."""

    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""


def page_branding_fault(own: PageBranding) -> tuple[str, str] | None:
    """Returns the field and the rule that it breaks, as for the installation."""
    return branding_fault(Branding(**asdict(own)))


def branding_of_page(installation: Branding, own: PageBranding) -> Branding:
    """Returns what a page shows: its own fields, and those of the installation."""
    return replace(installation, **{name: value for name, value in asdict(own).items() if value})


def branding_fault(branding: Branding) -> tuple[str, str] | None:
    """Returns the field and the rule that it breaks, None if the branding is valid."""
    announcement = branding.announcement
    texts = (
        ("product_name", branding.product_name, NAME_LONGEST, False),
        ("footer_text", branding.footer_text, FOOTER_LONGEST, True),
        ("announcement.text", announcement.text, ANNOUNCEMENT_LONGEST, True),
    )
    for name, text, longest, multiline in texts:
        if len(text) > longest:
            return name, f"must be at most {longest} characters"
        broken = text_rule_broken(text, multiline=multiline)
        if broken is not None:
            return name, broken
    if branding.accent_color and _COLOR.fullmatch(branding.accent_color) is None:
        return "accent_color", "must be a colour as #rrggbb"
    for name, url in (("logo_url", branding.logo_url), ("support_url", branding.support_url)):
        fault = _url_fault(url) if url else None
        if fault is not None:
            return name, fault
    if announcement.enabled and not announcement.text.strip():
        return "announcement.text", "is required if it is enabled"
    return None


def _url_fault(url: str) -> str | None:
    if len(url) > URL_LONGEST:
        return f"must be at most {URL_LONGEST} characters"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "must be an https URL"
    if parts.scheme != "https" or not host or not url.isascii() or _UNSAFE.search(url):
        return "must be an https URL"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user name"
    if _PLACE.fullmatch(parts.netloc) is None:
        return "must be an https URL"
    return None


def origin_of(url: str) -> str:
    """Returns scheme, host and port of a valid URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
