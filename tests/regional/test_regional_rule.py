"""Drafts of the parts: the check of a member, and what the composite alone has."""

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.monitor_spec import MonitorType
from leadline.storage.monitors.rules.fields import BOUNDS, FIELDS
from leadline.storage.monitors.rules.monitor import MonitorDraft, faults
from leadline.storage.regional.rules import (
    OF_BOTH,
    OF_COMPOSITE,
    TYPES,
    composite_draft,
    given_to_composite,
    given_to_member,
    majority,
    member_draft,
    spread_faults,
)

NAMES = st.text("abc ÄЖ(", min_size=1, max_size=200).filter(str.strip)
REGIONS = st.from_regex(r"[a-z]{1,10}(-[a-z]{1,10}){0,4}", fullmatch=True)
SLUGS = st.none() | st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True)


@st.composite
def drafts(draw: st.DrawFn) -> MonitorDraft:
    return MonitorDraft(
        type="http",
        name=draw(NAMES),
        slug=draw(SLUGS),
        target="https://shop.example/",
        interval_seconds=draw(st.integers(5, 86_400)),
        timeout_seconds=5,
        auto_incident=draw(st.booleans()),
        renotify_seconds=draw(st.sampled_from([0, 60])),
        flap_threshold=draw(st.sampled_from([0, 3])),
        enabled=draw(st.booleans()),
        depends_on=draw(st.lists(st.uuids(), max_size=2)),
        escalation_policy_id=draw(st.none() | st.uuids().map(str)),
        config={"headers": {"A": "b"}},
    )


@given(drafts(), REGIONS)
def test_a_member_has_the_check_and_tells_nobody(draft: MonitorDraft, region: str) -> None:
    member = member_draft(draft, region)
    assert faults(member) == []
    assert member.name.endswith(f" ({region})")
    assert len(member.name) <= BOUNDS["name"].most
    assert (member.region, member.depends_on) == (region, [])
    assert not member.auto_incident
    assert (member.renotify_seconds, member.flap_threshold) == (0, 0)
    assert member.escalation_policy_id is None
    for name in FIELDS.keys() - OF_COMPOSITE - {"name", "region"}:
        assert getattr(member, name) == getattr(draft, name)
    assert (member.type, member.config) == (draft.type, draft.config)


@given(drafts(), st.lists(st.uuids(), min_size=2, max_size=16, unique=True), st.integers(1, 16))
def test_the_composite_has_what_tells_and_counts(
    draft: MonitorDraft, members: list[UUID], down: int
) -> None:
    whole = composite_draft(draft, members, down)
    assert faults(whole) == []
    for name in OF_BOTH | OF_COMPOSITE:
        assert getattr(whole, name) == getattr(draft, name)
    assert whole.slug == draft.slug
    assert (whole.target, whole.conditions) == ("", [])
    assert whole.config == {
        "children": [str(uid) for uid in members],
        "mode": "quorum",
        "quorum": down,
    }


@given(
    st.dictionaries(
        st.sampled_from(sorted(FIELDS.keys() | OF_COMPOSITE | {"config"})), st.text(min_size=1)
    ),
    REGIONS,
)
def test_each_given_field_reaches_a_part(values: dict[str, Any], region: str) -> None:
    member, whole = given_to_member(values, region), given_to_composite(values)
    assert member.keys() | whole.keys() == values.keys()
    assert not member.keys() & OF_COMPOSITE
    assert member.keys() & whole.keys() <= OF_BOTH


@given(
    st.sampled_from(sorted(MonitorType)),
    st.lists(st.sampled_from("abcdefghijklmnopqrst"), max_size=20),
    st.integers(-1, 21),
)
def test_only_sets_of_2_to_16_regions_are_valid(kind: str, regions: list[str], down: int) -> None:
    is_valid = (
        kind in TYPES
        and 2 <= len(regions) <= 16
        and len(set(regions)) == len(regions)
        and 1 <= down <= len(regions)
    )
    assert (spread_faults(kind, regions, down) == []) is is_valid


@given(st.integers(2, 16))
def test_the_default_is_more_than_half(regions: int) -> None:
    assert 2 * majority(regions) > regions >= 2 * (majority(regions) - 1)
