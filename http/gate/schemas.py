"""JSON bodies of the release gate: policies, overrides, decisions and evidence."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.alerting.rules.paging_delegation import SignalReason
from ...storage.core.availability import Withheld
from ...storage.gate.rules.gate import (
    GateAction,
    GateClause,
    GateClauseAssignment,
    GateState,
    UnknownBehavior,
)
from ...storage.gate.rules.gate_override import Ended, OverrideStatus
from ...storage.gate.rules.gate_policy import (
    SEAL_LAG_LEAST_SECONDS,
    SEAL_LAG_MOST_SECONDS,
    PolicySource,
    WindowMode,
)
from ...storage.gate.rules.gate_replay import Hindsight
from ..services.schemas.services import NotNegative, WindowName
from ..wire.schema import InstantText, RequestSchema, Schema

SchemaVersion = Literal[1, 2]
Percent = Annotated[int, Meta(ge=1, le=100)]
SealLag = Annotated[int, Meta(ge=SEAL_LAG_LEAST_SECONDS, le=SEAL_LAG_MOST_SECONDS)]
Severity = Literal["page", "ticket"]


class EmptyGateBody(RequestSchema, frozen=True, kw_only=True):
    """Request to evaluate the gate: no body, or an empty object."""


class GateClauses(RequestSchema, frozen=True, kw_only=True):
    """Assignment of each clause. All five clauses are required."""

    budget_exhausted: GateClauseAssignment
    budget_consumed: GateClauseAssignment
    page_burn_firing: GateClauseAssignment
    ticket_burn_firing: GateClauseAssignment
    service_incident_open: GateClauseAssignment


class GatePolicyWrite(RequestSchema, frozen=True, kw_only=True):
    """Complete policy.

    `expected_revision` is the revision that it replaces, null for the first. Schema 1 evaluates one
    window. In schema 2, `window_mode` selects one window or all windows with an objective.
    """

    expected_revision: NotNegative | None
    schema_version: SchemaVersion
    window_mode: WindowMode | UnsetType = UNSET
    window: WindowName | UnsetType = UNSET
    clauses: GateClauses
    budget_consumed_percent: Percent
    max_seal_lag_seconds: SealLag
    unknown_behavior: UnknownBehavior


class GatePolicy(Schema, frozen=True, kw_only=True):
    """`policy_source` is the owner of the policy: the service, or its project."""

    schema_version: SchemaVersion
    window_mode: WindowMode | UnsetType = UNSET
    window: WindowName | UnsetType = UNSET
    clauses: GateClauses
    budget_consumed_percent: Percent
    max_seal_lag_seconds: SealLag
    unknown_behavior: UnknownBehavior
    revision: int
    updated_at: InstantText
    updated_by: str
    policy_source: PolicySource
    policy_owner_id: UUID


class GateOverrideCreate(RequestSchema, frozen=True, kw_only=True):
    """`policy_revision` is the revision that the author saw.

    The reason has 1 to 500 characters. The override ends at most 7 days ahead.
    """

    policy_revision: NotNegative
    reason: str
    expires_at: InstantText


class GateOverride(Schema, frozen=True, kw_only=True):
    id: UUID
    reason: str
    expires_at: InstantText
    created_at: InstantText
    actor_label: str
    policy_revision: int


class GateOverrideRecord(Schema, frozen=True, kw_only=True):
    """Gate override.

    It is `inert` while another policy or no policy is in force. The fields `revoked_…` are null
    unless the override was revoked before its end.
    """

    id: UUID
    reason: str
    expires_at: InstantText
    created_at: InstantText
    policy_revision: int
    actor_label: str
    actor_user_id: UUID | None
    via_token: bool
    status: OverrideStatus
    revoked_at: InstantText | None
    revoked_reason: Ended | None
    revoked_by_label: str | None
    revoked_by_user_id: UUID | None
    revoked_via_token: bool | None


class GateOverrides(Schema, frozen=True, kw_only=True):
    items: list[GateOverrideRecord]


class GateReason(Schema, frozen=True, kw_only=True):
    """Reason of a decision.

    `code` is a matching clause, or the reason why a clause is undecidable. `value` is the burned
    budget in percent, the firing rule or the open incident.
    """

    code: str
    clause: GateClause | UnsetType = UNSET
    assignment: GateClauseAssignment | UnsetType = UNSET
    value: float | str | UnsetType = UNSET
    window: str | UnsetType = UNSET


class GateCoverageSignal(Schema, frozen=True, kw_only=True):
    armed: bool
    reason: SignalReason | UnsetType = UNSET


class GateCoverageState(Schema, frozen=True, kw_only=True):
    """Ability of the service to page for its members: by live health and by budget."""

    live: GateCoverageSignal
    burn: GateCoverageSignal


class GateBurnLease(Schema, frozen=True, kw_only=True):
    """Burn rule at its last evaluation. `firing` is null before the first evaluation."""

    rule_key: str
    severity: Severity
    firing: bool | None
    last_verdict: str | None
    evaluated_at: InstantText | None
    lease_until: InstantText | None
    fresh: bool


class GateWindowEvidence(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Facts of a window.

    `withheld` is the reason why no budget exists. It replaces `burned_percent`; `availability` can
    be present with it.
    """

    window: WindowName
    target_id: UUID
    objective: float
    from_: InstantText
    to: InstantText
    good_seconds: float
    bad_seconds: float
    unknown_seconds: float
    excluded_seconds: float
    availability: float | UnsetType = UNSET
    burned_percent: float | UnsetType = UNSET
    withheld: Withheld | UnsetType = UNSET
    rules: list[GateBurnLease]


class GateFactRevisions(Schema, frozen=True, kw_only=True):
    count: int
    first_id: UUID | None
    last_id: UUID | None
    digest: str


class GateGoverningRevision(Schema, frozen=True, kw_only=True):
    id: UUID
    revision: int


class GateOverrideApplied(Schema, frozen=True, kw_only=True):
    id: UUID
    actor_label: str
    reason: str
    expires_at: InstantText


class GateDecisionSummary(Schema, frozen=True, kw_only=True):
    """Decision in a list.

    `service_id` is null if the service was deleted. `schema_version` is that of the policy, 1
    without a policy.
    """

    schema_version: int
    decision_id: UUID
    evaluated_at: InstantText
    service_id: UUID | None
    service_slug: str
    service_name: str
    state: GateState
    action: GateAction | UnsetType = UNSET
    reasons: list[GateReason]
    policy_revision: int | UnsetType = UNSET
    override_id: UUID | UnsetType = UNSET


class GateDecision(GateDecisionSummary, frozen=True, kw_only=True):
    """Gate decision.

    `state` is the outcome, `action` the instruction to the pipeline, and `unoverridden_action` the
    action without the override. `seal_lag` is in seconds. `evidence` contains the evaluated
    windows. The first fact expires at `facts_fresh_until`.
    """

    actor_label: str
    unoverridden_action: GateAction | UnsetType = UNSET
    policy_source: PolicySource | UnsetType = UNSET
    policy_owner_id: UUID | UnsetType = UNSET
    window_mode: WindowMode | UnsetType = UNSET
    window: WindowName | UnsetType = UNSET
    unknown_behavior: UnknownBehavior | UnsetType = UNSET
    max_seal_lag_seconds: int | UnsetType = UNSET
    override: GateOverrideApplied | UnsetType = UNSET
    target_id: UUID | UnsetType = UNSET
    objective: float | UnsetType = UNSET
    objective_updated_at: InstantText | UnsetType = UNSET
    sealed_through: InstantText | UnsetType = UNSET
    seal_lag: float | UnsetType = UNSET
    fact_revisions: GateFactRevisions
    governing_revision: GateGoverningRevision | UnsetType = UNSET
    burn_leases: list[GateBurnLease]
    coverage_lease_until: InstantText | UnsetType = UNSET
    coverage_state: GateCoverageState
    facts_fresh_until: InstantText | UnsetType = UNSET
    evidence: list[GateWindowEvidence]


class GateDecisionList(Schema, frozen=True, kw_only=True):
    items: list[GateDecisionSummary]
    next_cursor: str | None


class ReplaySpan(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`reasons` are the distinct codes that counted."""

    from_: InstantText
    to: InstantText
    state: GateState
    reasons: list[str]


class ReplayedDecision(Schema, frozen=True, kw_only=True):
    """Decision, with the state of the draft for the same facts as `draft_state`.

    `span_state` is the state of `in_force` at its minute. `hindsight` is present if it differs from
    `state`, and names the reason: the decision had no sealed time of the last minutes (`seal_lag`),
    the policy changed within the minute, or facts changed later.
    """

    decision_id: UUID
    evaluated_at: InstantText
    state: GateState
    draft_state: GateState
    span_state: GateState | UnsetType = UNSET
    hindsight: Hindsight | UnsetType = UNSET


class PolicyReplay(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Replay of a draft.

    It uses sealed time and stored incidents, with the current objectives and burn rules. An instant
    without stored facts is UNKNOWN. `decisions` are the newest 500.
    """

    from_: InstantText
    to: InstantText
    in_force: list[ReplaySpan]
    draft: list[ReplaySpan]
    decisions: list[ReplayedDecision]
