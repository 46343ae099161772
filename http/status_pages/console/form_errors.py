"""Conversion of a refusal to a message at a form field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....storage.core.refusal import Refused
from ....storage.status_pages.rules.status_page import COMPONENTS_MOST
from ....storage.status_pages.rules.status_page_edit import PAGES_OF_ORGANIZATION_MOST
from ....storage.status_pages.transactions.lock_bindings import BINDING_NOT_FOUND
from ...ui.formatting import number

_LABELS: Final = {
    "slug": "Slug",
    "title": "Title",
    "name": "Name",
    "group": "Group",
    "description": "Description",
    "manual_status": "Status",
    "domain": "Custom domain",
}
_SAID: Final = {
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
    label = _LABELS.get(refused.field, refused.field)
    return PageInput(form, values, refused.field, f"{label} {refused.message}.")
