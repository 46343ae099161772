"""What is told and asked of changes, counted for whoever watches the daemon."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ChangeCounts:
    """`recorded` by whether a phase was new, `rejected` by the code of the refusal, `compares` by
    what came of them; `correlations` are incidents told beside changes, and changes beside
    incidents."""

    recorded: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    compares: Counter[str] = field(default_factory=Counter)
    correlations: int = 0
