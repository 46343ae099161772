"""Counts the requests about changes and about the release gate for the metrics."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from ...storage.gate.rules.gate import GateAction, GateState


@dataclass(slots=True)
class ChangeCounts:
    """Counters of change requests.

    `recorded` is by whether a phase was new, `rejected` by error code, `compares` by outcome.
    `correlations` counts incidents shown with changes, and changes shown with incidents.
    """

    recorded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    compares: Counter[str] = field(default_factory=Counter)
    correlations: int = 0


# Upper bounds in seconds; the last bucket counts longer durations.
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class GateCounts:
    """Counters of gate requests.

    `decisions` is by state, action and whether an override changed the action. `rejected` is by the
    code of the refused permit, `errors` by the cause of the failure.
    """

    decisions: Counter[tuple[GateState, GateAction | None, bool]] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    # Requests per bucket of BOUNDS (not cumulative), and the sum of their seconds.
    took: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    took_seconds: float = 0.0

    def decided(
        self,
        state: GateState,
        action: GateAction | None,
        unoverridden: GateAction | None,
        seconds: float,
    ) -> None:
        self.decisions[state, action, action is not unoverridden] += 1
        self.took[bisect_left(BOUNDS, seconds)] += 1
        self.took_seconds += seconds
