"""Admission control, compared with a model of tokens and concurrent requests that follows the
specification.
"""

from collections import Counter
from contextlib import ExitStack
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.http.wire.admission_control import AdmissionControl, RateLimits
from leadline.http.wire.errors import Problem
from leadline.storage.core.instant import MINUTE, SECOND, Instant

PEOPLE = ("anna", "ben", "cleo")


class Bucket:
    """A bucket with one minute of tokens; it is full at first and refills evenly."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.tokens = Fraction(per_minute)

    def fill(self, gap_us: int) -> None:
        filled = self.tokens + Fraction(gap_us * self.per_minute, MINUTE)
        self.tokens = min(filled, Fraction(self.per_minute))

    @property
    def wait_seconds(self) -> int:
        """Returns the whole seconds until the next token; 0 if there is one."""
        lacking = 1 - self.tokens
        if lacking <= 0:
            return 0
        wait_us = lacking * MINUTE / self.per_minute
        return -int(-wait_us // SECOND)


class Model:
    def __init__(self, bounds: RateLimits) -> None:
        self.bounds = bounds
        self.inside: Counter[str] = Counter()
        self.own = {who: self._bucket(bounds.principal_per_minute) for who in PEOPLE}
        self.all = self._bucket(bounds.process_per_minute)

    @staticmethod
    def _bucket(per_minute: int | None) -> Bucket:
        # Without a limit the model uses more tokens than a test takes.
        return Bucket(per_minute or 10**9)

    def pass_time(self, gap_us: int) -> None:
        for bucket in (self.all, *self.own.values()):
            bucket.fill(gap_us)

    def enter(self, who: str, *, takes_token: bool) -> tuple[str, int] | None:
        """Returns the reason of a refusal, and the seconds until the next attempt."""
        most = self.bounds.inflight_principal
        if self.inside.total() >= self.bounds.inflight_process:
            return "process_inflight", 1
        if most is not None and self.inside[who] >= most:
            return "principal_inflight", 1
        if takes_token:
            for code, bucket in (("principal_rate", self.own[who]), ("process_rate", self.all)):
                if bucket.wait_seconds:
                    return code, bucket.wait_seconds
            self.own[who].tokens -= 1
            self.all.tokens -= 1
        self.inside[who] += 1
        return None


# Divisors of a minute in microseconds: the model is then exact.
rates = st.sampled_from([1, 2, 3, 10, 20, 60])
bounds = st.builds(
    RateLimits,
    inflight_process=st.integers(1, 4),
    inflight_principal=st.none() | st.integers(1, 3),
    principal_per_minute=st.none() | rates,
    process_per_minute=st.none() | rates,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.sampled_from(PEOPLE), st.booleans()),
        st.tuples(st.just("leave"), st.sampled_from(PEOPLE), st.just(value=True)),
        st.tuples(
            st.just("wait"),
            st.integers(0, 2 * MINUTE) | st.sampled_from([SECOND - 1, SECOND, 6 * SECOND]),
            st.just(value=True),
        ),
    ),
    max_size=80,
)


@settings(max_examples=300, deadline=None)
@given(bounds=bounds, steps=steps)
def test_admission_matches_the_model(
    bounds: RateLimits, steps: list[tuple[str, str | int, bool]]
) -> None:
    admission, model, now = AdmissionControl(bounds), Model(bounds), 1_000 * SECOND
    held: dict[str, list[ExitStack]] = {who: [] for who in PEOPLE}
    for step, given_, takes_token in steps:
        if step == "wait":
            now += int(given_)
            model.pass_time(int(given_))
            continue
        who = str(given_)
        if step == "leave":
            if held[who]:
                held[who].pop().close()
                model.inside[who] -= 1
            continue
        expected = model.enter(who, takes_token=takes_token)
        found: tuple[str, int] | None = None
        permit = ExitStack()
        try:
            permit.enter_context(admission.permit(who, Instant(now), takes_token=takes_token))
        except Problem as problem:
            found = problem.code, int(problem.headers["Retry-After"])
        else:
            held[who].append(permit)
        assert found == expected


@given(per_minute=st.integers(1, 600), tries=st.integers(0, 50))
def test_a_refusal_by_one_limit_takes_no_token_of_another(per_minute: int, tries: int) -> None:
    admission = AdmissionControl(
        RateLimits(inflight_process=9, principal_per_minute=1, process_per_minute=per_minute)
    )
    with admission.permit("anna", Instant(0)):
        pass
    for _ in range(tries):
        with pytest.raises(Problem, match="principal_rate"), admission.permit("anna", Instant(0)):
            pass
    for number in range(per_minute - 1):
        with admission.permit(f"other {number}", Instant(0)):
            pass
    with pytest.raises(Problem, match="process_rate"), admission.permit("last", Instant(0)):
        pass


def test_a_permit_is_released_after_success_and_failure() -> None:
    admission = AdmissionControl(RateLimits(inflight_process=1, inflight_principal=1))

    def fail() -> None:
        with admission.permit("anna", Instant(0)):
            raise ValueError("work")

    for _ in range(3):
        with pytest.raises(ValueError, match="work"):
            fail()
    with admission.permit("anna", Instant(0)):
        pass
