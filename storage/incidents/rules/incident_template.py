"""Bounds of incident templates. Their texts have the bounds of an incident."""

from dataclasses import dataclass
from typing import Final

from ...core.naming import name_fault
from ...core.refusal import expect
from .incident import IncidentImpact, body_fault, normal_lines, title_fault

TEMPLATES_OF_PROJECT_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """Template as requested. `body` is the first public text of the incident, and can be empty."""

    name: str
    title: str
    impact: IncidentImpact = IncidentImpact.MINOR
    body: str = ""


def checked(draft: TemplateDraft) -> TemplateDraft:
    """Returns the draft with line breaks as LF. Raises Refused invalid with the first field."""
    body = normal_lines(draft.body)
    expect("name", name_fault(draft.name))
    expect("title", title_fault(draft.title))
    expect("body", body_fault(body))
    return TemplateDraft(draft.name, draft.title, draft.impact, body)
