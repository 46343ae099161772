"""Actions on several monitors at once, through the API's handlers. Each except delete has an undo.

An action that fails for one monitor continues with the next one, and states the reason. If the
database does not answer, it stops and states what was not tried.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from ....storage.core.instant import MINUTE, SECOND, Instant, to_text
from ....storage.core.refusal import Refused, Unavailable
from ...maintenance.routes import maintenance as maintenance_api
from ...maintenance.schemas import CreateMaintenance
from ...monitors.console.project_statuses import MonitorData
from ...monitors.routes import monitors as api
from ...monitors.schemas.monitors import UpdateMonitor
from ...notifications.routes import channels as channels_api
from ...notifications.schemas.notifications import AttachChannel
from ...ui.form_values import stripped, uuid_given, value_of, whole_number
from ...ui.formatting import count
from ...wire.errors import Problem
from ...wire.route import Request

# Monitors of one action. A larger selection needs a narrower filter.
BULK_MOST: Final = 2_000
START_AFTER: Final = 2 * SECOND
FAILURES_SHOWN: Final = 20
DURATIONS: Final[Mapping[int, str]] = {30: "30 min", 60: "1 h", 240: "4 h", 1_440: "24 h"}
_WERE: Final = ("was", "were")
_REASONS: Final = {
    "in_use": "in use by a composite, a monitor or a service",
    "managed_by_file": "managed by a bundle",
    "not_found": "deleted meanwhile",
    "maintenance_quota": "too many maintenance windows",
    "retired": "retired",
}


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Result of an action. `undo` is the opposite action with the ids that it needs."""

    text: str = ""
    undo: str = ""
    undo_ids: Sequence[UUID] = ()
    # Values of the action that its undo needs too, such as the tag.
    values: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[tuple[str, str]] = ()
    # Failures beyond those of `failures`.
    more_failures: int = 0


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """What an action did so far. `done` has the ids that the undo needs.

    `same` counts monitors that needed no change, `left_out` those that were not tried.
    """

    done: Sequence[UUID] = ()
    failures: Sequence[tuple[str, str]] = ()
    same: int = 0
    more_failures: int = 0
    left_out: int = 0


# Executes the action on a monitor; returns the id that the undo needs, None if nothing changed.
_Action = Callable[[Request, MonitorData], Awaitable[UUID | None]]


async def _pause(ask: Request, item: MonitorData) -> UUID | None:
    return await _edit(ask, item, UpdateMonitor(enabled=False)) if item.row.enabled else None


async def _resume(ask: Request, item: MonitorData) -> UUID | None:
    return None if item.row.enabled else await _edit(ask, item, UpdateMonitor(enabled=True))


async def _tag(ask: Request, item: MonitorData) -> UUID | None:
    tag = stripped(ask, "tag")
    if tag in item.row.tags:
        return None
    return await _edit(ask, item, UpdateMonitor(tags=[*item.row.tags, tag]))


async def _untag(ask: Request, item: MonitorData) -> UUID | None:
    tag = stripped(ask, "tag")
    if tag not in item.row.tags:
        return None
    return await _edit(ask, item, UpdateMonitor(tags=[one for one in item.row.tags if one != tag]))


async def _attach(ask: Request, item: MonitorData) -> UUID | None:
    channel, of_it = _channel(ask), _about(ask, item)
    if any(one.id == channel for one in await channels_api.list_of_monitor(of_it)):
        return None
    await channels_api.attach(replace(of_it, body=AttachChannel(channel_id=channel)))
    return item.row.uid


async def _detach(ask: Request, item: MonitorData) -> UUID | None:
    of_it = _about(ask, item)
    await channels_api.detach(replace(of_it, ids={**of_it.ids, "channelID": _channel(ask)}))
    return item.row.uid


async def _maintain(ask: Request, item: MonitorData) -> UUID | None:
    minutes = whole_number("minutes", value_of(ask, "minutes"))
    if minutes not in DURATIONS:
        raise Refused("invalid", "minutes", "choose a value from the list")
    # A window that begins in the past would need a preview.
    now = Instant(ask.context.clock() + START_AFTER)
    body = CreateMaintenance(
        monitor_id=item.row.uid,
        starts_at=to_text(now),
        ends_at=to_text(Instant(now + minutes * MINUTE)),
        reason=stripped(ask, "reason"),
    )
    made = await maintenance_api.create(replace(ask, body=body))
    return made.id


async def _delete(ask: Request, item: MonitorData) -> UUID | None:
    await api.delete(_about(ask, item))
    return item.row.uid


async def _edit(ask: Request, item: MonitorData, body: UpdateMonitor) -> UUID:
    await api.update(replace(_about(ask, item), body=body))
    return item.row.uid


def _about(ask: Request, item: MonitorData) -> Request:
    return replace(ask, ids={**ask.ids, "monitorID": item.row.uid})


def _channel(ask: Request) -> UUID:
    return uuid_given(value_of(ask, "channel"))


# (action, what happened, undo, values that the undo needs)
_ACTIONS: Final[Mapping[str, tuple[_Action, str, str, tuple[str, ...]]]] = {
    "pause": (_pause, "paused", "resume", ()),
    "resume": (_resume, "resumed", "pause", ()),
    "tag": (_tag, "tagged", "untag", ("tag",)),
    "untag": (_untag, "changed: tag removed", "tag", ("tag",)),
    "attach": (_attach, "changed: channel added", "detach", ("channel",)),
    "detach": (_detach, "changed: channel removed", "attach", ("channel",)),
    "maintain": (_maintain, "in maintenance", "end", ()),
    "delete": (_delete, "deleted", "", ()),
}


# First line of the progress.
TITLES: Final[Mapping[str, str]] = {
    "pause": "Pausing monitors",
    "resume": "Resuming monitors",
    "tag": "Adding the tag",
    "untag": "Removing the tag",
    "attach": "Adding the channel",
    "detach": "Removing the channel",
    "maintain": "Starting maintenance",
    "delete": "Deleting monitors",
}


def is_action(act: str) -> bool:
    return act in _ACTIONS or act == "end"


async def apply_to(ask: Request, act: str, chosen: Sequence[MonitorData]) -> BulkOutcome:
    """Executes the action on each monitor. Raises Problem for an unknown action."""
    if act not in _ACTIONS:
        raise Problem("Unknown action")
    action, *_ = _ACTIONS[act]
    done: list[UUID] = []
    failures: list[tuple[str, str]] = []
    left_out = same = 0
    for number, item in enumerate(chosen, start=1):
        try:
            made = await action(ask, item)
        except Unavailable:
            failures.append((item.row.name, "the database did not answer in time"))
            left_out = len(chosen) - number
            break
        except Refused as refused:
            if refused.code == "forbidden":
                raise
            failures.append((item.row.name, _reason(refused)))
        else:
            if made is None:
                same += 1
            else:
                done.append(made)
    return BulkOutcome(done, failures, same=same, left_out=left_out)


def result_of(ask: Request, act: str, outcome: BulkOutcome) -> BulkResult:
    """Returns the result in words, with the undo of what was done."""
    _, word, undo, _ = _ACTIONS[act]
    done, failures, left_out = outcome.done, outcome.failures, outcome.left_out
    changed = count(len(done), "monitor")
    text = f"{changed} {word}." if done or not failures else "No monitor was changed."
    if left_out:
        text += f" Stopped: {count(left_out, 'monitor')} {_WERE[left_out > 1]} not tried."
    more = outcome.more_failures + max(len(failures) - FAILURES_SHOWN, 0)
    return BulkResult(text, undo if done else "", done, values_of(ask, act), failures, more)


def values_of(ask: Request, act: str) -> dict[str, str]:
    """Returns the values of the action that its undo needs."""
    return {name: value_of(ask, name) for name in _ACTIONS[act][3]}


def values_of_step(ask: Request, act: str) -> list[tuple[str, str]]:
    """Returns the values of the action that its later steps need."""
    names = ("minutes", "reason") if act == "maintain" else _ACTIONS[act][3]
    return [(name, value_of(ask, name)) for name in names]


async def end_windows(ask: Request, windows: Sequence[UUID]) -> BulkResult:
    """Ends the maintenance that an action began: its undo."""
    ended = 0
    for uid in windows:
        try:
            await maintenance_api.delete(replace(ask, ids={**ask.ids, "maintenanceID": uid}))
            ended += 1
        except Refused as refused:
            # It was deleted, or is over.
            if refused.code not in ("not_found", "preview_required"):
                raise
    return BulkResult(f"{count(ended, 'maintenance window')} ended.")


def _reason(refused: Refused) -> str:
    if refused.code in _REASONS:
        return _REASONS[refused.code]
    return " ".join(part for part in (refused.field, refused.message or refused.code) if part)
