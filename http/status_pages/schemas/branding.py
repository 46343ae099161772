"""JSON bodies of status pages: branding."""

from msgspec import UNSET, UnsetType

from ....storage.status_pages.rules.branding import Level
from ...wire.schema import RequestSchema, Schema


class Announcement(Schema, frozen=True, kw_only=True):
    """It stands on every public page while it is enabled."""

    enabled: bool
    text: str
    level: Level


class PublicBranding(Schema, frozen=True, kw_only=True):
    """What is empty is as Leadline has it. An announcement that is not enabled lacks."""

    product_name: str
    accent_color: str
    logo_url: str
    footer_text: str
    support_url: str
    announcement: Announcement | UnsetType = UNSET


class Branding(PublicBranding, frozen=True, kw_only=True):
    """`configured` says that somebody has set it."""

    configured: bool


class AnnouncementRequest(RequestSchema, frozen=True, kw_only=True):
    enabled: bool = False
    text: str = ""
    level: Level = Level.INFO


class PutBranding(RequestSchema, frozen=True, kw_only=True):
    """The whole of it: what is left out is as Leadline has it. `configured` is passed over, so that
    what was read can be given back. The colour is #rrggbb, and URLs are https."""

    configured: bool | UnsetType = UNSET
    product_name: str = ""
    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""
    announcement: AnnouncementRequest | UnsetType = UNSET
