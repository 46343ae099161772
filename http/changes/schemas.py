"""Bodies of changes: what a pipeline tells of one, and what is known of them beside the facts."""

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


# Judged by storage.changes.rules.change, after blanks around them are gone, each with a code of its
# own.
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
    """One phase of a change. Source and external id say which change; the same again is answered
    with what is known, and what is left out contradicts nothing. `url` is https. Without
    `occurred_at` it is now; at most 5 minutes ahead, at most 31 days back."""

    kind: _Kind
    phase: _Phase
    source: _Source
    external_id: _ExternalId
    ref: _Ref | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    occurred_at: InstantText | UnsetType = UNSET
    decision_id: _Uuid | UnsetType = UNSET


class ChangePhase(Schema, frozen=True, kw_only=True):
    """`ref` and `url` are empty where nothing was told."""

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
    """A phase with the change that it is of."""

    service_id: UUID
    source: str
    external_id: str
    kind: ChangeKind


class ChangeRecordResult(Schema, frozen=True, kw_only=True):
    """Replayed: it was known already."""

    replayed: bool
    change: ChangeRow


class ChangeDecisionLink(Schema, frozen=True, kw_only=True):
    """What the gate had said. Overridden: an override changed what was to be done. Aged out: the
    decision is kept no more."""

    decision_id: UUID
    state: GateState | UnsetType = UNSET
    action: GateAction | UnsetType = UNSET
    overridden: bool | UnsetType = UNSET
    aged_out: bool | UnsetType = UNSET


class ChangeIncidentLink(Schema, frozen=True, kw_only=True):
    """An incident that began within a day after the change. Upstream: it is of a service that
    depended on this one then. `change_id` is the id of the phase that the change began with."""

    incident_id: UUID
    opened_at: InstantText
    role: ChangeRole
    lag_seconds: int
    change_id: UUID


class ChangeGroup(Schema, frozen=True, kw_only=True):
    """A change with its phases in their order; `ref` and `url` are those that were told last."""

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
    """A figure, or withheld with its reason, or pending: its time is not sealed yet. Buckets are
    minutes."""

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
    """`t` is when the change ended, `change_id` the id of the phase that it began with. `delta` is
    after less before in percentage points, and there only where both sides are figures."""

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
    """A change that began within a day before the incident, by the phase that it began with.
    Upstream: it was of a service that the incident's depended on then."""

    change: ChangeRow
    role: ChangeRole
    occurred_at: InstantText
    lag_seconds: int
    computed_at: InstantText
    phases: list[ChangePhase]


class IncidentChanges(Schema, frozen=True, kw_only=True):
    items: list[IncidentChange]


class ChangesQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """From and to are required; at most 92 d."""

    from_: str | None = None
    to: str | None = None
    kind: list[_Kind] = []
    source: _Source | None = None
    cursor: str | None = None
    limit: str = "50"


class CompareQuery(msgspec.Struct, frozen=True):
    """Source and external id are required."""

    source: _Source | None = None
    external_id: _ExternalId | None = None
    horizon: _Horizon = "1h"
