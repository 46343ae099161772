"""What falls into maintenance, with its start and without its end."""

from leadline.storage.rules.instant import MINUTE, SECOND, Instant
from leadline.storage.rules.maintenance import (
    withholds,
)
from leadline.storage.rules.schedule import Manner, Term, Window
from leadline.storage.rules.span import Span

NOW = Instant(1_800_000_000 * SECOND)


def test_a_probe_is_judged_by_its_due_instant_and_a_push_by_the_end_of_its_promise() -> None:
    window = Window(NOW, Term(NOW, NOW, MINUTE, SECOND, grace_us=MINUTE))
    at_due = [Span(NOW, Instant(NOW + 1))]
    at_end = [Span(Instant(NOW + 2 * MINUTE), Instant(NOW + 3 * MINUTE))]
    assert withholds(window, Manner.PROBE, at_due)
    assert withholds(window, Manner.COMPOSITE, at_due)
    assert not withholds(window, Manner.PUSH, at_due)
    assert withholds(window, Manner.PUSH, at_end)
    assert not withholds(window, Manner.PROBE, at_end)
