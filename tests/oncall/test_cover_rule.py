"""Cover requests: an acceptance changes exactly the spans that the request names."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, Instant
from leadline.storage.oncall.rules.cover import Cover, CoverSpan, accepted, request_fault
from leadline.storage.oncall.rules.oncall_schedule import OnCallOverride, OnCallSchedule, stretch
from tests.oncall.test_oncall_schedule_rule import instants, layered, rotation

hours = st.integers(0, 10 * 24)


@given(layered(), instants, st.data())
def test_an_acceptance_changes_exactly_the_named_spans(
    given_: tuple[OnCallSchedule, list[OnCallOverride]], now: Instant, data: st.DataObject
) -> None:
    roster, overrides = given_
    # A span of the duty of somebody, and one of another person in return.
    at = Instant(now + data.draw(hours) * HOUR)
    duty = stretch(roster, overrides, at)
    if duty.channel is None:
        return
    span = CoverSpan(max(duty.from_at, Instant(now - HOUR)), min(duty.until, Instant(at + 3 * DAY)))
    other = stretch(roster, overrides, Instant(now + data.draw(hours) * HOUR))
    by, in_return = 99, None
    if other.channel not in (None, duty.channel) and data.draw(st.booleans()):
        assert other.channel is not None
        by = other.channel
        in_return = CoverSpan(max(other.from_at, now), min(other.until, Instant(now + 20 * DAY)))
    cover = Cover(duty.channel, None, span, in_return)
    if request_fault(roster, overrides, cover, now) is not None:
        return
    found = accepted(roster, overrides, cover, by, now)
    if found is None:
        return
    later = [
        OnCallOverride(100 + number, one.channel, one.span.starts_at, one.span.ends_at)
        for number, one in enumerate(found)
    ]
    for hour in range(-30, 11 * 24, 3):
        instant = Instant(now + hour * HOUR)
        was = stretch(roster, overrides, instant).channel
        expected = was
        if max(span.starts_at, now) <= instant < span.ends_at:
            assert was == duty.channel
            expected = by
        if in_return and max(in_return.starts_at, now) <= instant < in_return.ends_at:
            assert was == by
            expected = duty.channel
        assert stretch(roster, [*overrides, *later], instant).channel == expected


def test_requests_name_a_duty_that_is_not_over() -> None:
    roster = rotation(Instant(0), DAY, (1, 2))
    cover = Cover(1, None, CoverSpan(Instant(2 * DAY), Instant(3 * DAY)))
    assert request_fault(roster, [], cover, Instant(0)) is None
    swap = replace(cover, in_return=CoverSpan(Instant(3 * DAY), Instant(4 * DAY)))
    assert request_fault(roster, [], swap, Instant(0)) is None
    for wrong, now, field in (
        (replace(cover, channel=2), 0, "starts_at"),
        (replace(cover, wanted=1), 0, "wanted_id"),
        (cover, 3 * DAY, "ends_at"),
        (replace(cover, in_return=CoverSpan(Instant(0), Instant(1))), DAY, "return_ends_at"),
        (replace(cover, in_return=cover.span), 0, "return_starts_at"),
    ):
        fault = request_fault(roster, [], wrong, Instant(now))
        assert fault is not None
        assert fault[0] == field
    # The duties changed, or the other person is not on call in return.
    taken = [OnCallOverride(1, 3, Instant(2 * DAY), Instant(2 * DAY + HOUR))]
    assert accepted(roster, taken, cover, 2, Instant(0)) is None
    assert accepted(roster, [], swap, 3, Instant(0)) is None
    assert accepted(roster, [], cover, 2, Instant(3 * DAY)) is None
    begun = accepted(roster, [], cover, 2, Instant(2 * DAY + HOUR))
    assert begun is not None
    assert begun[0].span.starts_at == 2 * DAY + HOUR
