"""Flap states of the monitors of one pass over outages."""

from collections.abc import Mapping

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...incidents.rows import IncidentRow
from ...monitors.rules.monitor_state import MonitorStatus
from ..rules.flapping import FlapState, changed, settled
from ..tables.outages import LockedMonitor, OutageRow


class FlapStates:
    """States of locked monitors. Monitors without a threshold have none."""

    def __init__(self, stored: Mapping[MonitorKey, FlapState]) -> None:
        self._states = dict(stored)
        self.changed: dict[MonitorKey, FlapState] = {}

    def follow(
        self, subject: LockedMonitor, at: Instant, status: str, *, is_alerting: bool
    ) -> None:
        """Counts a status that began at an instant. `is_alerting`: an outage is open."""
        if not subject.flap_threshold or status not in (MonitorStatus.UP, MonitorStatus.DOWN):
            return
        before = self._states.get(subject.key, FlapState())
        is_down = status == MonitorStatus.DOWN
        # It stayed down for so long that this is a recovery. After an outage that ended uncounted,
        # without a threshold, this is a new one. An open one is still announced again.
        is_over = not is_down or not is_alerting
        if before.up_at is None and is_over and before.is_settled(at):
            before = settled(before)
        self._put(subject.key, changed(before, at, subject.flap_threshold, is_down=is_down))

    def recovered_by(
        self,
        subject: LockedMonitor,
        now: Instant,
        row: OutageRow | None,
        incident: IncidentRow | None,
    ) -> Instant | None:
        """Returns the end of an outage that stayed open while its monitor is up, None if it stays.

        A monitor that stayed up settles.
        """
        state = self._states.get(subject.key)
        if state is None or state.up_at is None:
            return None
        is_settled = state.is_settled(now)
        if is_settled:
            self._put(subject.key, settled(state))
        # A threshold that was set during the outage can find an earlier recovery.
        if row is None or state.up_at < row.began_at:
            return None
        return None if not is_settled and self.keeps_open(subject, row, incident) else state.up_at

    def keeps_open(
        self, subject: LockedMonitor, row: OutageRow, incident: IncidentRow | None
    ) -> bool:
        """Returns whether the alert of a monitor that is up stays open.

        That of a service, and one that somebody resolved, ends.
        """
        state = self._states.get(subject.key)
        if state is None or not state.is_flapping:
            return False
        if row.announced_at is None or row.service is not None:
            return False
        return row.incident is None or (incident is not None and incident.resolved_at is None)

    def settles_at(self, key: MonitorKey) -> Instant | None:
        state = self._states.get(key)
        return None if state is None else state.settles_at()

    def settle(self, key: MonitorKey) -> None:
        """Settles a monitor that stayed down."""
        self._put(key, settled(self._states[key]))

    def _put(self, key: MonitorKey, state: FlapState) -> None:
        if state != self._states.get(key):
            self._states[key] = self.changed[key] = state
