"""Checks of a monitor draft before the write."""

from collections.abc import Mapping
from uuid import UUID

from ....probes.check.check import validate
from ....probes.check.target import BadTarget, read_host_port, read_url
from ...core.instant import SECOND, Instant
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...scheduling.rules.run_schedule import ScheduleTerm, anchor_for
from ..rows import MonitorRow
from ..rules.monitor import MonitorDraft, MonitorType, faults
from ..tables import monitors


def check_draft(
    draft: MonitorDraft, regions: frozenset[str], *, has_definition: bool = True
) -> None:
    """Checks a draft. Writes no rows.

    The definition of the check is omitted unless `has_definition`: it was checked when it was
    stored, and its secrets cannot be decrypted now.

    Raises:
        Refused invalid with the first fault and its field.
    """
    if draft.type not in MonitorType.__members__.values():
        raise Refused("invalid", "type", f"must be one of {', '.join(MonitorType)}")
    for fault in faults(draft):
        raise Refused("invalid", fault.field, fault.rule)
    if draft.region not in regions:
        raise Refused("invalid", "region", "is not a region of this installation")
    if not has_definition:
        return
    for wrong in validate(
        draft.type,
        draft.target,
        draft.method,
        draft.config,
        draft.conditions,
        retries=draft.retries,
        timeout_seconds=draft.timeout_seconds,
        interval_seconds=draft.interval_seconds,
    ):
        raise Refused("invalid", wrong.field, wrong.message)


def term_of(draft: MonitorDraft, uid: UUID, shard: int, now: Instant) -> ScheduleTerm:
    """Returns the schedule term of a draft. It begins at the reservation cursor."""
    interval_us = draft.interval_seconds * SECOND
    return ScheduleTerm(
        from_=now,
        anchor=anchor_for(uid, interval_us, now),
        interval_us=interval_us,
        timeout_us=draft.timeout_seconds * SECOND,
        grace_us=draft.grace_seconds * SECOND,
        enabled=draft.enabled,
        shard=shard,
        schedule=draft.schedule,
        timezone=draft.timezone if draft.schedule else "",
    )


async def lock_dependencies(tx: Tx, org: int, project: int, draft: MonitorDraft) -> list[int]:
    """Returns the keys of `depends_on`, locked against deletion.

    Raises:
        Refused invalid if one is not in the project.
    """
    if not draft.depends_on:
        return []
    known = await monitors.lock_shared_monitors(tx, org, project, draft.depends_on)
    if len(known) != len(draft.depends_on):
        raise Refused("invalid", "depends_on", "is not a monitor of this project")
    return [known[uid] for uid in draft.depends_on]


async def expect_no_circle(tx: Tx, row: MonitorRow) -> None:
    """Checks that the monitor does not depend on itself.

    Raises:
        Refused invalid.
    """
    edges = await monitors.select_dependencies(tx, row.org, row.project)
    if _reaches(edges, row.id):
        raise Refused("invalid", "depends_on", "must not lead back to the monitor itself")


def _reaches(edges: Mapping[int, list[int]], start: int) -> bool:
    seen: set[int] = set()
    waiting = list(edges[start])
    while waiting:
        key = waiting.pop()
        if key == start:
            return True
        if key not in seen:
            seen.add(key)
            waiting += edges.get(key, [])
    return False


def has_moved(before: str, after: str) -> bool:
    """Returns whether scheme, host or port of the target changed.

    The scheme counts, because without https a credential is readable in transit.
    """
    return before != after and _address(before) != _address(after)


def _address(target: str) -> tuple[str | int, ...] | str:
    try:
        url = read_url(target, ("http", "https", "ws", "wss"))
    except BadTarget:
        try:
            return read_host_port(target)
        except BadTarget:
            return target
    return url.origin
