"""What an agent did and what it did not, counted: a line of the log each minute says it whole."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class AgentCounters:
    """Since the process began. What is dropped, refused or unknown is counted by its reason."""

    up: int = 0
    down: int = 0
    alone: int = 0  # runs that no server asked for, of all
    accepted: int = 0
    duplicate: int = 0
    ignored: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    # Jobs that were not run, by why.
    refused: Counter[str] = field(default_factory=Counter)
    # Results that were made and never reach the server.
    dropped: Counter[str] = field(default_factory=Counter)

    def told(self) -> dict[str, Any]:
        """For the log: numbers, and texts of what has reasons."""
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
