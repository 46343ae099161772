"""Bodies of the release gate: its policies, its overrides, and what it decided by what evidence."""

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
from ..services.schemas.services import NotNegative, WindowName
from ..wire.schema import InstantText, RequestSchema, Schema

SchemaVersion = Literal[1, 2]
Percent = Annotated[int, Meta(ge=1, le=100)]
SealLag = Annotated[int, Meta(ge=SEAL_LAG_LEAST_SECONDS, le=SEAL_LAG_MOST_SECONDS)]
Severity = Literal["page", "ticket"]


class EmptyGateBody(RequestSchema, frozen=True, kw_only=True):
    """The gate is asked with no body, or with an empty one."""


class GateClauses(RequestSchema, frozen=True, kw_only=True):
    """What each clause is to do where it matches; all five are named."""

    budget_exhausted: GateClauseAssignment
    budget_consumed: GateClauseAssignment
    page_burn_firing: GateClauseAssignment
    ticket_burn_firing: GateClauseAssignment
    service_incident_open: GateClauseAssignment


class GatePolicyWrite(RequestSchema, frozen=True, kw_only=True):
    """The whole document. `expected_revision` is the one that it replaces, null for none. Schema 1
    looks at one window; schema 2 says in `window_mode` whether at one or at all that have an
    objective."""

    expected_revision: NotNegative | None
    schema_version: SchemaVersion
    window_mode: WindowMode | UnsetType = UNSET
    window: WindowName | UnsetType = UNSET
    clauses: GateClauses
    budget_consumed_percent: Percent
    max_seal_lag_seconds: SealLag
    unknown_behavior: UnknownBehavior


class GatePolicy(Schema, frozen=True, kw_only=True):
    """`policy_source` says whose it is: the service's own, or the project's that it inherits."""

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
    """`policy_revision` is the one that its maker saw. The reason has 1 to 500 characters; it ends
    at most 7 days ahead."""

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
    """One that is `inert` waits while another policy governs, or none. What `revoked_…` says is
    null unless somebody ended it before its time."""

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
    """A clause that matched, by its own name, or that could not be decided, by why not. `value` is
    the percent of the budget that is burned, the rule that fires, or the incident that is open."""

    code: str
    clause: GateClause | UnsetType = UNSET
    assignment: GateClauseAssignment | UnsetType = UNSET
    value: float | str | UnsetType = UNSET
    window: str | UnsetType = UNSET


class GateCoverageSignal(Schema, frozen=True, kw_only=True):
    armed: bool
    reason: SignalReason | UnsetType = UNSET


class GateCoverageState(Schema, frozen=True, kw_only=True):
    """Whether the service could speak for its members: live, and of its budget."""

    live: GateCoverageSignal
    burn: GateCoverageSignal


class GateBurnLease(Schema, frozen=True, kw_only=True):
    """A burn rule as it was last seen; `firing` is null where nobody ever looked."""

    rule_key: str
    severity: Severity
    firing: bool | None
    last_verdict: str | None
    evaluated_at: InstantText | None
    lease_until: InstantText | None
    fresh: bool


class GateWindowEvidence(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """What was known of a window. `withheld` says why there is no budget, and stands where
    `burned_percent` lacks; an availability may stand beside it."""

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
    """`service_id` is null where the service is no more. `schema_version` is the policy's, 1 where
    there was none."""

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
    """`state` is what was seen, `action` what is to be done; `unoverridden_action` is what would be
    done without an override. `seal_lag` is in seconds. `evidence` are the windows that were looked
    at. At `facts_fresh_until` the first of the facts stops counting."""

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
    """`reasons` are the codes that counted, each once."""

    from_: InstantText
    to: InstantText
    state: GateState
    reasons: list[str]


class ReplayedDecision(Schema, frozen=True, kw_only=True):
    """`draft_state` is what the draft says of the facts that the decision was made from."""

    decision_id: UUID
    evaluated_at: InstantText
    state: GateState
    draft_state: GateState


class PolicyReplay(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """By what is sealed and by stored incidents, with the objectives and the burn rules of now; an
    instant whose facts are gone is UNKNOWN. Of the decisions the newest 500."""

    from_: InstantText
    to: InstantText
    in_force: list[ReplaySpan]
    draft: list[ReplaySpan]
    decisions: list[ReplayedDecision]
