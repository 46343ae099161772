"""Cover requests: an acceptance changes exactly the spans that the request names."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, Instant
from leadline.storage.oncall.rules.cover import (
    DUTIES_MOST,
    Cover,
    CoverOverride,
    CoverSpan,
    accepted,
    duties_within,
    request_fault,
)
from leadline.storage.oncall.rules.oncall_schedule import (
    Duty,
    OnCallOverride,
    OnCallSchedule,
    stretch,
)
from tests.oncall.test_oncall_schedule_rule import instants, layered, rotation

hours = st.integers(0, 10 * 24)


def held_of(
    roster: OnCallSchedule, overrides: Sequence[OnCallOverride], cover: Cover, now: Instant
) -> tuple[list[Duty], list[Duty]]:
    spans = (cover.span, cover.in_return)
    held, returned = (
        [] if span is None else list(duties_within(roster, overrides, span, now)) for span in spans
    )
    return held, returned


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
    held = held_of(roster, overrides, cover, now)
    if request_fault(cover, *held, now) is not None:
        return
    found = accepted(cover, *held, by, now)
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

    def fault_of(cover: Cover, now: Instant) -> tuple[str, str] | None:
        return request_fault(cover, *held_of(roster, [], cover, now), now)

    def taken_by(
        cover: Cover, by: int, now: Instant, overrides: Sequence[OnCallOverride] = ()
    ) -> list[CoverOverride] | None:
        return accepted(cover, *held_of(roster, overrides, cover, now), by, now)

    cover = Cover(1, None, CoverSpan(Instant(2 * DAY), Instant(3 * DAY)))
    assert fault_of(cover, Instant(0)) is None
    swap = replace(cover, in_return=CoverSpan(Instant(3 * DAY), Instant(4 * DAY)))
    assert fault_of(swap, Instant(0)) is None
    for wrong, now, field in (
        (replace(cover, channel=2), 0, "starts_at"),
        (replace(cover, wanted=1), 0, "wanted_id"),
        (cover, 3 * DAY, "ends_at"),
        (replace(cover, in_return=CoverSpan(Instant(0), Instant(1))), DAY, "return_ends_at"),
        (replace(cover, in_return=CoverSpan(Instant(0), Instant(DAY))), DAY, "return_ends_at"),
        (replace(cover, in_return=cover.span), 0, "return_starts_at"),
    ):
        fault = fault_of(wrong, Instant(now))
        assert fault is not None
        assert fault[0] == field
    # The duties changed, or the other person is not on call in return.
    taken = [OnCallOverride(1, 3, Instant(2 * DAY), Instant(2 * DAY + HOUR))]
    assert taken_by(cover, 2, Instant(0), taken) is None
    assert taken_by(swap, 3, Instant(0)) is None
    assert taken_by(cover, 2, Instant(3 * DAY)) is None
    begun = taken_by(cover, 2, Instant(2 * DAY + HOUR))
    assert begun is not None
    assert begun[0].span.starts_at == 2 * DAY + HOUR


def test_a_span_of_too_many_shifts_is_refused_and_not_walked_to_its_end() -> None:
    roster = rotation(Instant(0), HOUR, (1,))
    cover = Cover(1, None, CoverSpan(Instant(0), Instant(DUTIES_MOST * HOUR)))
    longer = CoverSpan(Instant(0), Instant(10 * DUTIES_MOST * HOUR))
    for wrong, field in (
        (replace(cover, span=longer), "ends_at"),
        (replace(cover, in_return=longer), "return_ends_at"),
    ):
        held = held_of(roster, [], wrong, Instant(0))
        assert max(map(len, held)) == DUTIES_MOST + 1
        fault = request_fault(wrong, *held, Instant(0))
        assert fault == (field, f"the span must have at most {DUTIES_MOST} shifts")
        assert accepted(wrong, *held, 1 if wrong.in_return else 2, Instant(0)) is None
    assert request_fault(cover, *held_of(roster, [], cover, Instant(0)), Instant(0)) is None
