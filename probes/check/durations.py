"""Durations in conditions: `48h`, `1h30m`, `250ms`, `14d`.

Pure. Source: the grammar of Go's time.ParseDuration, unsigned, with days added.
"""

import re
from fractions import Fraction

_PIECE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ns|us|µs|ms|s|m|h|d)")
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LONGEST_US = 100 * 366 * 86_400 * 1_000_000


def read_duration(text: str) -> int | None:
    """Returns whole µs, rounded down. None if invalid or longer than 100 years."""
    at, total_ns = 0, Fraction(0)
    while piece := _PIECE.match(text, at):
        total_ns += Fraction(piece[1]) * _UNIT_NS[piece[2]]
        at = piece.end()
    if at == 0 or at != len(text):
        return None
    total_us = int(total_ns // 1_000)
    return total_us if total_us <= LONGEST_US else None
