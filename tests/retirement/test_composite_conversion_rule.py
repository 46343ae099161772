"""A service that is converted from a composite has the same status for the same members."""

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
def test_the_service_has_the_status_of_the_composite(
    mode: composite.CompositeMode, quorum: int, members: list[tuple[str, MemberState]], here: bool
) -> None:
    if here:
        members = [("core", seen) for _, seen in members]
    regions = [region for region, _ in members]
    policies = policies_of(mode, quorum, regions)
    if isinstance(policies, str):
        assert mode is composite.CompositeMode.QUORUM
        assert len(set(regions)) > 1 or quorum > len(members)
        return
    said = composite.composite_status(mode, quorum, [_SEEN[seen] for _, seen in members])
    found = state(policies, members).condition
    is_maintained = any(seen is MemberState.MAINTENANCE for _, seen in members)
    if mode is composite.CompositeMode.QUORUM and is_maintained:
        # The service is stricter: it is never good while the composite is down.
        assert (said, found) != (SliCondition.BAD, SliCondition.GOOD)
    else:
        assert found is said
