"""Actions on several monitors: few at once, many in the background. Each except delete has an undo.

An action that is refused for one monitor continues with the next one, and states the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import msgspec

from ....storage.bulk.rows import BulkChange, BulkFailure, BulkObject, BulkReport, BulkRow
from ....storage.bulk.rules import ARGUMENTS, TAG_LONGEST, UNDO, BulkAct, ObjectState
from ....storage.bulk.transactions import CHANGED_SINCE, LOCKED, BulkContext, act_at_once
from ....storage.core.instant import SECOND, Instant
from ....storage.core.refusal import Refused, Unavailable
from ....storage.engine.pools import LockTimeout, Tx
from ...ui.form_values import stripped, uuid_given, value_of, whole_number
from ...ui.formatting import count, duration
from ...wire.errors import Problem
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of

# A larger selection is changed in the background.
AT_ONCE_MOST: Final = 20
FAILURES_SHOWN: Final = 20
DURATIONS: Final[Mapping[int, str]] = {30: "30 min", 60: "1 h", 240: "4 h", 1_440: "24 h"}
_WERE: Final = ("was", "were")
_REASONS: Final = {
    "in_use": "in use by a composite, a monitor or a service",
    "managed_by_file": "managed by a bundle",
    "regional_monitor": "a part of a regional monitor",
    "not_found": "deleted meanwhile",
    "maintenance_quota": "too many maintenance windows",
    "retired": "retired",
    LOCKED: "another change was in progress",
}
# What happened to the objects, as in "2 monitors paused".
_DONE: Final[Mapping[BulkAct, str]] = {
    BulkAct.PAUSE: "paused",
    BulkAct.RESUME: "resumed",
    BulkAct.TAG: "tagged",
    BulkAct.UNTAG: "changed: tag removed",
    BulkAct.ATTACH: "changed: channel added",
    BulkAct.DETACH: "changed: channel removed",
    BulkAct.MAINTAIN: "in maintenance",
    BulkAct.END: "ended",
    BulkAct.DELETE: "deleted",
}
# First line of the progress.
TITLES: Final[Mapping[BulkAct, str]] = {
    BulkAct.PAUSE: "Pausing monitors",
    BulkAct.RESUME: "Resuming monitors",
    BulkAct.TAG: "Adding the tag",
    BulkAct.UNTAG: "Removing the tag",
    BulkAct.ATTACH: "Adding the channel",
    BulkAct.DETACH: "Removing the channel",
    BulkAct.MAINTAIN: "Starting maintenance",
    BulkAct.END: "Ending maintenance",
    BulkAct.DELETE: "Deleting monitors",
}


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Result of an action. `undo` is the opposite action with the changes that it needs.

    The undo of an action in the background needs `operation` in place of the changes.
    """

    text: str = ""
    undo: str = ""
    changes: Sequence[BulkChange] = ()
    operation: UUID | None = None
    # Values of the action that its undo needs too, such as the tag.
    values: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[tuple[str, str]] = ()
    # Failures beyond those of `failures`.
    more_failures: int = 0

    @property
    def undo_ids(self) -> str:
        """Returns the field from which `undo_objects` reads the changes."""
        return ",".join(
            str(one.uid) if one.revision is None else f"{one.uid}.{one.revision}"
            for one in self.changes
        )


def undo_objects(text: str) -> dict[UUID, int | None]:
    """Returns the ids of a field with the revision that each monitor needs, None for any.

    Raises: ValueError.
    """
    found = {}
    for part in filter(None, text.split(",")):
        uid, _, revision = part.partition(".")
        found[UUID(uid)] = int(revision[:18]) if revision else None
    return found


def act_given(act: str) -> BulkAct:
    """Raises: Problem for an unknown action."""
    try:
        return BulkAct(act)
    except ValueError:
        raise Problem("Unknown action") from None


def values_given(ask: Request, act: BulkAct) -> dict[str, str]:
    """Returns the values of the form that the action needs. Raises: Refused if one is invalid."""
    values = {name: stripped(ask, name) for name in ARGUMENTS.get(act, ())}
    if "tag" in values and len(values["tag"]) > TAG_LONGEST:
        raise Refused("invalid", "tag", f"must have at most {TAG_LONGEST} characters")
    if "channel" in values:
        uuid_given(values["channel"])
    if "minutes" in values and whole_number("minutes", value_of(ask, "minutes")) not in DURATIONS:
        raise Refused("invalid", "minutes", "choose a value from the list")
    return values


async def apply_to(
    ask: Request, act: BulkAct, values: Mapping[str, str], objects: Sequence[BulkObject]
) -> BulkResult:
    """Executes the action on each object, and returns the result.

    If the database does not answer, the action stops and states what was not tried.
    """
    assert ask.scope is not None
    context, project = ask.context, ask.ids["projectID"]
    ground = BulkContext(keyring=context.keyring, raw_days=context.options.heartbeat_days)
    text = msgspec.json.encode(values).decode()
    row = BulkRow(project, org_of(ask), project_of(ask), project, act, text, None, ask.who.uid)
    done: list[BulkChange] = []
    failures: list[tuple[str, str]] = []
    left_out = skipped = 0
    for number, item in enumerate(objects, start=1):

        async def work(tx: Tx, item: BulkObject = item) -> BulkChange | None:
            return await act_at_once(tx, ask.who, row, item, ground)

        try:
            made = await context.pool.transact("bulk_action", work)
        except LockTimeout:
            failures.append((item.name, _REASONS[LOCKED]))
        except Unavailable:
            failures.append((item.name, "the database did not answer in time"))
            left_out = len(objects) - number
            break
        except Refused as refused:
            if refused.code == "forbidden":
                raise
            if refused.code == CHANGED_SINCE:
                skipped += 1
                continue
            failures.append((item.name, _reason(refused.code, refused.field, refused.message)))
        else:
            done += [] if made is None else [made]
    context.on_edit()
    more = max(len(failures) - FAILURES_SHOWN, 0)
    said = _text(act, len(done), bool(failures or skipped), left_out) + _skipped_text(skipped)
    undo = UNDO.get(act, "") if done else ""
    return BulkResult(said, undo, done, None, values, failures[:FAILURES_SHOWN], more)


def result_of(report: BulkReport) -> BulkResult:
    """Returns the result of an action in the background that has ended."""
    act, counts = report.row.kind, report.counts
    done, failed = counts[ObjectState.CHANGED], counts[ObjectState.FAILED]
    skipped = counts[ObjectState.SKIPPED]
    has_others = bool(failed or skipped)
    said = _text(act, done, has_others, counts[ObjectState.WAITING], report.error or "")
    said += _skipped_text(skipped)
    failures = [(one.name or "A window", _failure(one)) for one in report.failures]
    undo = UNDO.get(act, "") if done and report.undone_by is None else ""
    more = failed - len(failures)
    return BulkResult(said, undo, (), report.row.uid, {}, failures, more)


def left_of(report: BulkReport, now: Instant) -> str:
    """Returns the time that the remaining objects need at the speed so far.

    Empty for less than a second.
    """
    waiting = report.counts[ObjectState.WAITING]
    seen = sum(report.counts.values()) - waiting
    if not seen:
        return ""
    need = (now - report.created_at) * waiting // seen
    return duration(need) if need >= SECOND else ""


def _text(act: BulkAct, done: int, has_failures: bool, left_out: int, error: str = "") -> str:
    noun = "maintenance window" if act is BulkAct.END else "monitor"
    said = f"{count(done, noun)} {_DONE[act]}." if done or not has_failures else ""
    said = said or f"No {noun} was changed."
    if left_out:
        reason = f"{error[:1].upper()}{error[1:]}" if error else "Stopped"
        said += f" {reason}: {count(left_out, noun)} {_WERE[left_out > 1]} not tried."
    return said


def _skipped_text(skipped: int) -> str:
    if not skipped:
        return ""
    was = _WERE[skipped > 1]
    return f" {count(skipped, 'monitor')} {was} skipped: changed after the action."


def _failure(one: BulkFailure) -> str:
    return _reason(one.code, "", one.rule)


def _reason(code: str, field_: str, rule: str) -> str:
    if code in _REASONS:
        return _REASONS[code]
    return " ".join(part for part in (field_, rule or code) if part)
