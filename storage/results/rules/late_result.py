"""Late results of a packed range: the same decisions as the statements on unpacked rows."""

from collections.abc import Iterable, Sequence

import msgspec

from ...core.instant import Instant


class StoredHeartbeat(msgspec.Struct, frozen=True):
    """A heartbeat as it is stored. Durations are in the units of their names."""

    ts: Instant
    latency_ms: int
    code: int | None
    dns_us: int | None
    connect_us: int | None
    tls_us: int | None
    first_byte_us: int | None
    up: bool
    msg: str | None
    failed_condition: int | None
    measured: str | None


class SettledWindow(msgspec.Struct, frozen=True):
    """A row of the ledger."""

    due_at: Instant
    settled_at: Instant
    verdict: str
    reason: str | None


def add_heartbeats(
    stored: Iterable[StoredHeartbeat], late: Sequence[StoredHeartbeat]
) -> tuple[list[StoredHeartbeat], set[Instant]]:
    """Returns all heartbeats in the order of time, and the instants that were added.

    The first heartbeat of an instant stays: a repeated one changes nothing.
    """
    found = {row.ts: row for row in stored}
    added = set[Instant]()
    for row in late:
        if row.ts not in found:
            found[row.ts] = row
            added.add(row.ts)
    return [found[ts] for ts in sorted(found)], added


def settle_late(
    settled: Iterable[SettledWindow], late: Sequence[SettledWindow]
) -> tuple[list[SettledWindow], set[Instant]]:
    """Returns all windows in the order of time, and the due instants that were written.

    A window is settled once. Only a missed one can still become covered late.
    """
    found = {row.due_at: row for row in settled}
    written = set[Instant]()
    for row in late:
        before = found.get(row.due_at)
        if before is None:
            found[row.due_at] = row
        elif before.verdict == "missed" and row.verdict != "withheld":
            found[row.due_at] = SettledWindow(row.due_at, row.settled_at, "covered_late", None)
        else:
            continue
        written.add(row.due_at)
    return [found[due] for due in sorted(found)], written
