"""The revision and epoch of each minute of a service, compared with a model that reads minute by
minute.
"""

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm
from leadline.storage.services.rules.epoch import (
    Epoch,
    Revision,
    counts_on,
    epochs,
    governed,
    governed_within,
    governing,
    minute_from,
    next_minute,
    service_watermark,
    stretches,
)
from leadline.storage.services.rules.service_health import Policies
from tests.support.run.effort import examples

ZERO = Instant(1_767_571_200_000_000)
REGIONS = {1: "core", 2: "eu"}
MINUTES = 40


@st.composite
def _revisions(draw: st.DrawFn) -> list[Revision]:
    found: list[Revision] = []
    at = draw(st.integers(3, 10))
    for number in range(1, draw(st.integers(1, 4)) + 1):
        back = draw(st.integers(0, 3)) if number == 1 else 0
        found.append(
            Revision(
                revision=number,
                uid=UUID(int=number),
                effective_at=Instant(ZERO + at * MINUTE),
                governs_from=Instant(ZERO + (at - back) * MINUTE),
                monitors=(1, 2, 3),
                sli=tuple(sorted(draw(st.sets(st.integers(1, 3), max_size=3)))),
                policies=Policies(),
            )
        )
        at += draw(st.integers(0, 12))
    return found


@st.composite
def _terms(draw: st.DrawFn) -> list[ScheduleTerm]:
    at, found = draw(st.integers(0, 20 * 60)), []
    for _ in range(draw(st.integers(0, 6))):
        found.append(
            ScheduleTerm(
                from_=Instant(ZERO + at * SECOND),
                anchor=ZERO,
                interval_us=draw(st.sampled_from([30, 60])) * SECOND,
                timeout_us=draw(st.sampled_from([5, 10])) * SECOND,
                enabled=draw(st.booleans()),
                shard=draw(st.sampled_from([1, 2])),
            )
        )
        at += draw(st.integers(0, 400))
    return found


@given(_revisions(), st.tuples(_terms(), _terms(), _terms()))
@settings(max_examples=examples(300), deadline=None)
def test_every_minute_has_the_epoch_of_its_declaration_and_settings(
    revisions: list[Revision], terms: tuple[list[ScheduleTerm], ...]
) -> None:
    histories = {MonitorKey((9, n + 1)): each for n, each in enumerate(terms)}
    through = Instant(ZERO + MINUTES * MINUTE)
    found = epochs(9, revisions, histories, REGIONS, through)
    told = dict(_by_minute(found, TimeSpan(ZERO, through)))
    for minute in range(MINUTES):
        at = Instant(ZERO + minute * MINUTE)
        known = [r for r in revisions if r.governs_from <= at]
        assert governing(revisions, at) == (known[-1] if known else None)
        if not known:
            assert at not in told
            continue
        assert told[at].revision == known[-1]
        assert told[at].is_reconstruction is (at < known[-1].effective_at)
        for member, standing in told[at].members:
            last = [t for t in histories[MonitorKey((9, member))] if t.from_ <= at]
            if not last:
                assert standing is None
                continue
            assert standing is not None
            stood = (REGIONS[last[-1].shard], last[-1].interval_us, last[-1].enabled)
            assert (standing.region, standing.interval_us, standing.enabled) == stood


@given(_revisions(), st.tuples(_terms(), _terms(), _terms()))
def test_an_epoch_begins_only_at_a_change(
    revisions: list[Revision], terms: tuple[list[ScheduleTerm], ...]
) -> None:
    histories = {MonitorKey((9, n + 1)): each for n, each in enumerate(terms)}
    found = epochs(9, revisions, histories, REGIONS, Instant(ZERO + MINUTES * MINUTE))
    for one, other in pairwise(found):
        assert one.from_ < other.from_
        assert other.from_ % MINUTE == 0
        same = (one.revision, one.is_reconstruction, one.snapshot_hash)
        assert same != (other.revision, other.is_reconstruction, other.snapshot_hash)


@given(_revisions())
def test_the_later_of_two_revisions_with_one_start_governs(
    revisions: list[Revision],
) -> None:
    found = governed(revisions)
    assert found[0][0].from_ == min(r.governs_from for r in revisions)
    for (one, _), (other, _) in pairwise(found):
        assert one.until == other.from_
    for span, revision in found:
        assert all(
            later.revision < revision.revision or later.governs_from != span.from_
            for later in revisions
            if later is not revision
        )


@given(_revisions(), st.integers(0, MINUTES), st.integers(0, 10))
def test_a_range_has_the_revisions_of_its_instants(
    revisions: list[Revision], from_: int, length: int
) -> None:
    instants = [Instant(ZERO + minute * MINUTE) for minute in range(from_, from_ + length + 1)]
    said = governed_within(revisions, instants[0], instants[-1])
    known = [governing(revisions, at) for at in instants]
    assert said == list(dict.fromkeys(one for one in known if one is not None))


@given(_revisions(), st.integers(0, MINUTES), st.integers(1, 4))
def test_members_of_current_and_coming_revisions_are_in_use(
    revisions: list[Revision], minute: int, monitor: int
) -> None:
    at = Instant(ZERO + minute * MINUTE)
    each = [
        Revision(
            revision=one.revision,
            uid=one.uid,
            effective_at=one.effective_at,
            governs_from=one.governs_from,
            monitors=one.sli,
            sli=one.sli,
            policies=one.policies,
        )
        for one in revisions
    ]
    governs = governing(each, at)
    wanted = set(each[-1].monitors) | set(governs.monitors if governs is not None else ())
    assert counts_on(each, at, monitor) is (monitor in wanted)
    assert not counts_on([], at, monitor)


@given(
    _revisions(),
    st.lists(st.integers(-3, MINUTES + 3), min_size=3, max_size=3),
    st.integers(0, MINUTES),
    st.integers(0, 12),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_service_is_sealed_as_far_as_the_members_of_each_minute(
    revisions: list[Revision], marks: list[int], fence: int, since: int
) -> None:
    def member_watermark(member: int, within: TimeSpan) -> Instant:
        mark = Instant(ZERO + marks[member - 1] * MINUTE)
        return min(max(mark, within.from_), within.until)

    def is_sealed(minute: int) -> bool:
        known = [r for r in revisions if r.governs_from <= ZERO + minute * MINUTE]
        if not known:
            return True
        if not known[-1].sli:
            later = [r for r in revisions if r.governs_from > ZERO + minute * MINUTE]
            return bool(later) and minute < fence
        return all(minute < marks[member - 1] for member in known[-1].sli)

    found = service_watermark(
        revisions,
        Instant(ZERO + since * MINUTE),
        Instant(ZERO + fence * MINUTE),
        member_watermark,
    )
    open_ = next(minute for minute in range(since, 10 * MINUTES) if not is_sealed(minute))
    assert found == ZERO + open_ * MINUTE


def test_rounding_to_minutes() -> None:
    assert next_minute(ZERO) == ZERO + MINUTE
    assert next_minute(Instant(ZERO + 1)) == ZERO + MINUTE
    assert minute_from(ZERO) == ZERO
    assert minute_from(Instant(ZERO + 1)) == ZERO + MINUTE


def _by_minute(found: Sequence[Epoch], within: TimeSpan) -> list[tuple[Instant, Epoch]]:
    return [
        (Instant(at), epoch)
        for span, epoch in stretches(found, within)
        for at in range(span.from_, span.until, MINUTE)
    ]
