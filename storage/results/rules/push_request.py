"""What a push says: up, down, or a mark that covers nothing.

The path after the token wins over the query, as in the widely copied ping interface: `/start` and
`/log` are marks, `/fail` and an exit status of 1 to 255 are down, `/0` is up.
"""

from dataclasses import dataclass
from enum import StrEnum

MESSAGE_LENGTH = 200
# What a latency column holds; a longer one is a mistake of the sender.
GREATEST_PING_MS = 2**31 - 1


class PushKind(StrEnum):
    HEARTBEAT = "heartbeat"
    START = "start"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Push:
    """What was pushed; `code` is an exit status, where the path gave one."""

    mark: PushKind
    up: bool
    message: str = ""
    ping_ms: int | None = None
    code: int | None = None

    @property
    def covers(self) -> bool:
        """Whether it is a result; else it is a mark, recorded and no more."""
        return self.mark is PushKind.HEARTBEAT


@dataclass(frozen=True, slots=True)
class BadPush:
    """`field` names what is wrong; the empty one is the path, which then names nothing (404)."""

    field: str
    message: str = ""


def read_push(
    suffix: str, status: str | None = None, message: str | None = None, ping: str | None = None
) -> Push | BadPush:
    """Reads what stands after the token, without its slash, and the three query parameters."""
    path = _read_suffix(suffix)
    if path is None:
        return BadPush("")
    mark, up, code = path
    if status not in (None, "up", "down"):
        return BadPush("status", "must be up or down")
    if suffix == "":
        up = status != "down"
    text = _flattened(message or "")
    if len(text) > MESSAGE_LENGTH:
        return BadPush("msg", f"must be at most {MESSAGE_LENGTH} characters")
    if not text.isprintable():
        return BadPush("msg", "must not hold control characters")
    ping_ms = _read_ping(ping or "")
    if isinstance(ping_ms, BadPush):
        return ping_ms
    return Push(mark, up, text, ping_ms, code)


def _read_suffix(suffix: str) -> tuple[PushKind, bool, int | None] | None:
    match suffix:
        case "":
            return PushKind.HEARTBEAT, True, None
        case "start":
            return PushKind.START, True, None
        case "log":
            return PushKind.LOG, True, None
        case "fail":
            return PushKind.HEARTBEAT, False, None
    plain = suffix.isascii() and suffix.isdigit() and (suffix == "0" or suffix[0] != "0")
    if not plain or len(suffix) > 3 or int(suffix) > 255:
        return None
    return PushKind.HEARTBEAT, suffix == "0", int(suffix)


def _flattened(message: str) -> str:
    """A job's output has line ends; refusing it for them would lose the heartbeat."""
    return " ".join(message.split("\n")).replace("\r", " ").replace("\t", " ").strip()


def _read_ping(ping: str) -> int | BadPush | None:
    """Milliseconds, a fraction rounded; empty is none given."""
    if not ping:
        return None
    whole, dot, fraction = ping.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit() and whole and (fraction or not dot)):
        return BadPush("ping", "must be milliseconds, zero or more")
    if len(whole) > 10 or int(whole) >= GREATEST_PING_MS:
        return BadPush("ping", f"must be below {GREATEST_PING_MS}")
    return int(whole) + (fraction[:1] >= "5")
