"""The event loop makes its passes beside a thread that computes."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from leadline.daemon.runtime.thread_switching import favor_event_loop

PASSES = 100
ROUNDS = 20


@pytest.fixture
def usual_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


class Computing:
    """A thread that only computes, and counts its steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.ended = False
        self.thread = threading.Thread(target=self._compute)

    def _compute(self) -> None:
        while not self.ended:
            sum(range(200))
            self.steps += 1

    def during_passes(self) -> int:
        """Returns the steps during passes that each release the interpreter once."""
        before = self.steps
        for _ in range(PASSES):
            time.sleep(0)
        return self.steps - before


@pytest.mark.usefixtures("usual_interval")
def test_a_thread_that_computes_leaves_the_interpreter_to_the_event_loop() -> None:
    """The interval is a tenth. One round can be wrong: the system also interrupts both threads."""
    usual_seconds = sys.getswitchinterval()
    busy = Computing()
    busy.thread.start()
    rounds = []
    try:
        for _ in range(ROUNDS):
            sys.setswitchinterval(usual_seconds)
            usual = busy.during_passes()
            favor_event_loop()
            rounds.append((busy.during_passes(), usual))
            if rounds[-1][0] < usual / 2:
                return
    finally:
        busy.ended = True
        busy.thread.join()
    raise AssertionError(rounds)
