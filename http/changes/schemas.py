"""JSON bodies of changes: recorded phases, and the changes with their context."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...storage.changes.rules.change import (
    EXTERNAL_ID_LONGEST,
    REF_LONGEST,
    SOURCE_PATTERN,
    URL_LONGEST,
    ChangeKind,
    ChangePhaseName,
)
from ...storage.changes.rules.change_comparison import HORIZONS, ComparisonWithheld
from ...storage.changes.rules.change_precedence import ChangeRole
from ...storage.gate.rules.gate import GateAction, GateState
from ..wire.schema import InstantText, RequestSchema, Schema


def _words(words: Any) -> Meta:
    return Meta(extra_json_schema={"enum": list(words)})


# storage.changes.rules.change checks the trimmed values, each with its own error code.
_Kind = Annotated[str, _words(kind.value for kind in ChangeKind)]
_Phase = Annotated[str, _words(phase.value for phase in ChangePhaseName)]
_Source = Annotated[str, Meta(extra_json_schema={"pattern": SOURCE_PATTERN})]
_ExternalId = Annotated[
    str, Meta(extra_json_schema={"minLength": 1, "maxLength": EXTERNAL_ID_LONGEST})
]
_Ref = Annotated[str, Meta(extra_json_schema={"maxLength": REF_LONGEST})]
_Url = Annotated[str, Meta(extra_json_schema={"maxLength": URL_LONGEST, "format": "uri"})]
_Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
_Seconds = Annotated[float, Meta(ge=0)]
_Horizon = Annotated[str, _words(HORIZONS)]


class ChangeRecord(RequestSchema, frozen=True, kw_only=True):
    """Phase of a change.

    `source` and `external_id` identify the change. A repeated phase returns the stored one, and
    absent fields are not compared. `url` is https. `occurred_at` defaults to now; it is at most 5
    minutes ahead and 31 days back.
    """

    kind: _Kind
    phase: _Phase
    source: _Source
    external_id: _ExternalId
    ref: _Ref | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    occurred_at: InstantText | UnsetType = UNSET
    decision_id: _Uuid | UnsetType = UNSET


class ChangePhase(Schema, frozen=True, kw_only=True):
    """Recorded phase. `ref` and `url` are empty if the request did not contain them."""

    id: UUID
    phase: ChangePhaseName
    occurred_at: InstantText
    ref: str
    url: str
    decision_id: UUID | UnsetType = UNSET
    actor_label: str
    actor_user_id: UUID | None
    via_token: bool
    recorded_at: InstantText


class ChangeRow(ChangePhase, frozen=True, kw_only=True):
    """Phase with its change."""

    service_id: UUID
    source: str
    external_id: str
    kind: ChangeKind


class ChangeRecordResult(Schema, frozen=True, kw_only=True):
    """`replayed` is true if the phase was already recorded."""

    replayed: bool
    change: ChangeRow


class ChangeDecisionLink(Schema, frozen=True, kw_only=True):
    """Gate decision to which the change refers.

    `overridden`: an override changed the action. `aged_out`: retention deleted the decision.
    """

    decision_id: UUID
    state: GateState | UnsetType = UNSET
    action: GateAction | UnsetType = UNSET
    overridden: bool | UnsetType = UNSET
    aged_out: bool | UnsetType = UNSET


class ChangeIncidentLink(Schema, frozen=True, kw_only=True):
    """Incident that began within a day after the change.

    Upstream: the incident belongs to a service that depended on this one at that time. `change_id`
    is the id of the first phase of the change.
    """

    incident_id: UUID
    opened_at: InstantText
    role: ChangeRole
    lag_seconds: int
    change_id: UUID


class ChangeGroup(Schema, frozen=True, kw_only=True):
    """Change with its phases in order. `ref` and `url` are from the latest phase with a value."""

    source: str
    external_id: str
    kind: ChangeKind
    ref: str
    url: str
    latest_occurred_at: InstantText
    phases: list[ChangePhase]
    decision: ChangeDecisionLink | UnsetType = UNSET
    incidents: list[ChangeIncidentLink]


class ChangeGroupList(Schema, frozen=True, kw_only=True):
    items: list[ChangeGroup]
    next_cursor: str | None


class ChangeCompareSide(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Side of a comparison: a figure, withheld with a reason, or pending until sealed.

    Buckets are minutes.
    """

    from_: InstantText
    to: InstantText
    availability: float | UnsetType = UNSET
    good_seconds: _Seconds | UnsetType = UNSET
    bad_seconds: _Seconds | UnsetType = UNSET
    unknown_seconds: _Seconds | UnsetType = UNSET
    excluded_seconds: _Seconds | UnsetType = UNSET
    buckets: int | UnsetType = UNSET
    withheld: ComparisonWithheld | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    pending: bool | UnsetType = UNSET
    sealed_through: InstantText | UnsetType = UNSET


class ChangeCompare(Schema, frozen=True, kw_only=True):
    """Comparison of a service before and after a change.

    `t` is the end of the change, `change_id` the id of its first phase. `delta` is after minus
    before in percentage points. It is present only if both sides have a figure.
    """

    source: str
    external_id: str
    kind: ChangeKind
    ref: str
    change_id: UUID
    terminal_phase: Literal["succeeded", "failed", "cancelled"]
    t: InstantText
    horizon: _Horizon
    sealed_through: InstantText | None
    as_of: InstantText
    before: ChangeCompareSide
    after: ChangeCompareSide
    delta: float | UnsetType = UNSET


class IncidentChange(Schema, frozen=True, kw_only=True):
    """Change that began within a day before the incident, with its first phase.

    Upstream: the change belongs to a service that the incident's service depended on at that time.
    """

    change: ChangeRow
    role: ChangeRole
    occurred_at: InstantText
    lag_seconds: int
    computed_at: InstantText
    phases: list[ChangePhase]


class IncidentChanges(Schema, frozen=True, kw_only=True):
    items: list[IncidentChange]


class ChangesQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """`from` and `to` are required. The range is at most 92 d."""

    from_: str | None = None
    to: str | None = None
    kind: list[_Kind] = []
    source: _Source | None = None
    cursor: str | None = None
    limit: str = "50"


class CompareQuery(msgspec.Struct, frozen=True):
    """`source` and `external_id` are required."""

    source: _Source | None = None
    external_id: _ExternalId | None = None
    horizon: _Horizon = "1h"
