"""An incident's status moves forward and ends at resolved; what is said of it is bounded text.

A status that is the present one again is no movement: it may be restated, with something to say,
and counts as a status written. Plain notes keep the status and are always taken.
"""

from enum import StrEnum
from typing import Final

from ...core.naming import text_rule_broken

_MINUTE_US: Final = 60_000_000

_HOUR_US: Final = 60 * _MINUTE_US

_DAY_US: Final = 24 * _HOUR_US


def clipped_title(name: str, tail: str) -> str:
    """A name, cut where it is long, and what is said of it."""
    return _clipped_outage_text(name, tail)


def lasted(us: int) -> str:
    """A length of time to two units, cut and not rounded: never longer than it was."""
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
# Of one incident. What moves it is taken beyond, so that none stays open for having been talked of.
UPDATES_MOST: Final = 1_000


class IncidentStatus(StrEnum):
    """In the order in which they may follow each other; some may be left out."""

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
    """A person at the console, a program by a token, or Leadline itself."""

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
    """The code with which a status is refused that is given to an incident; None where it is taken.
    A note, which gives none, is always taken."""
    if given is None:
        return None
    if present is IncidentStatus.RESOLVED:
        return "incident_resolved"
    return "status_backward" if _PLACE[given] < _PLACE[present] else None


def statuses_from(present: IncidentStatus) -> list[IncidentStatus]:
    """What an incident may be told to be next, its present status first; none once resolved."""
    return [status for status in IncidentStatus if status_refusal(present, status) is None]


def is_empty_update(present: IncidentStatus, given: IncidentStatus | None, body: str) -> bool:
    """Whether an update would neither move the incident nor say anything."""
    return given in (None, present) and not body.strip()


def is_public(given: IncidentStatus | None, wish: bool | None) -> bool:
    """Where nobody wished otherwise, what carries a status is public and a plain note is not."""
    return given is not None if wish is None else wish


def impact_of_severity(severity: str) -> IncidentImpact:
    """Of an alert's label; what is not known says nothing of an impact."""
    return _IMPACT_OF_SEVERITY.get(severity.lower(), IncidentImpact.NONE)


def title_fault(text: str) -> str | None:
    """Why no incident may be called this; None where one may."""
    if not text.strip():
        return "must not be blank"
    if len(text) > TITLE_LONGEST:
        return f"must be at most {TITLE_LONGEST} characters"
    return text_rule_broken(text)


def body_fault(text: str, longest: int = BODY_LONGEST) -> str | None:
    """Why this may not stand in an update, or in a postmortem; it may be empty."""
    if len(text) > longest:
        return f"must be at most {longest} characters"
    return text_rule_broken(text, multiline=True)


def one_line(text: str, longest: int = TITLE_LONGEST) -> str:
    """Of a text that another system wrote, what may be a title: never refused, perhaps cut."""
    return _clipped(" ".join(_tamed(text, longest).split()), longest)


def many_lines(text: str, longest: int = BODY_LONGEST) -> str:
    """As `one_line`, with its lines: what may be a body."""
    return _clipped(_tamed(text, longest).strip(), longest)


def normal_lines(text: str) -> str:
    """Lines end as they do here, whatever a browser or another system makes of them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _tamed(text: str, longest: int) -> str:
    # What is beyond by far is not even looked at.
    lines = normal_lines(text[: 2 * longest + 2])
    return "".join(" " if text_rule_broken(char, multiline=True) else char for char in lines)


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
