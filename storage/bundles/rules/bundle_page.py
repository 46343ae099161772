"""Entries of format 3 about status pages."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from .bundle_oncall import OnCallEntry

PAGES_MOST: Final = 100


class BrandingEntry(OnCallEntry, frozen=True, kw_only=True):
    """Branding of a page. Empty settings have the value of the installation."""

    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""


class ComponentEntry(OnCallEntry, frozen=True, kw_only=True):
    """Component of a monitor or a service. Without one, people set its status."""

    name: str
    description: str = ""
    group: str = ""
    monitor: str = ""
    service: str = ""
    show_latency: bool = False


class PageEntry(OnCallEntry, frozen=True, kw_only=True):
    """Status page of the project with its components in order. Its domain is not in a bundle."""

    slug: str | UnsetType = UNSET
    title: str
    visibility: Literal["listed", "unlisted", "internal"] = "listed"
    timezone: str = "UTC"
    language: Literal["auto", "en", "de"] = "auto"
    branding: BrandingEntry = BrandingEntry()
    components: list[ComponentEntry] = []


def page_fault(entry: PageEntry) -> tuple[str, str] | None:
    for at, one in enumerate(entry.components):
        if one.monitor and one.service:
            return f"components[{at}].service", "a component has one source"
    return None


def page_slug(uid: str, entry: PageEntry) -> str:
    return entry.slug if isinstance(entry.slug, str) else uid
