"""Counts of latencies by bucket, which can be added, and their percentiles.

Latencies below 128 ms have a bucket each. Above, each power of two is divided into 64 buckets of
equal width. A percentile is the middle of its bucket, so it is wrong by at most half a bucket: by
less than 0.8 % of the exact percentile, and by nothing below 128 ms.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

# A power of two has this number of buckets, as a power of two.
_BITS: Final = 6
# The percentiles of answers, as fractions.
PERCENTILES: Final = (0.5, 0.95, 0.99)
# The bound that answers state.
RELATIVE_ERROR: Final = 0.01
# The bucket of the column `latency_ms` in SQL, with `shift` from a lateral item `s`. The half keeps
# the logarithm away from whole numbers, where it would be rounded.
SHIFT_SQL: Final = (
    f"greatest(floor(ln(greatest(latency_ms, 0)::float8 + 0.5) / ln(2::float8))::int - {_BITS}, 0)"
)
BUCKET_SQL: Final = f"(s.shift << {_BITS}) + (greatest(latency_ms, 0) >> s.shift)"


def bucket_of(latency_ms: int) -> int:
    """Returns the bucket of a latency. A negative one counts as 0."""
    value = max(latency_ms, 0)
    shift = max(value.bit_length() - 1 - _BITS, 0)
    return (shift << _BITS) + (value >> shift)


def middle_of(bucket: int) -> float:
    """Returns the middle of a bucket in milliseconds."""
    shift = max((bucket >> _BITS) - 1, 0)
    first = (bucket - (shift << _BITS)) << shift
    return first + ((1 << shift) - 1) / 2


@dataclass(slots=True)
class LatencySketch:
    counts: Counter[int] = field(default_factory=Counter)

    def add(self, counts: Iterable[tuple[int, int]]) -> None:
        """Adds (bucket, number of results) pairs."""
        for bucket, count in counts:
            self.counts[bucket] += count

    @property
    def count(self) -> int:
        return self.counts.total()

    def percentiles(self, wanted: Sequence[float]) -> list[float]:
        """Returns the percentiles in milliseconds for ascending fractions.

        A percentile is the first latency that is not below this fraction of the results, as
        `percentile_disc` of PostgreSQL. Raises ValueError without a result.
        """
        total = self.count
        if not total:
            raise ValueError("no result has a latency")
        found = []
        passed, bucket, rest = 0, 0, iter(sorted(self.counts.items()))
        for fraction in wanted:
            while passed < max(ceil(fraction * total), 1):
                bucket, count = next(rest)
                passed += count
            found.append(middle_of(bucket))
        return found
