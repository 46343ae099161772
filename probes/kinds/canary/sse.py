"""Parser of server-sent events (HTML standard, 9.2.6), for input in arbitrary pieces.

Pure. It buffers at most one event. An event that the stream does not finish is discarded.
"""

import re
from dataclasses import dataclass, field
from typing import Final

EVENT_BYTES_MOST: Final = 64 * 1024
# Longer values are ignored, like those that are not numbers.
RETRY_DIGITS_MOST: Final = 9

_BREAK: Final = re.compile(rb"\r\n|\r|\n")
_BOM: Final = b"\xef\xbb\xbf"
_DIGITS: Final = re.compile(rb"[0-9]+")


class EventTooLarge(ValueError):
    """Raised if an event, or a single line, is longer than `EVENT_BYTES_MOST`."""


@dataclass(frozen=True, slots=True)
class Event:
    """Event of a stream.

    `type` is `message` if the stream names none. The lines of `data` are joined by LF.
    """

    type: str
    data: str = field(repr=False)


class EventReader:
    """Incremental parser, with the values that a client needs to reconnect.

    `last_id` is the last id of the complete events. `retry_ms` is the requested delay, or None.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        self._id = last_id
        self._type = b""
        self._data: list[bytes] = []
        self._event_bytes = 0
        self._line = bytearray()
        self._first = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[Event]:
        """Returns the events that this piece completes, in order.

        Raises: `EventTooLarge`.
        """
        if self._after_cr and piece:
            # The CR has already ended the line. This LF is the other half of its line break.
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        if not piece:
            return []
        self._after_cr = piece.endswith(b"\r")
        *ended, rest = _BREAK.split(piece)
        events: list[Event] = []
        for end in ended:
            self._extend(end)
            line = bytes(self._line)
            self._line.clear()
            event = self._take(line)
            if event is not None:
                events.append(event)
        self._extend(rest)
        return events

    def _extend(self, part: bytes) -> None:
        self._line += part
        if self._event_bytes + len(self._line) > EVENT_BYTES_MOST:
            raise EventTooLarge

    def _take(self, line: bytes) -> Event | None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        # A line without a name is a comment, which keeps a stream alive and belongs to no event.
        self._event_bytes += len(line) + 1 if name else 0
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and _DIGITS.fullmatch(value) and len(value) <= RETRY_DIGITS_MOST:
            self.retry_ms = int(value)
        return None

    def _dispatch(self) -> Event | None:
        """Ends the current event. An event without data is discarded, with its type."""
        self.last_id = self._id
        type_, data = self._type, self._data
        self._type, self._data, self._event_bytes = b"", [], 0
        if not data:
            return None
        text = b"\n".join(data).decode("utf-8", "replace")
        return Event(type_.decode("utf-8", "replace") or "message", text)
