"""The windows that a heartbeat covers, and the windows that a batch publishes, in any order of
arrival.
"""

import random
from uuid import UUID

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rules.monitor_state import MonitorStatus
from leadline.storage.results.rules.incoming_result import CachedState, IncomingResult, ResultSource
from leadline.storage.results.rules.push_deadline import verdict_of_gap
from leadline.storage.scheduling.rules.expected_run import Verdict
from leadline.storage.scheduling.rules.presence import Presence, listened
from leadline.storage.scheduling.rules.run_batch import DueWindow, cut
from leadline.storage.scheduling.rules.run_schedule import (
    ResultMode,
    RunWindow,
    ScheduleTerm,
    windows,
)

NOW = Instant(1_800_000_000 * SECOND)
TERM = ScheduleTerm(Instant(NOW - SECOND), NOW, 60 * SECOND, SECOND)


def heartbeat(seconds: int) -> IncomingResult:
    ts = Instant(NOW + seconds * SECOND)
    return IncomingResult(org=1, monitor=1, shard=1, ts=ts, up=True, source=ResultSource.PUSH)


def standing_since(heard_at: Instant | None) -> CachedState:
    return CachedState(
        version=1,
        status=MonitorStatus.UP,
        failures=0,
        failure_threshold=1,
        monitor_uid=UUID(int=1),
        project_uid=UUID(int=2),
        project=1,
        heard_at=heard_at,
        terms=(TERM,),
    )


def test_a_heartbeat_that_was_overtaken_still_covers_its_own_window() -> None:
    standing = standing_since(Instant(NOW + 61 * SECOND))
    # The newer one came at 61 s, when the window due at 0 s had just ended.
    assert standing.windows_of(heartbeat(59)) == (NOW,)


def test_only_a_heartbeat_moves_the_deadline_and_only_forward() -> None:
    standing = standing_since(Instant(NOW + 61 * SECOND))
    run = IncomingResult(org=1, monitor=1, shard=1, ts=Instant(NOW + 90 * SECOND), up=True)
    assert standing.heard(run) == standing
    assert standing.heard(heartbeat(59)) == standing
    assert standing.heard(heartbeat(62)) == standing_since(Instant(NOW + 62 * SECOND))
    assert standing_since(None).heard(heartbeat(61)) == standing


def test_a_window_with_a_heartbeat_in_it_is_never_called_missed() -> None:
    window = RunWindow(NOW, TERM)
    heard = listened([Presence(NOW, Instant(NOW + 3600 * SECOND))], Instant(NOW + 3600 * SECOND))
    for seconds in (0, 30, 60):
        said = verdict_of_gap(window, Instant(NOW + seconds * SECOND), [TERM], (), heard)
        assert said.verdict is Verdict.COVERED_LATE
    assert verdict_of_gap(window, Instant(NOW - 1), [TERM], (), heard).verdict is Verdict.MISSED


def test_only_the_newest_window_is_published_in_any_order_of_the_input() -> None:
    due = [
        DueWindow(1, 1, ResultMode.PROBE, window)
        for window in windows([TERM], TERM.from_, Instant(NOW + 59 * 60 * SECOND))
    ]
    random.Random(1).shuffle(due)
    slices, _ = cut(due, Instant(NOW + 59 * 60 * SECOND + 1))
    published = [due_at for item in slices if item.published for due_at in item.due_ats]
    assert published == [NOW + 59 * 60 * SECOND]
