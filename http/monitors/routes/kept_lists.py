"""The whole list of the monitors of a project, from parts that are kept as JSON.

Each read compares the marks of the monitors in one statement, and reads only those whose part can
have changed. One transaction reads marks and parts in one snapshot. The next due instant depends on
the clock alone; each read writes it into the part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import trio

from ....storage.core.instant import LATEST, SECOND, Instant, to_text
from ....storage.engine.pools import Isolation, Tx
from ....storage.monitors.queries.list_marks import (
    ListMarks,
    select_list_marks,
    select_listed,
    unchanged_until,
)
from ....storage.monitors.queries.monitors import next_due_of
from ....storage.monitors.rows import MonitorRow
from ....storage.scheduling.rules.run_schedule import ScheduleTerm, next_due
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of
from .monitors import SHOWN_A_TURN, SHOWN_AT_ONCE, ShownMonitor, may_see_secrets, shown_monitors

# A read includes the parts that end within this time.
READ_AHEAD_US: Final = 5 * SECOND
# Limit of a read of a long list, whose parts wait for turns of the event loop.
LIST_SECONDS: Final = 15.0
# Memory of a part without its JSON. The body contains the JSON a second time.
_PART_BYTES: Final = 600
_NEXT_DUE: Final = b',"next_due_at":"'


@dataclass(frozen=True, slots=True)
class KeptMonitor:
    """JSON of a monitor, true before `until`.

    `due` is the next due instant, LATEST without one. Its text begins at `due_starts`.
    """

    json: bytes
    until: Instant
    due: Instant = LATEST
    due_starts: int = 0
    term: ScheduleTerm | None = None
    is_watched: bool = False
    is_counted: bool = False
    # Whether it names other monitors of the project.
    names_others: bool = False


@dataclass(frozen=True, slots=True)
class KeptList:
    """Parts of a list by slug, with their marks. Each request reads the parts that are None.

    All parts are true from `read_at` to `until`. With a part that is None, both are equal.
    """

    seen: ListMarks
    parts: list[KeptMonitor | None]
    body: bytes
    read_at: Instant
    until: Instant
    # As `select_list_marks` takes it.
    watched: Mapping[int, bool]


async def read_list(ask: Request) -> bytes:
    """Returns JSON of all monitors of the project as the caller may see them."""
    org, project = org_of(ask), project_of(ask)
    shows_secrets = may_see_secrets(ask)
    # The address of the installation is part of push URLs.
    variant = (shows_secrets, ask.base_url if shows_secrets else "")
    lists = ask.context.lists
    known: KeptList | None = lists.get(org, project, variant)
    if known is not None and await _is_true(ask, known):
        return known.body
    async with ask.context.pool.transaction(
        "list_monitors",
        read_only=True,
        isolation=Isolation.REPEATABLE_READ,
        statement_timeout_seconds=LIST_SECONDS,
    ) as tx:
        found = await _read(ask, tx, org, project, known)
    weight = sum(len(part.json) + _PART_BYTES for part in found.parts if part is not None)
    lists.put(org, project, found, weight + len(found.body), variant)
    return found.body


async def _is_true(ask: Request, known: KeptList) -> bool:
    """Returns whether the whole list is still true, by one statement outside a transaction."""
    if not known.read_at <= ask.context.clock() < known.until:
        return False
    async with ask.context.pool.statement("compare_monitors") as tx:
        now = tx.now
        seen = await select_list_marks(tx, org_of(ask), project_of(ask), known.watched)
    return known.read_at <= now < known.until and known.seen == seen


async def _read(ask: Request, tx: Tx, org: int, project: int, known: KeptList | None) -> KeptList:
    # Before the snapshot, so that each stored result is visible.
    now = tx.now
    if known is not None and now < known.read_at:
        # The clock was set back.
        known = None
    before: Mapping[int, bool] = known.watched if known is not None else {}
    seen = await select_list_marks(tx, org, project, before)
    unsettled = set(seen.unsettled)
    kept = _unchanged(known, seen, unsettled, now)
    stale = [key for key in seen.ids if key not in kept]
    bodies = {key: part.json for key, part in kept.items()}
    if stale:
        soon = Instant(now + READ_AHEAD_US)
        stale += [key for key, part in kept.items() if part.until <= soon]
        for row, json, part in await _read_parts(ask, tx, org, stale):
            bodies[row.id] = json
            kept.pop(row.id, None)
            if part is not None and row.id not in unsettled:
                kept[row.id] = part
    watched = {key: part.is_counted for key, part in kept.items() if part.is_watched}
    if watched != before:
        # In the snapshot of the parts.
        seen = await select_list_marks(tx, org, project, watched)
    parts = [kept.get(key) for key in seen.ids]
    until = min((min(part.until, part.due) if part else now for part in parts), default=LATEST)
    body = b"[" + b",".join([bodies[key] for key in seen.ids]) + b"]"
    return KeptList(seen, parts, body, now, until, watched)


def _unchanged(
    known: KeptList | None, seen: ListMarks, unsettled: set[int], now: Instant
) -> dict[int, KeptMonitor]:
    """Returns the parts that are still true, with their present due instants."""
    if known is None:
        return {}
    same_monitors = known.seen.ids == seen.ids
    before = {
        key: (mark, part)
        for key, mark, part in zip(known.seen.ids, known.seen.marks, known.parts, strict=True)
        if part is not None
        and now < part.until
        and key not in unsettled
        and (same_monitors or not part.names_others)
    }
    found = {}
    for key, mark in zip(seen.ids, seen.marks, strict=True):
        was, part = before.get(key, (None, None))
        if part is not None and was == mark:
            found[key] = part if now < part.due else _renewed(part, now)
    return found


async def _read_parts(
    ask: Request, tx: Tx, org: int, ids: Sequence[int]
) -> list[tuple[MonitorRow, bytes, KeptMonitor | None]]:
    """Reads monitors of the project. Returns JSON of each, and the part to keep."""
    found: list[tuple[MonitorRow, bytes, KeptMonitor | None]] = []
    # In parts, so that other tasks get their turn.
    for first in range(0, len(ids), SHOWN_AT_ONCE):
        rows = list((await select_listed(tx, org, ids[first : first + SHOWN_AT_ONCE])).values())
        shown = await shown_monitors(ask, tx, rows)
        for n, (row, one) in enumerate(zip(rows, shown, strict=True)):
            if n % SHOWN_A_TURN == SHOWN_A_TURN - 1:
                await trio.lowlevel.checkpoint()
            json = msgspec.json.encode(one.json)
            found.append((row, json, _part(row, one, json, tx.now)))
    return found


def _part(row: MonitorRow, shown: ShownMonitor, json: bytes, now: Instant) -> KeptMonitor | None:
    same = unchanged_until(row, shown.standing, now)
    if same is None or shown.until <= now:
        return None
    part = KeptMonitor(
        json,
        Instant(min(same.until, shown.until)),
        is_watched=same.is_watched,
        is_counted=same.is_counted,
        names_others=bool(row.depends_on),
    )
    due = next_due_of(shown.standing, now)
    if due is None or shown.standing is None:
        return part
    # Within a text the quotes would be escaped, and no object behind it has this name.
    starts = json.rindex(_NEXT_DUE) + len(_NEXT_DUE)
    return replace(part, due=due, due_starts=starts, term=shown.standing.newest_term)


def _renewed(part: KeptMonitor, now: Instant) -> KeptMonitor:
    """Returns the part with the next due instant after `now`."""
    assert part.term is not None, "only a part with a term has a due instant"
    due = next_due(part.term, now)
    text = to_text(due).encode()
    ends = part.due_starts + len(text)
    json = part.json[: part.due_starts] + text + part.json[ends:]
    return replace(part, json=json, due=due)
