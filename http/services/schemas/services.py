"""Bodies of services: what is declared of them, who depends on whom, how they speak."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.alerting.rules.paging_delegation import SignalReason
from ....storage.services.rules.service_declaration import DESCRIPTION_LONGEST
from ....storage.services.rules.service_policy import ServicePolicies
from ...wire.schema import InstantText, Name, RequestSchema, Schema, SlugText

WindowName = Literal["24h", "7d", "30d", "90d"]
ServiceText = Annotated[str, Meta(max_length=DESCRIPTION_LONGEST)]
NotNegative = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Service(Schema, frozen=True, kw_only=True):
    """`managed_by` is the provider whose files it comes from; left out where people edit it."""

    id: UUID
    slug: str
    name: str
    description: str
    escalation_policy_id: UUID | UnsetType = UNSET
    oncall_schedule_id: UUID | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText
    managed_by: str | UnsetType = UNSET


class ServiceSummary(Schema, frozen=True, kw_only=True):
    """`revision` is 0 where nothing is declared. Context members are those that are declared and
    that its SLI is not made of. `repairing_count` tells how many ranges are being made again."""

    service: Service
    revision: int
    effective_at: InstantText | UnsetType = UNSET
    context_members: int
    sli_members: int
    epoch_seq: int
    sealed_through: InstantText | UnsetType = UNSET
    repairing_count: int


class CreateServiceRequest(RequestSchema, frozen=True, kw_only=True):
    """Without `name` it is called as its slug; without `slug` one is made of its name."""

    slug: SlugText | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    description: ServiceText = ""
    escalation_policy_id: str = ""
    oncall_schedule_id: str = ""
    depends_on: list[UUID] = []


class ServiceHealthNow(Schema, frozen=True, kw_only=True):
    """`sli` is unknown too where nothing governs, or all of it is in maintenance. `diagnostics` are
    of all declared monitors. It is unstable while what is seen is not confirmed."""

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
    """What a service depends on, and what depends on it. Whoever changes an edge gives the
    `graph_generation` of the project that they saw."""

    graph_generation: int
    depends_on: list[ServiceGraphEdge] | None
    depended_on_by: list[ServiceGraphEdge] | None


class PutServiceDependenciesRequest(RequestSchema, frozen=True, kw_only=True):
    """`depends_on` is all of it; `[]` is nothing."""

    depends_on: list[UUID]
    graph_generation: NotNegative


class PutDeclarationRequest(RequestSchema, frozen=True, kw_only=True):
    """The whole document. `expected_revision` is the one that it replaces, 0 for none. At most 200
    monitors; `sli` are those of them that its figures are made of. `backfill_from` lets the first
    declaration tell of the past."""

    expected_revision: NotNegative
    monitors: list[UUID]
    sli: list[UUID]
    policies: ServicePolicies = ServicePolicies()
    backfill_from: InstantText | UnsetType = UNSET


class ServiceDeclaration(Schema, frozen=True, kw_only=True):
    """`created_by` is a person, and lacks where a token declared it."""

    revision: int
    effective_at: InstantText
    created_at: InstantText
    created_by: str | UnsetType = UNSET
    monitors: list[UUID]
    sli: list[UUID]
    policies: ServicePolicies


class EvaluationEpoch(Schema, frozen=True, kw_only=True):
    """A stretch in which no member changed its region, interval or enablement."""

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
    """Its time is sealed in [materialization_start, sealed_through); without the latter nothing is.
    Old figures of what is repairing stand until it is made again."""

    materialization_start: InstantText | UnsetType = UNSET
    sealed_through: InstantText | UnsetType = UNSET
    repairing: list[RepairRange]


class ServiceSLATarget(Schema, frozen=True, kw_only=True):
    window: WindowName
    objective: float
    updated_at: InstantText


class SetServiceSLATargetRequest(RequestSchema, frozen=True, kw_only=True):
    """Percent, above 0 and below 100, to four decimals half up."""

    window: WindowName = "30d"
    objective: float


class ServiceTarget(Schema, frozen=True, kw_only=True):
    window: WindowName
    objective: float


class ServiceAlerting(Schema, frozen=True, kw_only=True):
    """Whether the service speaks for the monitors that its SLI is made of, and when."""

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
    """Whether the service speaks by this signal; where not, why, and its monitors speak."""

    armed: bool
    reason: SignalReason | UnsetType = UNSET
    evaluated_at: InstantText | UnsetType = UNSET
    lease_until: InstantText | UnsetType = UNSET
    last_error: str | UnsetType = UNSET


class ServiceAlertingState(Schema, frozen=True, kw_only=True):
    live: ServiceSignalState
    burn: ServiceSignalState


class EscalationOwner(RequestSchema, frozen=True, kw_only=True):
    """Of a policy of the project; `""` for none."""

    escalation_policy_id: str


class BurnRuleDeclaration(RequestSchema, frozen=True, kw_only=True):
    """Fires while the budget burns `threshold` times as fast as it may over both windows. The short
    one is at least 300 s, the long one longer and at most 7 d."""

    long_window_seconds: int
    short_window_seconds: int
    threshold: float
    severity: Literal["page", "ticket"]


class SetServiceBurnAlertingRequest(RequestSchema, frozen=True, kw_only=True):
    """At most 4 rules; left out, they are the usual two."""

    window: WindowName = "30d"
    burn_alert_enabled: bool
    burn_rules: list[BurnRuleDeclaration] | UnsetType = UNSET


class ServiceBurnAlerting(Schema, frozen=True, kw_only=True):
    window: WindowName
    burn_alert_enabled: bool
    burn_rules: list[BurnRuleDeclaration]


class Superseded(Schema, frozen=True, kw_only=True):
    """A monitor whose place the service has taken."""

    id: UUID
    name: str
    slug: str
    type: str
    enabled: bool
    retired_at: InstantText | UnsetType = UNSET


class ServiceDetail(Schema, frozen=True, kw_only=True):
    """`reliability` is always null: figures are read from the reliability route, with how far they
    are sealed."""

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
