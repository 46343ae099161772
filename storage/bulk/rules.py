"""Actions on many monitors, and the action that undoes each."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

# Monitors of one action. A larger selection needs a narrower filter.
OBJECTS_MOST: Final = 2_000


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
    BulkAct.MAINTAIN: ("minutes", "reason"),
}


class ObjectState(StrEnum):
    """Result of an action for one object."""

    WAITING = "waiting"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    # The monitor was changed after the action that this one undoes.
    SKIPPED = "skipped"
    FAILED = "failed"
