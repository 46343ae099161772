"""What a gate's policy says: what each clause is to do, over which windows, by facts of what age.

It keeps true: a policy names every clause, and a window exactly where it looks at one alone; its
revisions are never reused, so that a number names one document for ever.
"""

from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

import msgspec

from .gate import GateClause, GateClauseAssignment, UnknownBehavior

SEAL_LAG_LEAST_SECONDS: Final = 300
SEAL_LAG_MOST_SECONDS: Final = 86_400
# Behind the longest run of a member: late results are waited for, and a minute must be over.
_SEALED_BEHIND_SECONDS: Final = 120 + 60


class WindowMode(StrEnum):
    ONE = "one"
    # Every window that the service has an objective for; the worst of them decides.
    ALL = "all"


class PolicySource(StrEnum):
    """Whose policy governs a service."""

    SERVICE = "service"
    PROJECT = "project"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What is put as a whole. `window` is None exactly where all are looked at."""

    schema_version: Literal[1, 2]
    window_mode: WindowMode
    window: str | None
    clauses: dict[GateClause, GateClauseAssignment]
    budget_consumed_percent: int
    max_seal_lag_seconds: int
    unknown_behavior: UnknownBehavior


class Governing(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that governs a service; `owner` is the service or the project it is of."""

    source: PolicySource
    owner: UUID
    revision: int
    document: Document


def fault(document: Document) -> tuple[str, str] | None:
    """The field that is wrong, and the rule it breaks; single values are the edge's business."""
    one = document.window_mode is WindowMode.ONE
    if document.schema_version == 1 and not one:
        return "window_mode", "is not in schema 1"
    if one and document.window is None:
        return "window", "is required for one window"
    if not one and document.window is not None:
        return "window", "must be left out for all windows"
    missing = [clause for clause in GateClause if clause not in document.clauses]
    return (f"clauses.{missing[0]}", "is required") if missing else None


def least_seal_lag_seconds(longest_timeout_seconds: int) -> int:
    """The shortest seal lag that can ever be met, by the longest time-out of a member."""
    return _SEALED_BEHIND_SECONDS + longest_timeout_seconds
