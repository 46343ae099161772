"""Preview of each service: its time in the range before and after the change."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from ....storage.core.instant import MINUTE
from ....storage.maintenance.transactions.preview_services import Previewed, Unknown
from ....storage.services.rules.service_health import Durations
from ...ui.formatting import NOTHING, coverage, duration, percent

_WHY = {
    Unknown.RANGE_TOO_LONG: "the range is too long for a preview",
    Unknown.WALL_BUDGET: "preview takes too long",
    Unknown.EVIDENCE_GONE: "some results of the range were deleted by retention",
}


@dataclass(frozen=True, slots=True)
class PreviewSide:
    """Time of a service in the range, before or after the change."""

    availability: str
    note: str


@dataclass(frozen=True, slots=True)
class PreviewedServiceItem:
    uid: UUID
    name: str
    before: PreviewSide
    # None if it could not be computed for a preview; `why` is the reason.
    after: PreviewSide | None
    why: str
    changes: bool


def service_lines(found: Sequence[Previewed]) -> list[PreviewedServiceItem]:
    """Returns the items, changed services first."""
    lines = [_item(each) for each in found]
    return sorted(lines, key=lambda line: (not line.changes, line.name.lower()))


def _item(each: Previewed) -> PreviewedServiceItem:
    why = "" if each.reason is None else _WHY[each.reason]
    if each.projected:
        why = f"{why}, " if why else ""
        why += "only recorded time is shown"
    changes = each.reason is not None or each.before != each.after
    after = None if each.reason is not None else preview_text(each.after)
    return PreviewedServiceItem(
        each.service, each.name, preview_text(each.before), after, why, changes
    )


def preview_text(durations: Durations) -> PreviewSide:
    split = durations.split
    ratio = split.availability()
    parts = [
        f"{word} {duration(us)}"
        for word, us in (
            ("down", split.bad_us),
            ("not known", split.unknown_us),
            ("in maintenance", split.excluded_us),
        )
        if us
    ]
    if ratio is None:
        return PreviewSide(NOTHING, ", ".join(["not measured", *parts]))
    known = f"coverage {coverage(split.coverage())}"
    return PreviewSide(percent(ratio, split.measured_us // MINUTE), ", ".join([known, *parts]))
