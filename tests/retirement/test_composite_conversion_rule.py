"""A service that is made of a composite says of the same members what the composite says."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.sli import Condition
from leadline.storage.monitors.rules import composite
from leadline.storage.retirement.rules import policies_of
from leadline.storage.services.rules.service_health import Seen, state

_SEEN = {
    Seen.UP: Condition.GOOD,
    Seen.DOWN: Condition.BAD,
    Seen.MISSING: Condition.UNKNOWN,
    Seen.PAUSED: Condition.UNKNOWN,
    Seen.MAINTENANCE: Condition.EXCLUDED,
}
_MEMBERS = st.lists(
    st.tuples(st.sampled_from(["core", "eu", "us"]), st.sampled_from(list(Seen))),
    min_size=1,
    max_size=7,
)


@given(st.sampled_from(list(composite.Mode)), st.integers(1, 8), _MEMBERS, st.booleans())
def test_it_says_the_same_of_any_members(
    mode: composite.Mode, quorum: int, members: list[tuple[str, Seen]], here: bool
) -> None:
    if here:
        members = [("core", seen) for _, seen in members]
    regions = {region for region, _ in members}
    policies = policies_of(mode, quorum, regions)
    if policies is None:
        assert mode is composite.Mode.QUORUM
        assert len(regions) > 1
        return
    said = composite.verdict(mode, quorum, [_SEEN[seen] for _, seen in members])
    assert state(policies, members).condition is said
