"""Expectations of push monitors, loaded before silence or heartbeats are folded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.time_span import TimeSpan, merged
from ...engine.pools import Tx
from ...scheduling.queries import shards
from ...scheduling.rules.presence import LATE_RENEWAL_US, Presence, judged_through, listened
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import presences
from ...scheduling.tables import shards as schedules
from ..rules.incoming_result import IncomingResult, ResultSource
from ..rules.push_deadline import PushGap, missed_deadlines, next_deadline
from ..tables.results import LockedState

PUSH = "push"
PUSH_MISSED = "push_missed"


@dataclass(frozen=True, slots=True)
class PushExpectation:
    """Silence of one push monitor and the data that it is judged by."""

    silence: PushGap | None
    terms: Sequence[ScheduleTerm]
    maintenance: Sequence[TimeSpan]
    heard: Sequence[TimeSpan]
    # Instant up to which all received pushes are committed, None if no process listens.
    judged: Instant | None

    def missed(self, through: Instant) -> list[Instant]:
        """Returns the deadlines that passed by `through` and can be judged."""
        if self.silence is None or self.judged is None:
            return []
        until = min(through, self.judged)
        return missed_deadlines(self.silence, self.terms, self.maintenance, self.heard, until)

    def after(self, missed: Instant) -> "PushExpectation":
        """Returns the same expectation after a missed deadline has been folded."""
        if self.silence is None:
            return self
        return replace(self, silence=PushGap(self.silence.since, missed))

    def is_undecided(self, through: Instant) -> bool:
        """Returns whether a deadline passed by `through` that cannot be judged yet."""
        deadline = self.next_deadline()
        if deadline is None or deadline > through:
            return False
        return self.judged is None or deadline > self.judged

    def next_deadline(self) -> Instant | None:
        if self.silence is None:
            return None
        return next_deadline(self.silence, self.terms, self.maintenance, self.heard)


async def load_promises(
    tx: Tx,
    locked: Mapping[MonitorKey, LockedState],
    newest: Mapping[MonitorKey, tuple[Instant, str | None]],
) -> dict[MonitorKey, PushExpectation]:
    """Returns the expectations of the push monitors among the locked ones."""
    keys = [key for key, row in locked.items() if row.type == PUSH]
    if not keys:
        return {}
    silences = {key: _silence(locked[key], newest.get(key)) for key in keys}
    since = min((s.since for s in silences.values() if s is not None), default=tx.now)
    terms = await schedules.select_terms_of(tx, keys)
    maintenance = await shards.select_maintenances(tx, since, monitors=[k[1] for k in keys])
    known = [
        Presence(row.from_at, row.through_at, row.ended)
        # An unclean end before the last heartbeat leaves time without listening after it.
        for row in await presences.select_listening(tx, Instant(since - LATE_RENEWAL_US))
    ]
    heard, judged = listened(known, tx.now), judged_through(known, tx.now)
    return {
        key: PushExpectation(
            silences[key], terms.get(key, ()), merged(maintenance.get(key[1], ())), heard, judged
        )
        for key in keys
    }


def missed_arrival(row: LockedState, deadline: Instant) -> IncomingResult:
    """Returns the failure for a missed deadline."""
    return IncomingResult(
        org=row.org,
        monitor=row.monitor,
        shard=row.shard,
        ts=deadline,
        up=False,
        msg=PUSH_MISSED,
        source=ResultSource.PUSH,
    )


def _silence(row: LockedState, newest: tuple[Instant, str | None] | None) -> PushGap | None:
    if newest is None:
        return None
    instant, message = newest
    if message != PUSH_MISSED:
        return PushGap(instant)
    return PushGap(row.silent_since or instant, instant)
