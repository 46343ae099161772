"""Time of a request: its head, its body, and the wait for its answer.

A request takes at most REQUEST_SECONDS_MOST until its answer begins, or the longer time of its
route. The answer has bounds of its own: RESPONSE_SECONDS of the application, or none, as an event
stream. `request_body` bounds the body, `http1_protocol` ends a slow head.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

import trio

from ..wire.route import Route
from .request_body import BODY_SECONDS_MOST, RequestBody

# From the first byte of a request to the end of its headers. A head of 64 KiB over a line of
# 32 kbit/s takes 16 s.
HEAD_SECONDS: Final = 20.0
# From the end of the body to the beginning of the answer.
ANSWER_SECONDS: Final = 300.0
REQUEST_SECONDS_MOST: Final = HEAD_SECONDS + BODY_SECONDS_MOST + ANSWER_SECONDS


class AnswerTime:
    """Deadline of a request without an answer, in the scope that handles it."""

    def __init__(self, handling: trio.CancelScope, body: RequestBody, seconds: float) -> None:
        """`seconds` count from the end of the body, which may not come before the answer."""
        self._handling = handling
        self._seconds = seconds
        self._is_answered = False
        wait_body = 0.0 if body.has_ended else BODY_SECONDS_MOST
        handling.deadline = trio.current_time() + wait_body + seconds
        body.when_ended(self._body_ended)

    def _body_ended(self) -> None:
        if not self._is_answered:
            self._handling.deadline = min(
                self._handling.deadline, trio.current_time() + self._seconds
            )

    def answered(self) -> None:
        """States that the answer begins. Its own bounds end it."""
        self._is_answered = True
        self._handling.deadline = float("inf")


def slowest_of(routes: Iterable[Route]) -> Callable[[str], float]:
    """Returns a function from a path to the seconds that its answer may take to begin."""
    slow = [
        (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))), route.answer_seconds)
        for route in routes
        if route.answer_seconds is not None
    ]

    def seconds(path: str) -> float:
        found = [most for form, most in slow if form.fullmatch(path)]
        return max(found, default=ANSWER_SECONDS)

    return seconds
