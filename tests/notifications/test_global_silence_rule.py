"""The global silence: its period and its refused values."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import Instant
from leadline.storage.notifications.rules.global_silence import (
    LONGEST_US,
    LOOK_US,
    NO_SILENCE,
    GlobalSilence,
    silence_fault,
)

NOW = Instant(1_767_571_200_000_000)
_INSTANTS = st.integers(NOW - 2 * LONGEST_US, NOW + 2 * LONGEST_US).map(Instant)


@given(st.builds(GlobalSilence, st.booleans(), st.none() | _INSTANTS), _INSTANTS, _INSTANTS)
def test_a_silence_ends_once_and_stays_ended(
    silence: GlobalSilence, one: Instant, other: Instant
) -> None:
    sooner, later = sorted((one, other))
    assert not NO_SILENCE.is_in_force(sooner)
    if silence.is_in_force(later):
        assert silence.is_in_force(sooner)
        assert silence.enabled
    if silence.enabled and silence.until is None:
        assert silence.is_in_force(later)
    if silence.until is not None:
        assert not silence.is_in_force(silence.until)


@given(st.none() | st.integers(NOW + 1, NOW + LONGEST_US).map(Instant))
def test_its_end_is_never_slept_through(until: Instant | None) -> None:
    next_check_at = GlobalSilence(enabled=True, until=until).next_check_at(NOW)
    assert NOW < next_check_at <= NOW + LOOK_US
    assert until is None or next_check_at <= until


@given(st.builds(GlobalSilence, st.booleans(), st.none() | _INSTANTS))
def test_an_accepted_silence_is_in_force_if_it_is_enabled(silence: GlobalSilence) -> None:
    fault = silence_fault(silence, NOW)
    if fault is None:
        assert silence.is_in_force(NOW) is silence.enabled
    else:
        assert silence.enabled
        assert silence.until is not None
        assert not NOW < silence.until <= NOW + LONGEST_US
        assert fault[0] == "global_silence.until"


def test_its_end_lies_ahead_and_not_too_far() -> None:
    for until, is_wrong in (
        (NOW - 1, True),
        (NOW, True),
        (NOW + 1, False),
        (NOW + LONGEST_US, False),
        (NOW + LONGEST_US + 1, True),
    ):
        fault = silence_fault(GlobalSilence(enabled=True, until=Instant(until)), NOW)
        assert (fault is not None) is is_wrong
        assert silence_fault(GlobalSilence(enabled=False, until=Instant(until)), NOW) is None
