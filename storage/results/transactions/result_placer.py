"""Placement of results and verdicts: in the tables, or in the pieces of a packed day."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ...core.instant import EARLIEST, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rules.incoming_result import IncomingResult
from ..rules.late_result import SettledWindow, StoredHeartbeat
from ..rules.packed_days import LATE_US, day_of
from ..tables import packing, results
from .store_late_results import store_late_results

Window = tuple[int, int, Instant, str, str | None]


class ResultPlacer:
    """Stores the results and verdicts of one transaction, which has locked the fences and states.

    A row of a packed day changes its pieces. A late row of a day that is not packed yet is stored
    in the tables, and its day is marked, because it may have pieces that are not read yet.
    """

    def __init__(self, tx: Tx, fences: Mapping[int, Instant]) -> None:
        self._tx = tx
        self._late_before = Instant(max(fences.values(), default=EARLIEST) - LATE_US)
        self._packed_through: Instant | None = None

    async def insert(self, arrivals: Sequence[IncomingResult]) -> set[tuple[int, int, Instant]]:
        """Returns the (org, monitor, ts) that were stored. The others found their instant taken."""
        border = await self._border(a.ts for a in arrivals)
        packed = [a for a in arrivals if a.ts < border]
        done = await results.insert_heartbeats(self._tx, [a for a in arrivals if a.ts >= border])
        await self._mark((MonitorKey((org, monitor)), ts) for org, monitor, ts in done)
        conditions = await results.select_condition_ids(self._tx, packed) if packed else {}
        days = defaultdict[tuple[MonitorKey, Instant], list[StoredHeartbeat]](list)
        for place, arrival in enumerate(packed):
            day = day_of(arrival.ts)
            days[arrival.key, day.from_].append(_stored(arrival, conditions.get(place)))
        for (key, start), rows in days.items():
            added, _ = await store_late_results(self._tx, key, day_of(start), rows, [])
            done |= {(*key, ts) for ts in added}
        return done

    async def settle(self, windows: Iterable[Window]) -> set[tuple[int, int, Instant]]:
        """Settles (org, monitor, due, verdict, reason) windows and returns the written ones."""
        wanted = list(windows)
        border = await self._border(due for _, _, due, _, _ in wanted)
        done = await results.settle_windows(self._tx, [w for w in wanted if w[2] >= border])
        await self._mark((MonitorKey((org, monitor)), due) for org, monitor, due in done)
        days = defaultdict[tuple[MonitorKey, Instant], list[SettledWindow]](list)
        for org, monitor, due, verdict, reason in wanted:
            if due < border:
                row = SettledWindow(due, self._tx.now, verdict, reason)
                days[MonitorKey((org, monitor)), day_of(due).from_].append(row)
        for (key, start), rows in days.items():
            _, written = await store_late_results(self._tx, key, day_of(start), [], rows)
            done |= {(*key, due) for due in written}
        return done

    async def _border(self, instants: Iterable[Instant]) -> Instant:
        """Returns the instant through which days are packed, or EARLIEST if no row is late."""
        if self._packed_through is None and any(at < self._late_before for at in instants):
            self._packed_through = await packing.lock_packed_through(self._tx)
        return EARLIEST if self._packed_through is None else self._packed_through

    async def _mark(self, written: Iterable[tuple[MonitorKey, Instant]]) -> None:
        late = {(key, day_of(at).from_) for key, at in written if at < self._late_before}
        if late:
            await packing.insert_late_writes(self._tx, late)


def _stored(arrival: IncomingResult, condition: int | None) -> StoredHeartbeat:
    return StoredHeartbeat(
        ts=arrival.ts,
        latency_ms=arrival.latency_ms,
        code=arrival.code,
        dns_us=arrival.dns_us,
        connect_us=arrival.connect_us,
        tls_us=arrival.tls_us,
        first_byte_us=arrival.first_byte_us,
        up=arrival.up,
        msg=arrival.msg or None,
        failed_condition=condition,
        measured=None if condition is None else arrival.measured,
    )
