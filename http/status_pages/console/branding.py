"""What the installation looks like to the public."""

from typing import Final

from msgspec import UNSET

from ....storage.incidents.rules.incident import normal_lines
from ....storage.status_pages.rules.branding import (
    ANNOUNCEMENT_LONGEST,
    FOOTER_LONGEST,
    NAME_LONGEST,
    Level,
)
from ...ui.settings_form import Of, SettingField, SettingForm, Typed, one_of
from ...wire.route import Route
from ..routes import branding as api
from ..schemas.branding import AnnouncementRequest, Branding, PutBranding

_TEXTS: Final = ("product_name", "accent_color", "logo_url", "footer_text", "support_url")
_ROWS: Final = (
    SettingField(
        "product_name",
        "Name",
        Of.TEXT,
        f"At most {NAME_LONGEST} characters, on status pages and in letters; empty: Leadline.",
    ),
    SettingField("accent_color", "Accent", Of.TEXT, "A colour as #rrggbb."),
    SettingField("logo_url", "Logo", Of.TEXT, "An https URL of a picture."),
    SettingField("footer_text", "Footer", Of.LINES, f"At most {FOOTER_LONGEST} characters."),
    SettingField("support_url", "Support", Of.TEXT, "An https URL where people find help."),
    SettingField(
        "announcement_enabled",
        "Announce",
        Of.CHECK,
        "What is announced stands on every public page.",
    ),
    SettingField(
        "announcement_text",
        "Announcement",
        Of.LINES,
        f"At most {ANNOUNCEMENT_LONGEST} characters.",
    ),
    SettingField(
        "announcement_level",
        "Its weight",
        Of.CHOICE,
        choices=tuple((level.value, level.value) for level in Level),
    ),
)


def _typed_of(found: Branding) -> Typed:
    told = found.announcement
    assert told is not UNSET, "whoever sets it is told all of it"
    return {
        **{name: getattr(found, name) for name in _TEXTS},
        "announcement_enabled": "on" if told.enabled else "",
        "announcement_text": told.text,
        "announcement_level": told.level.value,
    }


def _parse_form(typed: Typed) -> PutBranding:
    return PutBranding(
        product_name=typed["product_name"],
        accent_color=typed["accent_color"],
        logo_url=typed["logo_url"],
        footer_text=normal_lines(typed["footer_text"]),
        support_url=typed["support_url"],
        announcement=AnnouncementRequest(
            enabled=typed["announcement_enabled"] == "on",
            text=normal_lines(typed["announcement_text"]),
            level=one_of(typed, "announcement_level", Level),
        ),
    )


def _says(found: Branding) -> str:
    name = found.product_name or "Leadline"
    return f"Public pages call themselves {name}."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/branding",
    title="Branding",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    typed_of=_typed_of,
    given=_parse_form,
    says=_says,
).routes()
