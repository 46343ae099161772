"""JSON bodies of services: declarations, dependencies, objectives and alerting."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.alerting.rules.paging_delegation import SignalReason
from ....storage.core.runbook import RUNBOOK_LONGEST
from ....storage.services.rules.service_declaration import DESCRIPTION_LONGEST
from ....storage.services.rules.service_policy import ServicePolicies
from ...wire.schema import InstantText, Name, RequestSchema, Schema, SlugText
from .support_hours import SupportHours

WindowName = Literal["24h", "7d", "30d", "90d"]
ServiceText = Annotated[str, Meta(max_length=DESCRIPTION_LONGEST)]
RunbookText = Annotated[str, Meta(max_length=RUNBOOK_LONGEST)]
NotNegative = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Service(Schema, frozen=True, kw_only=True):
    """`managed_by` is the bundle provider. It is absent if users edit the service."""

    id: UUID
    slug: str
    name: str
    description: str
    escalation_policy_id: UUID | UnsetType = UNSET
    oncall_schedule_id: UUID | UnsetType = UNSET
    runbook_url: str | UnsetType = UNSET
    support_hours: SupportHours | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText
    managed_by: str | UnsetType = UNSET


class ServiceSummary(Schema, frozen=True, kw_only=True):
    """Service in a list.

    `revision` is 0 without a declaration. `context_members` counts all declared members, also those
    of the SLI. `repairing_count` is the number of ranges under repair.
    """

    service: Service
    revision: int
    effective_at: InstantText | UnsetType = UNSET
    context_members: int
    sli_members: int
    epoch_seq: int
    sealed_through: InstantText | UnsetType = UNSET
    repairing_count: int


class CreateServiceRequest(RequestSchema, frozen=True, kw_only=True):
    """`name` defaults to the slug. `slug` is derived from the name if it is absent."""

    slug: SlugText | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    description: ServiceText = ""
    escalation_policy_id: str = ""
    oncall_schedule_id: str = ""
    runbook_url: RunbookText = ""
    depends_on: list[UUID] = []


class ServiceHealthNow(Schema, frozen=True, kw_only=True):
    """Current health.

    `sli` is also unknown without an effective revision, or if all SLI members are in maintenance.
    `diagnostics` cover all declared monitors. `unstable` is true while a new state is not
    confirmed.
    """

    unstable: bool
    as_of: InstantText
    sli: Literal["healthy", "degraded", "down", "unknown"]
    diagnostics: Literal["ok", "failing", "unknown"]
    failing_monitors: list[str] | UnsetType = UNSET


class ServiceGraphEdge(Schema, frozen=True, kw_only=True):
    id: UUID
    slug: str
    name: str
    managed_by: str | UnsetType = UNSET
    health: ServiceHealthNow | UnsetType = UNSET


class ServiceGraph(Schema, frozen=True, kw_only=True):
    """Upstreams and dependents of a service.

    A write must repeat the `graph_generation` of the project that the client read.
    """

    graph_generation: int
    depends_on: list[ServiceGraphEdge] | None
    depended_on_by: list[ServiceGraphEdge] | None


class PutServiceDependenciesRequest(RequestSchema, frozen=True, kw_only=True):
    """`depends_on` replaces all dependencies. `[]` removes them."""

    depends_on: list[UUID]
    graph_generation: NotNegative


class PutDeclarationRequest(RequestSchema, frozen=True, kw_only=True):
    """Complete declaration.

    `expected_revision` is the revision that it replaces, 0 for the first. At most 200 monitors.
    `sli` lists the monitors that count toward the figures. `backfill_from` applies the first
    declaration to the past.
    """

    expected_revision: NotNegative
    monitors: list[UUID]
    sli: list[UUID]
    policies: ServicePolicies = ServicePolicies()
    backfill_from: InstantText | UnsetType = UNSET


class ServiceDeclaration(Schema, frozen=True, kw_only=True):
    """`created_by` is a user. It is absent if an API token declared the revision."""

    revision: int
    effective_at: InstantText
    created_at: InstantText
    created_by: str | UnsetType = UNSET
    monitors: list[UUID]
    sli: list[UUID]
    policies: ServicePolicies


class EvaluationEpoch(Schema, frozen=True, kw_only=True):
    """Period in which no member changed its region, interval or enablement."""

    id: UUID
    seq: int
    effective_at: InstantText
    snapshot_hash: str
    members: int


class Declared(Schema, frozen=True, kw_only=True):
    declaration: ServiceDeclaration
    epoch: EvaluationEpoch


class RepairRange(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: InstantText
    to: InstantText
    reason: str
    state: str
    cursor: InstantText | UnsetType = UNSET
    attempts: int
    last_error: str | UnsetType = UNSET


class ServiceMaterialization(Schema, frozen=True, kw_only=True):
    """Sealed time of the service: [materialization_start, sealed_through).

    No time is sealed if `sealed_through` is absent. Ranges under repair keep their old figures
    until the repair. `retracted_at` is when sealed time was withdrawn, and `retracted_to` the seal
    after that; they are absent, since this version repairs sealed time in place.
    """

    materialization_start: InstantText | UnsetType = UNSET
    sealed_through: InstantText | UnsetType = UNSET
    retracted_at: InstantText | UnsetType = UNSET
    retracted_to: InstantText | UnsetType = UNSET
    repairing: list[RepairRange]


class ServiceSLATarget(Schema, frozen=True, kw_only=True):
    window: WindowName
    objective: float
    updated_at: InstantText


class SetServiceSLATargetRequest(RequestSchema, frozen=True, kw_only=True):
    """`objective` is in percent, above 0 and below 100, rounded half up to four decimals."""

    window: WindowName = "30d"
    objective: float


class ServiceTarget(Schema, frozen=True, kw_only=True):
    window: WindowName
    objective: float


class ServiceAlerting(Schema, frozen=True, kw_only=True):
    """Conditions under which the service pages in place of its SLI members."""

    owns_paging: bool
    page_on: list[Literal["down", "degraded"]]
    page_on_unknown: bool
    confirm_evaluations: int
    renotify_seconds: int


class PatchServiceAlertingRequest(RequestSchema, frozen=True, kw_only=True):
    """`renotify_seconds` is 0, or 60 to 86400."""

    owns_paging: bool | UnsetType = UNSET
    page_on: list[Literal["down", "degraded"]] | UnsetType = UNSET
    page_on_unknown: bool | UnsetType = UNSET
    confirm_evaluations: Annotated[int, Meta(ge=1, le=10)] | UnsetType = UNSET
    renotify_seconds: Annotated[int, Meta(ge=0, le=86_400)] | UnsetType = UNSET


class ServiceSignalState(Schema, frozen=True, kw_only=True):
    """Ability of the service to page by a signal. Unless `armed`, its monitors page."""

    armed: bool
    reason: SignalReason | UnsetType = UNSET
    evaluated_at: InstantText | UnsetType = UNSET
    lease_until: InstantText | UnsetType = UNSET
    last_error: str | UnsetType = UNSET


class ServiceAlertingState(Schema, frozen=True, kw_only=True):
    live: ServiceSignalState
    burn: ServiceSignalState


class EscalationOwner(RequestSchema, frozen=True, kw_only=True):
    """Id of a policy of the project, `""` for none."""

    escalation_policy_id: str


class ServiceRunbook(RequestSchema, frozen=True, kw_only=True):
    """URL of the instructions, `""` for none."""

    runbook_url: RunbookText


class BurnRuleDeclaration(RequestSchema, frozen=True, kw_only=True):
    """Burn rule.

    Fires while the budget burns at least `threshold` times as fast as allowed over both windows.
    The short window is at least 300 s. The long window is longer, and at most 7 d. Without
    `runbook_url`, its pages name the runbook of the service.
    """

    long_window_seconds: int
    short_window_seconds: int
    threshold: float
    severity: Literal["page", "ticket"]
    runbook_url: RunbookText | UnsetType = UNSET


class SetServiceBurnAlertingRequest(RequestSchema, frozen=True, kw_only=True):
    """At most 4 rules. The default rules apply if they are absent."""

    window: WindowName = "30d"
    burn_alert_enabled: bool
    burn_rules: list[BurnRuleDeclaration] | UnsetType = UNSET


class ServiceBurnAlerting(Schema, frozen=True, kw_only=True):
    window: WindowName
    burn_alert_enabled: bool
    burn_rules: list[BurnRuleDeclaration]


class Superseded(Schema, frozen=True, kw_only=True):
    """Monitor that the service supersedes."""

    id: UUID
    name: str
    slug: str
    type: str
    enabled: bool
    retired_at: InstantText | UnsetType = UNSET


class ServiceDetail(Schema, frozen=True, kw_only=True):
    """`reliability` is always null. The reliability route returns the figures with their seal."""

    service: Service
    declaration: ServiceDeclaration | None
    epoch: EvaluationEpoch | None
    materialization: ServiceMaterialization
    reliability: None
    alerting_state: ServiceAlertingState | UnsetType = UNSET
    alerting: ServiceAlerting | UnsetType = UNSET
    dependencies: ServiceGraph | UnsetType = UNSET
    supersedes: list[Superseded]
    sla_targets: list[ServiceSLATarget]
