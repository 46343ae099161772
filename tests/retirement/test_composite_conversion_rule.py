"""A service that is made of a composite says of the same members what the composite says."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.sli import SliCondition
from leadline.storage.monitors.rules import composite
from leadline.storage.retirement.rules import policies_of
from leadline.storage.services.rules.service_health import MemberState, state

_SEEN = {
    MemberState.UP: SliCondition.GOOD,
    MemberState.DOWN: SliCondition.BAD,
    MemberState.MISSING: SliCondition.UNKNOWN,
    MemberState.NOT_BEGUN: SliCondition.UNKNOWN,
    MemberState.PAUSED: SliCondition.UNKNOWN,
    MemberState.MAINTENANCE: SliCondition.EXCLUDED,
}
_MEMBERS = st.lists(
    st.tuples(st.sampled_from(["core", "eu", "us"]), st.sampled_from(list(MemberState))),
    min_size=1,
    max_size=7,
)


@given(st.sampled_from(list(composite.CompositeMode)), st.integers(1, 8), _MEMBERS, st.booleans())
def test_it_says_the_same_of_any_members(
    mode: composite.CompositeMode, quorum: int, members: list[tuple[str, MemberState]], here: bool
) -> None:
    if here:
        members = [("core", seen) for _, seen in members]
    regions = {region for region, _ in members}
    policies = policies_of(mode, quorum, regions)
    if policies is None:
        assert mode is composite.CompositeMode.QUORUM
        assert len(regions) > 1
        return
    said = composite.composite_status(mode, quorum, [_SEEN[seen] for _, seen in members])
    assert state(policies, members).condition is said
