"""Counters of an agent, which are logged every minute."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class AgentCounters:
    """Counts since the process start. Dropped, refused and unknown are counted by reason."""

    up: int = 0
    down: int = 0
    alone: int = 0  # runs without a request from the server, included in up and down
    accepted: int = 0
    duplicate: int = 0
    ignored: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    # Jobs that were not run.
    refused: Counter[str] = field(default_factory=Counter)
    # Results that were not delivered to the server.
    dropped: Counter[str] = field(default_factory=Counter)

    def told(self) -> dict[str, Any]:
        """Returns the counters as log fields. Counts by reason are strings."""
        return {
            "up": self.up,
            "down": self.down,
            "alone": self.alone,
            "accepted": self.accepted,
            "duplicate": self.duplicate,
            "ignored": self.ignored,
            "unknown": _spelt(self.unknown),
            "refused": _spelt(self.refused),
            "dropped": _spelt(self.dropped),
        }


def _spelt(counter: Counter[str]) -> str:
    return ",".join(f"{reason}:{count}" for reason, count in sorted(counter.items()))
