"""What an agent knows of the monitors whose jobs it was given, and which windows are due of them.

Cut off from its server it goes on by this: of each monitor the newest window that can still be
claimed, once. Secrets are in here, so that it is memory only and forgotten in time. Pure: instants
are µs since the epoch and arguments.
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ...probes.check.check import Check
from ...probes.jobs.agent_protocol import CAPABILITY

# A monitor more is run while its jobs come, and not when they cannot.
MONITORS_MOST: Final = 10_000
# A window may be begun until its interval is over, and no longer than this.
CLAIMABLE_US_MOST: Final = 120_000_000
# While the server answers, whoever is no job of ours for so long is no monitor of ours any more.
UNSEEN_INTERVALS: Final = 10
UNSEEN_US_LEAST: Final = 600_000_000


@dataclass(frozen=True, slots=True)
class KnownCheck:
    """What is run of a monitor, and when: at `anchor + k * interval`. Spans are µs."""

    monitor: UUID
    revision: int
    anchor: int
    interval: int
    timeout: int
    check: Check

    def claimable_until(self, due: int) -> int:
        return due + min(self.interval, CLAIMABLE_US_MOST)

    def newest_due(self, now: int) -> int:
        """The last window that is due by now; before the first one, less than the anchor."""
        return self.anchor + (now - self.anchor) // self.interval * self.interval


@dataclass(slots=True)
class _Known:
    definition: KnownCheck
    seen_at: int
    # The newest window that was taken, given to us or our own.
    through: int
    # Windows that can still come again, with the revision that they were taken in.
    taken: dict[int, int] = field(default_factory=dict)


class OfflineSchedule:
    """Windows are keyed by monitor and due instant: each is run once, whoever says that it is."""

    def __init__(self) -> None:
        self._monitors: dict[UUID, _Known] = {}
        # How long the server has answered, all in all: what is unseen is judged by that.
        self._connected_us = 0

    def __len__(self) -> int:
        return len(self._monitors)

    def learn(self, definition: KnownCheck) -> None:
        """A job of this monitor came. A canary is never run without the server's word."""
        if definition.check.type in CAPABILITY:
            return
        known = self._monitors.get(definition.monitor)
        if known is None:
            if len(self._monitors) < MONITORS_MOST:
                before = definition.anchor - definition.interval
                self._monitors[definition.monitor] = _Known(
                    definition, self._connected_us, through=before
                )
            return
        known.seen_at = self._connected_us
        if definition.revision >= known.definition.revision:
            known.definition = definition

    def take(self, definition: KnownCheck, due: int, now: int) -> bool:
        """Whether a window that the server gave us is to be run: not where it is in hand, or was
        run, by the same definition."""
        known = self._monitors.get(definition.monitor)
        if known is None:
            return True
        if known.taken.get(due) == definition.revision:
            return False
        self._note(known, due, definition.revision, now)
        return True

    def give_back(self, monitor: UUID, due: int) -> None:
        """Nothing came of this window: the server may give it to us again."""
        known = self._monitors.get(monitor)
        if known is not None:
            known.taken.pop(due, None)

    def claim_due(self, now: int) -> list[tuple[KnownCheck, int]]:
        """The windows to be run without the server, each with its due instant; told once."""
        found = []
        for known in self._monitors.values():
            definition = known.definition
            due = definition.newest_due(now)
            if due > known.through and now < definition.claimable_until(due):
                self._note(known, due, definition.revision, now)
                found.append((definition, due))
        return sorted(found, key=lambda item: item[1])

    def next_due(self, now: int) -> int | None:
        """When `claim_due` will next have something new; None where nothing is known."""
        return min(
            (
                max(definition.newest_due(now) + definition.interval, definition.anchor)
                for definition in (known.definition for known in self._monitors.values())
            ),
            default=None,
        )

    def pass_connected(self, span: int) -> int:
        """So long again the server has answered: forgets whose jobs no longer come; how many."""
        self._connected_us += span
        gone = [
            monitor
            for monitor, known in self._monitors.items()
            if self._connected_us - known.seen_at
            >= max(known.definition.interval * UNSEEN_INTERVALS, UNSEEN_US_LEAST)
        ]
        for monitor in gone:
            del self._monitors[monitor]
        return len(gone)

    def clear(self) -> int:
        """How many there were."""
        count = len(self._monitors)
        self._monitors.clear()
        return count

    @staticmethod
    def _note(known: _Known, due: int, revision: int, now: int) -> None:
        known.through = max(known.through, due)
        for old in [old for old in known.taken if old + 2 * CLAIMABLE_US_MOST < now]:
            del known.taken[old]
        known.taken[due] = revision
