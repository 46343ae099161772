"""Bodies of requests as they arrive: their size, their pace and how many arrive at once.

A body may take BODY_GRACE_SECONDS and one second for each BODY_BYTES_PER_SECOND that arrived, at
most BODY_SECONDS_MOST. A slower one ends its request. So a client that sends a byte now and then
holds a place for seconds, not for hours.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]

# Largest body of most requests. `largest` of the middleware gives more to the few paths that take
# files.
BODY_LARGEST: Final = 2 << 20
BODY_GRACE_SECONDS: Final = 10.0
BODY_BYTES_PER_SECOND: Final = 1_024
BODY_SECONDS_MOST: Final = 300.0
# Bodies that have not arrived completely: of one client address, and in total. A client behind a
# proxy that is not trusted shares its address with the others. Urgent requests have some more.
BODIES_OF_CLIENT: Final = 100
BODIES_MOST: Final = 1_500
URGENT_BODIES_MORE: Final = 500
# Longest time that an answer without need for the body waits for the rest of the body.
LINGER_SECONDS: Final = 2.0


class ArrivingBodies:
    """Counts the bodies that have not arrived completely."""

    def __init__(self) -> None:
        self._of_client: Counter[str] = Counter()
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def took(self, client: str, *, is_urgent: bool = False) -> bool:
        """Takes a place, or returns False at a limit. An empty client has no limit of its own."""
        most = BODIES_MOST + (URGENT_BODIES_MORE if is_urgent else 0)
        if self._total >= most or (client and self._of_client[client] >= BODIES_OF_CLIENT):
            return False
        self._total += 1
        self._of_client[client] += 1
        return True

    def give_back(self, client: str) -> None:
        self._total -= 1
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]


class RequestBody:
    """Body of one request, as it arrives."""

    def __init__(self, scope: Scope, receive: Receive, most: int) -> None:
        """`most` is the largest body of the path. A body without a length can have this size."""
        self._receive = receive
        self._seen = 0
        self._began = trio.current_time()
        self._ended = trio.Event()
        self._on_end: list[Callable[[], None]] = []
        # Whether the request was ended because of the pace.
        self.is_slow = False
        announced = announced_length(scope)
        self.is_large = BODY_LARGEST < (most if announced is None else announced) <= most
        self._most = most if self.is_large else BODY_LARGEST
        # An answer does not wait for the rest of such a body.
        self._is_too_long = announced is not None and announced > BODY_LARGEST
        if announced == 0:
            self._ended.set()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Calls once: when the body has arrived, the client disconnected, or `let_go` is called."""
        self._on_end.append(call)

    def let_go(self) -> None:
        """States that the rest of the body is not awaited."""
        on_end, self._on_end = self._on_end, []
        for call in on_end:
            call()

    async def next_message(self) -> Message:
        """Passes on the body up to the bound and drops the rest.

        By then the application has received more than any route accepts. A disconnect here would
        cancel the handler, and its client would get no answer. Only a body that is too slow ends
        as a disconnect.
        """
        while True:
            message = await self._next()
            if message["type"] != "http.request":
                self._end()
                return message
            self._seen += len(message.get("body", b""))
            self._is_too_long = self._is_too_long or self._seen > BODY_LARGEST
            if not message.get("more_body"):
                self._end()
            if self._seen <= self._most:
                return message
            if self.has_ended:
                return {**message, "body": b""}

    async def _next(self) -> Message:
        if self.has_ended:
            return await self._receive()
        pace = BODY_GRACE_SECONDS + self._seen / BODY_BYTES_PER_SECOND
        with trio.move_on_at(self._began + min(pace, BODY_SECONDS_MOST)):
            return await self._receive()
        self.is_slow = True
        return {"type": "http.disconnect"}

    def _end(self) -> None:
        self._ended.set()
        self.let_go()

    async def came(self) -> bool:
        """Returns whether the body arrived completely, or the client disconnected.

        Discards the unread rest: a connection whose request is not read to its end cannot be
        reused.
        """
        if self.has_ended or self._is_too_long:
            return self.has_ended and not self.is_slow
        with trio.move_on_after(LINGER_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.pass_over)
                await self._ended.wait()
                nursery.cancel_scope.cancel()
        return self.has_ended and not self.is_slow

    async def pass_over(self) -> None:
        # The application can read concurrently; the reader that receives the end sets the event.
        while not self.has_ended and not self._is_too_long:
            await self.next_message()


def announced_length(scope: Scope) -> int | None:
    """Returns the length of the body; None with Transfer-Encoding."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0
