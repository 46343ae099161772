"""Conversion of a refusal to a message at a form field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....storage.core.refusal import Refused
from ....storage.status_pages.rules.status_page import COMPONENTS_MOST
from ....storage.status_pages.rules.status_page_edit import PAGES_OF_ORGANIZATION_MOST
from ....storage.status_pages.transactions.lock_bindings import BINDING_NOT_FOUND
from ...ui.bundle_notice import MANAGED_SAID
from ...ui.formatting import number

_LABELS: Final = {
    "slug": "Slug",
    "title": "Title",
    "name": "Name",
    "group": "Group",
    "description": "Description",
    "manual_status": "Status",
    "domain": "Custom domain",
    "show_latency": "Latency",
    "accent_color": "Accent",
    "logo_url": "Logo",
    "footer_text": "Footer",
    "support_url": "Support",
}
_SAID: Final = {
    "managed_by_file": ("", MANAGED_SAID),
    "slug_taken": ("slug", "Slug is already in use."),
    "domain_taken": ("domain", "Domain is already in use."),
    "page_quota": (
        "",
        f"Limit: {number(PAGES_OF_ORGANIZATION_MOST)} status pages per organization.",
    ),
    "component_quota": ("name", f"Limit: {number(COMPONENTS_MOST)} components per page."),
    BINDING_NOT_FOUND: ("name", "It was deleted or belongs to another project."),
    "encryption_key_missing": (
        "visibility",
        "Unlisted pages need security.encryption_key.",
    ),
}


@dataclass(frozen=True, slots=True)
class PageInput:
    """Submitted values of a refused form with the fault. `form` names the form of the screen."""

    form: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    field: str = ""
    fault: str = ""

    def value(self, form: str, name: str, otherwise: str = "") -> str:
        """Returns the value of a field."""
        return self.values.get(name, otherwise) if form == self.form else otherwise

    def ticked(self, form: str, name: str, otherwise: bool) -> bool:
        """Returns whether a checkbox is selected. An absent value of a sent form means no."""
        return name in self.values if form == self.form else otherwise

    @property
    def anchor(self) -> str:
        """Returns the id of the field with the fault, empty if the fault concerns no field."""
        form, _, object_ = self.form.partition(":")
        if form in ("add-monitor", "add-service"):
            return f"name-{object_}"
        if form == "add-manual" and self.field:
            return "new-status" if self.field == "manual_status" else f"new-{self.field}"
        return self.field

    def wrong(self, form: str, name: str) -> str:
        return self.fault if (form, name) == (self.form, self.field) else ""


NOTHING_TYPED: Final = PageInput()


def typed_of(form: str, given: Mapping[str, list[str]], refused: Refused) -> PageInput:
    """Returns the input with its fault. Raises the refusal if it concerns no form field."""
    values = {name: texts[0] for name, texts in given.items()}
    if refused.code in _SAID:
        return PageInput(form, values, *_SAID[refused.code])
    if not refused.field:
        raise refused
    name = refused.field.removeprefix("branding.")
    label = _LABELS.get(name, name)
    return PageInput(form, values, name, f"{label} {refused.message}.")
