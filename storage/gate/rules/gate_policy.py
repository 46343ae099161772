"""Document of a gate policy: clause assignments, windows and the maximum age of facts.

Invariants: a policy assigns every clause, and names a window exactly if it uses one window. A
revision number is never reused, so that it always identifies one document.
"""

from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

import msgspec

from .gate import GateClause, GateClauseAssignment, UnknownBehavior

SEAL_LAG_LEAST_SECONDS: Final = 300
SEAL_LAG_MOST_SECONDS: Final = 86_400
# Added to the longest run of a member: the wait for late results, and the rest of the minute.
_SEALED_BEHIND_SECONDS: Final = 120 + 60


class WindowMode(StrEnum):
    ONE = "one"
    # Every window with an objective; the worst one decides.
    ALL = "all"


class PolicySource(StrEnum):
    """Owner of the policy that governs a service."""

    SERVICE = "service"
    PROJECT = "project"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Complete policy document. `window` is None exactly if all windows are used."""

    schema_version: Literal[1, 2]
    window_mode: WindowMode
    window: str | None
    clauses: dict[GateClause, GateClauseAssignment]
    budget_consumed_percent: int
    max_seal_lag_seconds: int
    unknown_behavior: UnknownBehavior


class Governing(msgspec.Struct, frozen=True, kw_only=True):
    """Policy that governs a service. `owner` is the service or its project."""

    source: PolicySource
    owner: UUID
    revision: int
    document: Document


def fault(document: Document) -> tuple[str, str] | None:
    """Returns an invalid combination as (field, rule). The schema checks single values."""
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
    """Returns the least seal lag in seconds that is reachable with the longest timeout."""
    return _SEALED_BEHIND_SECONDS + longest_timeout_seconds
