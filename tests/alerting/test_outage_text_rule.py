"""After an absence of the scheduler, every window that passed has the verdict of the terms then in
force.
"""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.scheduling.rules.due_queue import Timetable
from leadline.storage.scheduling.rules.expected_run import (
    MissedReason,
    VerdictWithReason,
    WithheldReason,
    covered_until,
    missed,
    verdict_of_result,
    withheld,
)
from leadline.storage.scheduling.rules.run_batch import DueWindow, cut
from leadline.storage.scheduling.rules.run_schedule import (
    ResultMode,
    ScheduleTerm,
    claimable_until,
    sealing_at,
    window_at,
)

NOW = Instant(1_800_000_000 * SECOND)
STEP_US = MINUTE


def come_back(
    terms: list[ScheduleTerm], left: Instant, back: Instant
) -> dict[int, VerdictWithReason]:
    """Does what a returning scheduler does: reserves in steps, runs the published windows and
    seals.
    """
    timetable = Timetable(0, left, {1: terms})
    ledger: dict[int, VerdictWithReason] = {}
    published: set[int] = set()
    reserved: list[int] = []
    through = left
    while through < back:
        through = Instant(min(through + STEP_US, back))
        due = [
            DueWindow(7, key, ResultMode.PROBE, window) for key, window in timetable.take(through)
        ]
        slices, spared = cut(due, back)
        for one in spared:
            assert one.due not in ledger
            ledger[one.due] = withheld(WithheldReason(one.reason))
        for part in slices:
            reserved += part.due_ats
            published |= set(part.due_ats) if part.published else set()
    for due_at in reserved:
        window = window_at(terms, Instant(due_at))
        assert window is not None
        assert due_at not in ledger
        if due_at in published:
            in_time = covered_until(window, ResultMode.PROBE)
            ledger[due_at] = VerdictWithReason(verdict_of_result(in_time, Instant(back + SECOND)))
        else:
            assert sealing_at(window, ResultMode.PROBE) <= back + HOUR
            ledger[due_at] = missed(MissedReason.NEVER_PUBLISHED)
    return ledger


def test_an_hour_with_an_interval_change_and_a_pause() -> None:
    terms = [
        ScheduleTerm(Instant(NOW - HOUR), NOW, 60 * SECOND, 10 * SECOND),
        ScheduleTerm(Instant(NOW + 20 * MINUTE), NOW, 20 * SECOND, 10 * SECOND),
        ScheduleTerm(Instant(NOW + 30 * MINUTE), NOW, 20 * SECOND, 10 * SECOND, enabled=False),
        ScheduleTerm(Instant(NOW + 45 * MINUTE), NOW, 20 * SECOND, 10 * SECOND),
    ]
    ledger = come_back(terms, NOW, Instant(NOW + HOUR + 5 * SECOND))
    by_minutes = {
        "missed at a minute each": range(NOW + 60 * SECOND, NOW + 20 * MINUTE + 1, 60 * SECOND),
        "missed at twenty seconds": range(
            NOW + 20 * MINUTE + 20 * SECOND, NOW + 30 * MINUTE + 1, 20 * SECOND
        ),
        "paused": range(NOW + 30 * MINUTE + 20 * SECOND, NOW + 45 * MINUTE + 1, 20 * SECOND),
        "missed again": range(NOW + 45 * MINUTE + 20 * SECOND, NOW + HOUR, 20 * SECOND),
    }
    for what, dues in by_minutes.items():
        expected = (
            withheld(WithheldReason.PAUSED)
            if what == "paused"
            else missed(MissedReason.NEVER_PUBLISHED)
        )
        assert {ledger.pop(due) for due in dues} == {expected}, what
    assert {due - NOW: ruling.verdict for due, ruling in ledger.items()} == {HOUR: "covered"}


@given(
    st.lists(
        st.tuples(st.integers(1, 900), st.sampled_from([5, 7, 30, 60, 300]), st.booleans()),
        max_size=5,
    ),
    st.integers(1, 2_400),
)
def test_every_window_has_one_verdict_after_edits(
    edits: list[tuple[int, int, bool]], away_s: int
) -> None:
    back = Instant(NOW + away_s * SECOND)
    terms = [ScheduleTerm(Instant(NOW - HOUR), NOW, 10 * SECOND, 5 * SECOND)]
    at = int(NOW)
    for after, interval, enabled in edits:
        at += after * SECOND
        if at < back:
            terms.append(
                ScheduleTerm(Instant(at), NOW, interval * SECOND, 5 * SECOND, enabled=enabled)
            )
    ledger = come_back(terms, NOW, back)
    expected = set()
    for second in range(1, away_s + 1):
        instant = NOW + second * SECOND
        term = [t for t in terms if t.from_ < instant][-1]
        if (instant - term.anchor) % term.interval_us == 0:
            expected.add(instant)
            ruling = ledger[instant]
            claimable = claimable_until(Instant(instant), term.interval_us) > back
            if not term.enabled:
                assert ruling == withheld(WithheldReason.PAUSED)
            elif not claimable:
                assert ruling == missed(MissedReason.NEVER_PUBLISHED)
            elif ruling.reason is not None:
                # A window that can still be claimed and was not run: a newer one was run, or the
                # monitor is paused.
                assert ruling == missed(MissedReason.NEVER_PUBLISHED)
                assert instant < max(ledger)
    assert set(ledger) == expected
