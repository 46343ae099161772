"""Rules of a regional monitor: a check that runs in several regions, and when it is down.

It consists of a member for each region and of a composite, which is down when `down_regions`
members are down. The composite is the object that users see and edit. It alone opens incidents,
sends alerts and has dependencies; a member only reports its region.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from ..core.slug import slug_of
from ..monitors.rules.composite import CompositeMode
from ..monitors.rules.fields import BOUNDS, CONFIRMED, DEFAULTS, FieldBounds
from ..monitors.rules.monitor import MonitorDraft, MonitorFault, MonitorType

REGIONS: Final = FieldBounds(2, 16)
# Several regions would repeat the transaction of a canary, and ask the registry of a domain more
# often than it allows.
TYPES: Final = CONFIRMED
# Settings of the composite only.
OF_COMPOSITE: Final = frozenset(
    {
        "auto_incident",
        "renotify_seconds",
        "flap_threshold",
        "depends_on",
        "escalation_policy_id",
    }
)
# Settings of the composite and of its members.
OF_BOTH: Final = frozenset(
    {
        "name",
        "description",
        "runbook_url",
        "interval_seconds",
        "warn_certificate_days",
        "tags",
        "enabled",
    }
)
_QUIET: Final[Mapping[str, Any]] = {
    "auto_incident": False,
    "renotify_seconds": 0,
    "flap_threshold": 0,
    "depends_on": [],
    "escalation_policy_id": None,
}


@dataclass(frozen=True, slots=True)
class RegionSpread:
    """Regions of a monitor, and the number of them that must be down for it to be down.

    In an edit, None leaves a value unchanged.
    """

    regions: Sequence[str] | None = None
    down_regions: int | None = None

    @property
    def is_given(self) -> bool:
        return self.regions is not None or self.down_regions is not None


def majority(regions: int) -> int:
    """Returns the default of `down_regions`: more than half."""
    return regions // 2 + 1


def spread_faults(kind: str, regions: Sequence[str], down_regions: int) -> list[MonitorFault]:
    """Returns the faults of the regions of a monitor of this type."""
    found = []
    if kind not in TYPES:
        found.append(MonitorFault("regions", f"are not available for monitors of type {kind}"))
    many = REGIONS.fault(len(regions))
    if many:
        found.append(MonitorFault("regions", f"{many.replace('must be', 'must have')} entries"))
    if len(set(regions)) != len(regions):
        found.append(MonitorFault("regions", "must not name anything twice"))
    wrong = FieldBounds(1, max(len(regions), 1)).fault(down_regions)
    if wrong:
        found.append(MonitorFault("down_regions", wrong))
    return found


def member_name(name: str, region: str) -> str:
    """Returns the name with the region, shortened to the bound of names."""
    suffix = f" ({region})"
    return name[: BOUNDS["name"].most - len(suffix)].rstrip() + suffix


def member_draft(draft: MonitorDraft, region: str) -> MonitorDraft:
    """Returns the draft of the member in a region."""
    slug = None if draft.slug is None else slug_of(f"{draft.slug} {region}")
    return msgspec.structs.replace(
        draft, name=member_name(draft.name, region), slug=slug, region=region, **_QUIET
    )


def is_member(draft: MonitorDraft, first: MonitorDraft) -> bool:
    """Returns whether a monitor can be a member beside the first one: the same check, and quiet."""
    alone = {"name": first.name, "slug": first.slug, "region": first.region}
    return draft.type == first.type and msgspec.structs.replace(
        draft, **alone
    ) == msgspec.structs.replace(first, **_QUIET)


def composite_draft(
    draft: MonitorDraft, members: Sequence[UUID], down_regions: int
) -> MonitorDraft:
    """Returns the draft of the composite."""
    shared = {name: getattr(draft, name) for name in OF_BOTH | OF_COMPOSITE}
    timeout = min(DEFAULTS["timeout_seconds"], draft.interval_seconds)
    return MonitorDraft(
        **shared,
        slug=draft.slug,
        type=MonitorType.COMPOSITE,
        timeout_seconds=timeout,
        config=composite_config(members, down_regions),
    )


def composite_config(members: Sequence[UUID], down_regions: int) -> dict[str, Any]:
    return {
        "children": [str(uid) for uid in members],
        "mode": CompositeMode.QUORUM.value,
        "quorum": down_regions,
    }


def given_to_member(given: Mapping[str, Any], region: str) -> dict[str, Any]:
    """Returns the part of an edit that the member in a region gets."""
    found = {name: value for name, value in given.items() if name not in OF_COMPOSITE}
    if "name" in found:
        found["name"] = member_name(found["name"], region)
    return found


def given_to_composite(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of an edit that the composite gets."""
    return {name: value for name, value in given.items() if name in OF_BOTH | OF_COMPOSITE}
