"""A percentile of counted latencies is wrong by at most the stated bound."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.results.rules.latency_sketch import (
    RELATIVE_ERROR,
    LatencySketch,
    bucket_of,
    middle_of,
)

LATENCIES = st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1))
FRACTIONS = (0.01, 0.5, 0.95, 0.99, 1.0)


def sketch_of(values: list[int]) -> LatencySketch:
    sketch = LatencySketch()
    sketch.add((bucket_of(value), 1) for value in values)
    return sketch


@given(st.lists(st.lists(LATENCIES, max_size=60), min_size=1, max_size=5).filter(any))
def test_added_sketches_have_the_percentiles_of_all_values(days: list[list[int]]) -> None:
    whole = LatencySketch()
    for day in days:
        whole.add(sketch_of(day).counts.items())
    values = sorted(value for day in days for value in day)
    assert whole.count == len(values)
    assert whole.counts == sketch_of(values).counts
    for fraction, found in zip(FRACTIONS, whole.percentiles(FRACTIONS), strict=True):
        exact = values[max(ceil(fraction * len(values)), 1) - 1]
        assert abs(found - exact) <= RELATIVE_ERROR * exact
        assert exact >= 128 or found == exact


@given(LATENCIES)
def test_buckets_are_in_the_order_of_their_values(value: int) -> None:
    assert bucket_of(value) <= bucket_of(value + 1) <= bucket_of(value) + 1
    assert bucket_of(int(middle_of(bucket_of(value)))) == bucket_of(value)
    assert 0 <= bucket_of(value) < 2**15
    assert bucket_of(-value) == bucket_of(0)
