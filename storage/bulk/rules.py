"""Actions on many monitors, and the action that undoes each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from ..core.instant import MINUTE, Instant, from_text
from ..core.naming import name_fault
from ..monitors.rules.fields import BOUNDS
from ..scheduling.rules.maintenance_window import LONGEST_US, plan_fault

# Monitors of one action. A larger selection needs a narrower filter.
OBJECTS_MOST: Final = 2_000
TAG_LONGEST: Final = BOUNDS["tags"].most
_MINUTES_MOST: Final = LONGEST_US // MINUTE


class BulkAct(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TAG = "tag"
    UNTAG = "untag"
    ATTACH = "attach"
    DETACH = "detach"
    MAINTAIN = "maintain"
    # Ends maintenance windows. The other actions are on monitors.
    END = "end"
    DELETE = "delete"


UNDO: Final[Mapping[BulkAct, BulkAct]] = {
    BulkAct.PAUSE: BulkAct.RESUME,
    BulkAct.RESUME: BulkAct.PAUSE,
    BulkAct.TAG: BulkAct.UNTAG,
    BulkAct.UNTAG: BulkAct.TAG,
    BulkAct.ATTACH: BulkAct.DETACH,
    BulkAct.DETACH: BulkAct.ATTACH,
    BulkAct.MAINTAIN: BulkAct.END,
}
# Names of the values that an action needs besides its objects.
ARGUMENTS: Final[Mapping[BulkAct, tuple[str, ...]]] = {
    BulkAct.TAG: ("tag",),
    BulkAct.UNTAG: ("tag",),
    BulkAct.ATTACH: ("channel",),
    BulkAct.DETACH: ("channel",),
    # `minutes` from the start of each monitor's window, or both instants.
    BulkAct.MAINTAIN: ("minutes", "reason", "starts_at", "ends_at"),
}


class ObjectState(StrEnum):
    """Result of an action for one object."""

    WAITING = "waiting"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    # The monitor was changed after the action that this one undoes.
    SKIPPED = "skipped"
    FAILED = "failed"


def argument_fault(act: BulkAct, values: Mapping[str, str], now: Instant) -> tuple[str, str] | None:
    """Returns the field of the API and the rule that the values break, None if they are valid.

    The instants of a maintenance are valid RFC 3339 texts.
    """
    if act in (BulkAct.TAG, BulkAct.UNTAG):
        if not 1 <= len(values.get("tag", "")) <= TAG_LONGEST:
            return "tag", f"must have 1 to {TAG_LONGEST} characters"
        fault = name_fault(values["tag"])
        return None if fault is None else ("tag", fault)
    if act in (BulkAct.ATTACH, BulkAct.DETACH):
        return None if values.get("channel") else ("channel_id", f"{act} needs a channel")
    return _maintenance_fault(values, now) if act is BulkAct.MAINTAIN else None


def _maintenance_fault(values: Mapping[str, str], now: Instant) -> tuple[str, str] | None:
    starts, ends = values.get("starts_at"), values.get("ends_at")
    minutes, reason = values.get("minutes"), values.get("reason", "")
    if not (starts or ends):
        if minutes is None:
            return "minutes", "maintain needs minutes, or starts_at and ends_at"
        if not 1 <= int(minutes) <= _MINUTES_MOST:
            return "minutes", f"must be 1 to {_MINUTES_MOST}"
        return plan_fault(now, Instant(now + int(minutes) * MINUTE), reason, now)
    if minutes:
        return "minutes", "must not be given with starts_at and ends_at"
    if not (starts and ends):
        return ("ends_at" if starts else "starts_at"), "starts_at and ends_at need each other"
    if from_text(starts) < now:
        return "starts_at", "must not be in the past: a past start needs a preview"
    return plan_fault(from_text(starts), from_text(ends), reason, now)
