"""Rules of incidents: status order, limits of texts and default visibility of updates.

A status can only move forward and ends at resolved. An update can repeat the present status with a
text, and counts as a status update. A note keeps the status and is accepted in every status.
"""

from enum import StrEnum
from typing import Final

from ...core.instant import SECOND, Instant
from ...core.naming import text_rule_broken

_MINUTE_US: Final = 60_000_000

_HOUR_US: Final = 60 * _MINUTE_US

_DAY_US: Final = 24 * _HOUR_US


def clipped_title(name: str, tail: str) -> str:
    """Returns the tail after the name, which is cut to the longest title."""
    return _clipped_outage_text(name, tail)


def lasted(us: int) -> str:
    """Returns a duration in at most two units, rounded down."""
    us = max(us, 0)
    if us < _MINUTE_US:
        return f"{us // 1_000_000} s"
    if us < _HOUR_US:
        return f"{us // _MINUTE_US} min"
    if us < _DAY_US:
        return _two(us // _HOUR_US, "h", us % _HOUR_US // _MINUTE_US, "min")
    return _two(us // _DAY_US, "d", us % _DAY_US // _HOUR_US, "h")


def _two(many: int, unit: str, rest: int, less: str) -> str:
    return f"{many} {unit} {rest} {less}" if rest else f"{many} {unit}"


def _clipped_outage_text(name: str, tail: str) -> str:
    room = TITLE_LONGEST - len(tail)
    return (name if len(name) <= room else name[: room - 1] + "…") + tail


TITLE_LONGEST: Final = 200
BODY_LONGEST: Final = 10_000
POSTMORTEM_LONGEST: Final = 50_000
# Per incident. A change of status is accepted beyond it, so that every incident can be resolved.
UPDATES_MOST: Final = 1_000
# Time in which a public update can be withdrawn. Messages to subscribers wait for its end.
UNDO_US: Final = 10 * SECOND


class IncidentStatus(StrEnum):
    """Status of an incident, in ascending order; an incident can skip a status."""

    INVESTIGATING = "investigating"
    IDENTIFIED = "identified"
    MONITORING = "monitoring"
    RESOLVED = "resolved"


class IncidentImpact(StrEnum):
    NONE = "none"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


class IncidentSource(StrEnum):
    """Origin of an incident: a console session, an API token, or Leadline itself."""

    MANUAL = "manual"
    API = "api"
    AUTO = "auto"


_PLACE: Final = {status: place for place, status in enumerate(IncidentStatus)}
_IMPACT_OF_SEVERITY: Final = {
    "critical": IncidentImpact.CRITICAL,
    "error": IncidentImpact.MAJOR,
    "page": IncidentImpact.MAJOR,
    "warning": IncidentImpact.MINOR,
}


def status_refusal(present: IncidentStatus, given: IncidentStatus | None) -> str | None:
    """Returns the error code for a new status, None if it is accepted or absent."""
    if given is None:
        return None
    if present is IncidentStatus.RESOLVED:
        return "incident_resolved"
    return "status_backward" if _PLACE[given] < _PLACE[present] else None


def statuses_from(present: IncidentStatus) -> list[IncidentStatus]:
    """Returns the statuses that an update can set, present first; empty once resolved."""
    return [status for status in IncidentStatus if status_refusal(present, status) is None]


def is_empty_update(present: IncidentStatus, given: IncidentStatus | None, body: str) -> bool:
    """Returns whether an update has neither a new status nor a text."""
    return given in (None, present) and not body.strip()


def is_public(given: IncidentStatus | None, wish: bool | None) -> bool:
    """Returns whether an update is public. By default status updates are and notes are not."""
    return given is not None if wish is None else wish


def is_undoable(seq: int, body: str, author: str, *, public: bool) -> bool:
    """Returns whether an update can be withdrawn: a public text by a user or a token.

    The opening cannot, because the incident would vanish from the status pages. An update without
    a text only announces its status, which is final.
    """
    return public and seq > 1 and bool(author) and bool(body.strip())


def undo_until(created_at: Instant) -> Instant:
    """Returns the instant from which an update cannot be withdrawn any more."""
    return Instant(created_at + UNDO_US)


def impact_of_severity(severity: str) -> IncidentImpact:
    """Returns the impact for the severity label of an alert; `NONE` if it is not known."""
    return _IMPACT_OF_SEVERITY.get(severity.lower(), IncidentImpact.NONE)


def title_fault(text: str) -> str | None:
    """Returns why `text` cannot be a title, None if it can."""
    if not text.strip():
        return "must not be blank"
    if len(text) > TITLE_LONGEST:
        return f"must be at most {TITLE_LONGEST} characters"
    return text_rule_broken(text)


def body_fault(text: str, longest: int = BODY_LONGEST) -> str | None:
    """Returns why `text` cannot be a body, None if it can. An empty text is accepted."""
    if len(text) > longest:
        return f"must be at most {longest} characters"
    return text_rule_broken(text, multiline=True)


def one_line(text: str, longest: int = TITLE_LONGEST) -> str:
    """Returns external text as a title: invalid characters are replaced and the end is cut."""
    return _clipped(" ".join(_tamed(text, longest).split()), longest)


def many_lines(text: str, longest: int = BODY_LONGEST) -> str:
    """Returns external text as a body, like `one_line` but with line breaks."""
    return _clipped(_tamed(text, longest).strip(), longest)


def normal_lines(text: str) -> str:
    """Converts CRLF and CR to LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _tamed(text: str, longest: int) -> str:
    # Limits the work on long texts, because the caller cuts the result anyway.
    lines = normal_lines(text[: 2 * longest + 2])
    return "".join(" " if text_rule_broken(char, multiline=True) else char for char in lines)


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
