"""Counts the requests about changes and about the release gate for the metrics."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from ...storage.gate.rules.gate import GateAction, GateState


@dataclass(slots=True)
class ChangeCounts:
    """`recorded` by whether a phase was new, `rejected` by the code of the refusal, `compares` by
    what came of them; `correlations` are incidents told beside changes, and changes beside
    incidents."""

    recorded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    compares: Counter[str] = field(default_factory=Counter)
    correlations: int = 0


# Seconds; the last bucket holds what took longer than all of these.
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class GateCounts:
    """`decisions` by state, action and whether an override changed the action; `rejected` by the
    code of the permit that was not to be had; `errors` by what kept an answer from being made."""

    decisions: Counter[tuple[GateState, GateAction | None, bool]] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    # How many took at most each of BOUNDS and more than the one before, and all of their seconds.
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
