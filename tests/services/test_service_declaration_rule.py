"""The bounds of a service declaration."""

import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.services.rules.service_declaration import (
    FLOOR_MOST_US,
    FLOOR_PATTERN,
    MEMBERS_MOST,
    floor_us,
    members_faults,
    policies_faults,
    sli_faults,
    spelt_floor,
)
from leadline.storage.services.rules.service_health import Policies

_UIDS = st.lists(st.integers(0, 300).map(lambda n: UUID(int=n)), max_size=250)


@given(_UIDS)
def test_members_are_unique_and_limited_in_number(uids: list[UUID]) -> None:
    twice = len(set(uids)) < len(uids)
    assert bool(list(sli_faults(uids))) is twice
    assert bool(list(members_faults(uids))) is (twice or len(uids) > MEMBERS_MOST)


_SMALL = st.integers(-1, 4) | st.sampled_from([MEMBERS_MOST, MEMBERS_MOST + 1])


@given(_SMALL, _SMALL, _SMALL, _SMALL)
def test_degraded_minimums_do_not_exceed_healthy_minimums(a: int, b: int, c: int, d: int) -> None:
    policies = Policies(
        healthy_min=a, degraded_min=b, healthy_min_regions=c, degraded_min_regions=d
    )
    fields = {field for field, _ in policies_faults(policies)}
    assert ("policies.aggregation.degraded_min" in fields) is (b > a or not 1 <= b <= MEMBERS_MOST)
    assert ("policies.aggregation.healthy_min" in fields) is not (1 <= a <= MEMBERS_MOST)
    assert ("policies.region.degraded_min_regions" in fields) is (
        d > c or not 1 <= d <= MEMBERS_MOST
    )
    assert ("policies.region.healthy_min_regions" in fields) is not (1 <= c <= MEMBERS_MOST)


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({"active_multiplier": 1}, "active_multiplier"),
        ({"active_multiplier": 11}, "active_multiplier"),
        ({"active_floor_us": FLOOR_MOST_US + 1}, "active_floor"),
        ({"active_multiplier": 2}, None),
        ({"active_multiplier": 10}, None),
        ({"active_floor_us": 0}, None),
        ({"active_floor_us": FLOOR_MOST_US}, None),
        ({}, None),
    ],
)
def test_freshness_is_bounded(given_: dict[str, Any], field: str | None) -> None:
    told = [field for field, _ in policies_faults(Policies(**given_))]
    assert told == ([] if field is None else [f"policies.freshness.{field}"])


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1m30s", 90_000_000),
        ("90s", 90_000_000),
        ("0s", 0),
        ("1h", 3_600_000_000),
        ("1s1s", 2_000_000),
        ("5us", 5),
        ("1500ns", None),
        ("500ns500ns", 1),
        ("", None),
        ("90", None),
        ("s", None),
        ("1.5s", None),
        ("-1s", None),
        ("1 s", None),
        ("1d", None),
        ("1s\n", None),
        ("١s", None),
        ("1" * 70 + "s", None),
    ],
)
def test_a_freshness_floor_is_parsed(text: str, us: int | None) -> None:
    assert floor_us(text) == us


@given(st.integers(0, 30 * FLOOR_MOST_US))
def test_a_freshness_floor_survives_a_round_trip(us: int) -> None:
    text = spelt_floor(us)
    assert floor_us(text) == us
    assert re.fullmatch(FLOOR_PATTERN, text)


_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9}


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from(list(_UNITS))), min_size=1, max_size=6
    )
)
def test_a_freshness_floor_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    whole = sum(count * _UNITS[unit] for count, unit in parts)
    said = floor_us("".join(f"{count}{unit}" for count, unit in parts))
    assert said == (whole // 1_000 if whole % 1_000 == 0 else None)
