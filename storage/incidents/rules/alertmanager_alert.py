"""Effect of an external alert on the incident of its fingerprint: open, resolve, ignore.

A repeated alert has no further effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import Instant
from ...core.naming import text_rule_broken
from .incident import IncidentImpact, impact_of_severity, many_lines, one_line

KEY_LONGEST: Final = 200
ALERTS_MOST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Alert of another system. `key` is its fingerprint; `ended_at` is None if not given."""

    key: str
    firing: bool
    title: str
    body: str
    impact: IncidentImpact
    started_at: Instant
    ended_at: Instant | None
    labels: Mapping[str, str]


class AlertAction(StrEnum):
    OPENS = "opens"
    RESOLVES = "resolves"
    IGNORED = "ignored"


def decide_action(alert: Alert, open_since: Instant | None) -> AlertAction:
    """Returns the effect of an alert.

    An end before the start of the open incident belongs to an earlier alert and is ignored.

    Args:
        open_since: start of the open incident with this fingerprint, None without one.
    """
    if alert.firing:
        return AlertAction.OPENS if open_since is None else AlertAction.IGNORED
    if open_since is None:
        return AlertAction.IGNORED
    is_late = alert.ended_at is not None and alert.ended_at < open_since
    return AlertAction.IGNORED if is_late else AlertAction.RESOLVES


def read_alert(
    key: str,
    firing: bool,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    starts_at: Instant | None,
    ends_at: Instant | None,
    now: Instant,
) -> Alert:
    """Returns the alert with texts cut to the limits of an incident.

    An instant before 1970 counts as absent. A start after `now` is replaced by `now`.
    """
    named = annotations.get("summary", "").strip() or labels.get("alertname", "").strip()
    began = starts_at if starts_at is not None and starts_at > 0 else now
    return Alert(
        key=key,
        firing=firing,
        title=one_line(named) or one_line(f"Alert {key}"),
        body=many_lines(annotations.get("description", "")),
        impact=impact_of_severity(labels.get("severity", "")),
        started_at=min(began, now),
        ended_at=ends_at if ends_at is not None and ends_at > 0 else None,
        labels=labels,
    )


def key_fault(key: str) -> str | None:
    """Returns why `key` is no valid fingerprint, None if it is valid."""
    if not key.strip():
        return "must not be blank"
    if len(key) > KEY_LONGEST:
        return f"must be at most {KEY_LONGEST} characters"
    return text_rule_broken(key)
