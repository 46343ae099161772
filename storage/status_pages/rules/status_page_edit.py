"""Texts of status pages and components, and the bindings of components.

A component has exactly one source; several are refused with the field of the second. Whether the
source exists is not checked here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...core.naming import slug_fault, text_rule_broken
from ...incidents.rules.incident import title_fault
from .status_page import ComponentSource, ComponentStatus, Visibility

COMPONENT_NAME_LONGEST: Final = 100
DESCRIPTION_LONGEST: Final = 500
GROUP_LONGEST: Final = 100
# Positions can have gaps; this limit is sufficient.
POSITION_MOST: Final = 1_000_000
PAGES_OF_ORGANIZATION_MOST: Final = 200
# Paths below /status/ that are not pages.
SLUGS_RESERVED: Final = frozenset({"confirm", "unsubscribe"})

Fault = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDraft:
    slug: str
    title: str
    visibility: Visibility = Visibility.LISTED
    project: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingTarget:
    """Source named in a request body. None means absent."""

    monitor: UUID | None = None
    service: UUID | None = None
    manual_status: ComponentStatus | None = None

    def named(self) -> list[tuple[str, ComponentSource]]:
        """Returns the fields that are present, with their sources."""
        fields = (
            ("monitor_id", ComponentSource.MONITOR, self.monitor),
            ("service_id", ComponentSource.SERVICE, self.service),
            ("manual_status", ComponentSource.MANUAL, self.manual_status),
        )
        return [(field, source) for field, source, value in fields if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentDraft:
    """New component. `position` None means last."""

    name: str
    target: BindingTarget
    description: str = ""
    group: str = ""
    position: int | None = None
    show_latency: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentEdit:
    """Edit of a component. None leaves a field unchanged."""

    name: str | None = None
    description: str | None = None
    group: str | None = None
    position: int | None = None
    manual_status: ComponentStatus | None = None
    show_latency: bool | None = None


_FIELD_OF: Final = {
    ComponentSource.MONITOR: "monitor_id",
    ComponentSource.SERVICE: "service_id",
    ComponentSource.MANUAL: "manual_status",
}


def page_faults(draft: PageDraft) -> Iterator[Fault]:
    slug = slug_fault(draft.slug)
    if slug is None and draft.slug in SLUGS_RESERVED:
        slug = "is an address of all pages"
    if slug is not None:
        yield "slug", slug
    title = title_fault(draft.title)
    if title is not None:
        yield "title", title


def component_faults(edit: ComponentEdit | ComponentDraft) -> Iterator[Fault]:
    """Yields the faults of texts and position."""
    if edit.name is not None:
        blank = "must not be blank" if not edit.name.strip() else None
        fault = blank or _text_fault(edit.name, COMPONENT_NAME_LONGEST)
        if fault is not None:
            yield "name", fault
    if edit.description is not None:
        fault = _text_fault(edit.description, DESCRIPTION_LONGEST, multiline=True)
        if fault is not None:
            yield "description", fault
    if edit.group is not None:
        fault = _text_fault(edit.group, GROUP_LONGEST)
        if fault is not None:
            yield "group", fault
    if edit.position is not None and not 0 <= edit.position <= POSITION_MOST:
        yield "position", f"must be between 0 and {POSITION_MOST}"


def _text_fault(text: str, longest: int, *, multiline: bool = False) -> str | None:
    if len(text) > longest:
        return f"must be at most {longest} characters"
    return text_rule_broken(text, multiline=multiline)


def target_of_new(target: BindingTarget) -> BindingTarget | Fault:
    """Returns the source of a new component: manual and operational if none is named.

    Returns the fault if several are named.
    """
    named = target.named()
    if len(named) > 1:
        return named[1][0], "a component has one source"
    return target if named else BindingTarget(manual_status=ComponentStatus.OPERATIONAL)


def conversion_fault(source: ComponentSource, target: BindingTarget) -> Fault | None:
    """Returns why a target does not match the source, None if it does."""
    field = _FIELD_OF[source]
    named = [name for name, _ in target.named()]
    if field not in named:
        return field, "is required"
    surplus = [name for name in named if name != field]
    return (surplus[0], f"is not of source {source.value}") if surplus else None


def next_position(positions: list[int]) -> int:
    """Returns the position after the last, at most POSITION_MOST, where the newest is last."""
    return min(max(positions, default=-1) + 1, POSITION_MOST)


def moved_positions(positions: Sequence[int], at: int, by: int) -> list[int]:
    """Returns the positions after the component at index `at` moves by `by` places.

    The target is limited to the page. The positions are in order, and are kept if they are
    distinct.
    """
    to = min(max(at + by, 0), len(positions) - 1)
    is_strict = len(set(positions)) == len(positions)
    places = list(positions) if is_strict else list(range(len(positions)))
    order = list(range(len(positions)))
    order.insert(to, order.pop(at))
    return [places[order.index(one)] for one in range(len(positions))]


def conversion_notes(
    before: ComponentSource, after: ComponentSource, *, is_bound: bool
) -> list[str]:
    """Returns the notes that are shown before a component is bound to another source.

    `is_bound` states that its old monitor or service still exists.
    """
    notes = []
    if after is ComponentSource.MANUAL:
        notes.append("The status is set manually and has no uptime.")
    elif before is ComponentSource.MANUAL:
        notes.append("The status and the uptime, including the past, are measured.")
    else:
        notes.append("The status and the uptime, including the past, come from the new source.")
    if before is not ComponentSource.MANUAL and is_bound:
        notes.append(
            "Incidents of the old source are no longer shown, unless another component uses it."
        )
    return notes
