"""The reason of a refused canary window, compared with an independent model."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.scheduling.rules.canary_refusal import NEEDED, RefusalInputs, refusal

capabilities = st.sets(
    st.sampled_from([NEEDED, "async_transaction@2", "async_transaction@10", "other@1"]), max_size=4
)


def expected(ground: RefusalInputs) -> str | None:
    mine = [c for c in ground.capabilities if c.startswith("async_transaction@")]
    if ground.in_flight:
        return "already_in_flight"
    if "async_transaction@1" in mine:
        return "region_saturated" if ground.taken >= ground.places else None
    return "capability_mismatch" if mine else "no_capable_runner"


@given(st.booleans(), st.integers(0, 6), st.integers(1, 5), capabilities)
def test_the_reason_is_the_one_nearest_to_the_monitor(
    in_flight: bool, taken: int, places: int, kinds: set[str]
) -> None:
    ground = RefusalInputs(in_flight, taken, places, kinds)
    assert refusal(ground) == expected(ground)
