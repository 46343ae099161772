"""Comparison of the last check with the last good check, by phase.

A stored check has a failure class, a host and the finished phases. A phase without a figure was not
reached, was not needed, or is the phase in which the check ended. The failure class decides between
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ....probes.check.result import FailureClass
from ....storage.core.instant import MILLISECOND
from ....storage.results.queries.results import HeartbeatRow
from ...ui.failure_help import explain_failure, is_refusal, is_reported, number_name
from ...ui.formatting import GAP, NOTHING, milliseconds, number
from ...ui.plots.phase_bars import Part, phases

NAMES = ("dns", "connect", "tls", "first byte")
REST = "rest"
# Phase in which a check of the class ended. A check of another class ended in the first phase
# without a figure.
_ENDED_IN = {
    FailureClass.DNS_ERROR: "dns",
    FailureClass.CONNECT_REFUSED: "connect",
    FailureClass.CONNECT_TIMEOUT: "connect",
    FailureClass.CONNECT_ERROR: "connect",
    FailureClass.TLS_ERROR: "tls",
    FailureClass.PROXY_ERROR: "connect",
}
# The target answered, but not as the check requires.
_ANSWERED = frozenset(
    {
        FailureClass.HTTP_STATUS,
        FailureClass.CONDITION_FAILED,
        FailureClass.AUTH_FAILED,
        FailureClass.TLS_EXPIRING,
        FailureClass.RESPONSE_TOO_LARGE,
        FailureClass.RESPONSE_TOO_EXPENSIVE,
        FailureClass.PROTOCOL_ERROR,
        FailureClass.DOMAIN_EXPIRING,
        FailureClass.DOMAIN_UNREGISTERED,
        FailureClass.EXPIRY_UNKNOWN,
    }
)
# The check ended before it contacted the target.
_NOT_CONTACTED: Final[dict[str, str]] = {
    FailureClass.CLIENT_CERT_EXPIRED: "Not sent: the client certificate has expired",
    FailureClass.TOKEN_ERROR: "Not sent: no access token",
}


@dataclass(frozen=True, slots=True)
class PhaseBar:
    name: str
    drawn: Markup
    total: str


@dataclass(frozen=True, slots=True)
class CheckView:
    good: bool
    verdict: str
    # Explanation of the failure class, empty after a success.
    explained: str
    bars: list[PhaseBar]
    # name, last check, last good
    rows: list[tuple[str, str, str]]
    # The condition that was false, with its measured value; empty if none was.
    failed: str = ""


def check_view(last: HeartbeatRow, last_good: HeartbeatRow | None, kind: str) -> CheckView:
    if not last.up and is_refusal(class_of(last)):
        # A refused run has no duration to divide into phases.
        return CheckView(False, verdict_text(last, kind), explain_failure(class_of(last)), [], [])
    bars = [_bar("Last check", last)]
    compared = last_good if last_good is not None and last_good.ts != last.ts else None
    if compared is not None:
        bars.append(_bar("Last successful", compared))
    rows = [(name, _cell(last, name), _cell(compared, name) if compared else "") for name in NAMES]
    rows.append(("rest", _rest(last), _rest(compared) if compared else ""))
    rows = [row for row in rows if any(cell not in ("", NOTHING) for cell in row[1:])]
    total = milliseconds(last.latency_ms)
    good = milliseconds(compared.latency_ms) if compared else ""
    explained = "" if last.up else explain_failure(class_of(last))
    return CheckView(
        last.up,
        verdict_text(last, kind),
        explained,
        bars,
        [*rows, ("total", total, good)],
        last.failed.text if last.failed else "",
    )


def verdict_text(beat: HeartbeatRow, kind: str) -> str:
    answered = f"Responded with {_number(beat.code, kind)}" if beat.code is not None else ""
    if beat.up:
        return answered or "Answered"
    if is_refusal(class_of(beat)):
        return "Not run"
    failure = class_of(beat)
    if failure in _NOT_CONTACTED:
        return _NOT_CONTACTED[failure]
    ended = ended_in(beat)
    return f"Failed in {ended}" if ended else answered or "Failed after the response"


def _number(code: int, kind: str) -> str:
    return f"{number_name(kind)} {code}".strip()


def ended_in(beat: HeartbeatRow) -> str:
    """Returns the phase that did not finish, empty if all phases finished."""
    if beat.up:
        return ""
    failure = class_of(beat)
    if failure in _ANSWERED or failure in _NOT_CONTACTED or is_refusal(failure):
        return ""
    if failure in _ENDED_IN:
        return _ENDED_IN[FailureClass(failure)]
    return "first byte" if beat.connect_us is not None else "connect"


def class_of(beat: HeartbeatRow, kind: str = "") -> str:
    """Returns the failure class. A text that a job reported has none."""
    return "" if is_reported(beat.msg, kind) else beat.msg.partition(" ")[0]


def where_of(beat: HeartbeatRow, kind: str) -> str:
    """Returns the host or the text that a job reported, and the code if the protocol has one."""
    host = beat.msg if is_reported(beat.msg, kind) else beat.msg.partition(" ")[2]
    code = f"{number_name(kind) or 'code'} {beat.code}" if beat.code is not None else ""
    return ", ".join(part for part in (host, code) if part)


def parts_of(beat: HeartbeatRow) -> list[Part]:
    """Returns the phases and the remainder. Their sum is the duration of the check."""
    spent = _spent(beat)
    ended = ended_in(beat)
    total_us = max(beat.latency_ms * MILLISECOND, sum(us for _, us in spent), 1)
    parts = [Part(name, us) for name, us in spent if name != ended]
    left_us = total_us - sum(part.us for part in parts)
    if ended:
        parts.append(Part(ended, max(left_us, 1), failed=True))
    elif left_us > 0:
        parts.append(Part(REST, left_us))
    return parts


def _bar(name: str, beat: HeartbeatRow) -> PhaseBar:
    return PhaseBar(name, phases(parts_of(beat), name), milliseconds(beat.latency_ms))


def _spent(beat: HeartbeatRow) -> Sequence[tuple[str, int]]:
    figures = (beat.dns_us, beat.connect_us, beat.tls_us, beat.first_byte_us)
    return [(name, us) for name, us in zip(NAMES, figures, strict=True) if us is not None]


def _rest(beat: HeartbeatRow) -> str:
    """Returns the time outside the phases: sending, reading the answer, evaluating it."""
    left = [part.us for part in parts_of(beat) if part.name == REST]
    return _short(left[0]) if left else NOTHING


def _cell(beat: HeartbeatRow, name: str) -> str:
    spent = dict(_spent(beat))
    if name == ended_in(beat):
        return "did not finish"
    if name in spent:
        return _short(spent[name])
    return NOTHING


def _short(us: int) -> str:
    """Returns milliseconds, with tenths below 10 ms."""
    if us < 100:
        return f"< 0.1{GAP}ms"
    return f"{us / 1000:.1f}{GAP}ms" if us < 10_000 else f"{number(us // 1000)}{GAP}ms"
