"""Push requests: the path after the token and the query parameters.

The path takes precedence over the query, as in the widely copied ping interface: `/start` and
`/log` are marks, `/fail` and an exit status of 1 to 255 are down, `/0` is up. `rid` names a run of
the job: the result with the run id of a `/start` ends that run.

Invariant: a request is refused only if it does not state whether the target is up. Every other
fault is a warning, because a refused heartbeat becomes a missed push.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MESSAGE_LENGTH = 200
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
# The latency column is an int; a greater value is a mistake of the sender.
GREATEST_PING_MS = 2**31 - 1
_STATUSES: Final = ("up", "down")


class PushKind(StrEnum):
    HEARTBEAT = "heartbeat"
    START = "start"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Push:
    """Readable push request. `code` is the exit status, if the path has one. `run` can be empty.

    `warnings` name the parameters that were changed or ignored, and never contain their values.
    """

    mark: PushKind
    up: bool
    message: str = ""
    ping_ms: int | None = None
    code: int | None = None
    run: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def covers(self) -> bool:
        """Returns True for a result. A mark is recorded and covers no window."""
        return self.mark is PushKind.HEARTBEAT


@dataclass(frozen=True, slots=True)
class BadPush:
    """Refused push. `field` names the faulty parameter; empty if the path is unknown (404)."""

    field: str
    message: str = ""


def read_push(
    suffix: str,
    status: Sequence[str] = (),
    message: Sequence[str] = (),
    ping: Sequence[str] = (),
    run: Sequence[str] = (),
) -> Push | BadPush:
    """Reads the path after the token, without its slash, and all values of the parameters."""
    path = _read_suffix(suffix.lower())
    if path is None:
        return BadPush("")
    mark, up, code = path
    warnings: list[str] = []
    if suffix == "":
        found = _read_status(status, warnings)
        if isinstance(found, BadPush):
            return found
        up = found
    elif status:
        warnings.append("status: is ignored, the path takes precedence")
    text = _read_message(_first("msg", message, warnings), warnings)
    ping_ms = _read_ping(_first("ping", ping, warnings), warnings)
    run_id = _read_run(_first("rid", run, warnings), warnings)
    return Push(mark, up, text, ping_ms, code, run_id, tuple(warnings))


def is_report(part: str) -> bool:
    """Returns whether a part of the path states the report, such as `fail` or `3`.

    Such a part is never the slug of a monitor if no further part follows it.
    """
    return _read_suffix(part.lower()) is not None


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


def _read_status(given: Sequence[str], warnings: list[str]) -> bool | BadPush:
    """Returns whether the target is up.

    A guess could report a failure as up. Therefore a status that is neither word, and two that
    differ, are refused.
    """
    words = {word.strip().lower() for word in given}
    if "" in words:
        warnings.append("status: is empty and counts as not given")
        words.discard("")
    if not words.issubset(_STATUSES):
        return BadPush("status", "must be up or down")
    if len(words) > 1:
        return BadPush("status", "is given as up and as down")
    return "down" not in words


def _first(name: str, given: Sequence[str], warnings: list[str]) -> str:
    if len(given) > 1:
        warnings.append(f"{name}: is given more than once, the first value counts")
    return given[0] if given else ""


def _read_message(given: str, warnings: list[str]) -> str:
    """Returns printable text.

    Job output contains line ends and often terminal escape sequences.
    """
    text = "".join(char if char.isprintable() else " " for char in given).strip()
    if any(not (char.isprintable() or char.isspace()) for char in given):
        warnings.append("msg: characters that cannot be printed were replaced by spaces")
    if len(text) > MESSAGE_LENGTH:
        warnings.append(f"msg: was cut at {MESSAGE_LENGTH} characters")
    return text[:MESSAGE_LENGTH].rstrip()


def _read_run(given: str, warnings: list[str]) -> str:
    if given and not _RUN_ID.fullmatch(given):
        warnings.append("rid: is ignored, must be 1 to 64 letters, digits or . _ : -")
        return ""
    return given


def _read_ping(given: str, warnings: list[str]) -> int | None:
    """Returns rounded milliseconds, None if the value is empty or not valid."""
    if not given:
        return None
    whole, dot, fraction = given.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit() and whole and (fraction or not dot)):
        warnings.append("ping: is ignored, must be milliseconds, zero or more")
        return None
    whole = whole.lstrip("0") or "0"
    if len(whole) > 10 or int(whole) >= GREATEST_PING_MS:
        warnings.append(f"ping: is ignored, must be below {GREATEST_PING_MS}")
        return None
    return int(whole) + (fraction[:1] >= "5")
