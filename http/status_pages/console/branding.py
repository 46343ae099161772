"""Form of the installation's public branding."""

from typing import Final

from ....storage.status_pages.rules.branding import (
    ANNOUNCEMENT_LONGEST,
    FOOTER_LONGEST,
    NAME_LONGEST,
    Level,
)
from ....storage.status_pages.transactions.put_branding import EDIT
from ...ui.shell.settings_form import Of, SettingField, SettingForm
from ...wire.route import Route
from ..routes import branding as api
from ..schemas.branding import Branding, PutBranding

_ROWS: Final = (
    SettingField(
        "product_name",
        "Name",
        Of.TEXT,
        f"At most {NAME_LONGEST} characters. Shown on status pages and in e-mails. Default:"
        " Leadline.",
    ),
    SettingField("accent_color", "Accent", Of.TEXT, "A colour as #rrggbb."),
    SettingField("logo_url", "Logo", Of.TEXT, "An https URL of a picture."),
    SettingField("footer_text", "Footer", Of.LINES, f"At most {FOOTER_LONGEST} characters."),
    SettingField("support_url", "Support", Of.TEXT, "An https URL for support requests."),
    SettingField(
        "announcement_enabled",
        "Announce",
        Of.CHECK,
        "Shown on every status page.",
        path="announcement.enabled",
    ),
    SettingField(
        "announcement_text",
        "Announcement",
        Of.LINES,
        f"At most {ANNOUNCEMENT_LONGEST} characters.",
        path="announcement.text",
    ),
    SettingField(
        "announcement_level",
        "Level",
        Of.CHOICE,
        choices=tuple((level.value, level.value) for level in Level),
        path="announcement.level",
    ),
)


def _summary(found: Branding) -> str:
    name = found.product_name or "Leadline"
    return f"Product name: {name}."


ROUTES: Final[tuple[Route, ...]] = SettingForm(
    path="/admin/branding",
    title="Branding",
    section="branding",
    rows=_ROWS,
    read=api.read,
    put=api.put,
    body=PutBranding,
    action=EDIT,
    says=_summary,
).routes()
