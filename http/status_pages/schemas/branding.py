"""JSON bodies of status pages: branding."""

from msgspec import UNSET, UnsetType

from ....storage.status_pages.rules.branding import Level
from ...wire.schema import RequestSchema, Schema


class Announcement(Schema, frozen=True, kw_only=True):
    """Announcement on every public page while it is enabled."""

    enabled: bool
    text: str
    level: Level


class PublicBranding(Schema, frozen=True, kw_only=True):
    """Public branding. An empty field uses the default. A disabled announcement is absent."""

    product_name: str
    accent_color: str
    logo_url: str
    footer_text: str
    support_url: str
    announcement: Announcement | UnsetType = UNSET


class Branding(PublicBranding, frozen=True, kw_only=True):
    """`configured` is true if an administrator has set the branding."""

    configured: bool


class AnnouncementRequest(RequestSchema, frozen=True, kw_only=True):
    enabled: bool = False
    text: str = ""
    level: Level = Level.INFO


class PutBranding(RequestSchema, frozen=True, kw_only=True):
    """Complete branding.

    An absent field gets the default. `configured` is ignored, so that a response can be sent back.
    The colour is #rrggbb, and URLs are https.
    """

    configured: bool | UnsetType = UNSET
    product_name: str = ""
    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""
    announcement: AnnouncementRequest | UnsetType = UNSET
