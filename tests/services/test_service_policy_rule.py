"""The policies of a service as a document; a document that omits them means the defaults."""

from leadline.storage.core.instant import SECOND
from leadline.storage.services.rules.service_health import (
    AggregationMode,
    MissingData,
    Policies,
    RegionMode,
)
from leadline.storage.services.rules.service_policy import (
    AggregationPolicy,
    FreshnessPolicy,
    RegionAggregationPolicy,
    ServicePolicies,
    read_policies,
    written_policies,
)


def test_omitted_policies_are_the_defaults() -> None:
    assert read_policies(ServicePolicies()) == Policies()


def test_each_policy_survives_a_round_trip() -> None:
    document = ServicePolicies(
        aggregation=AggregationPolicy(mode=AggregationMode.QUORUM, degraded_min=2, healthy_min=3),
        region=RegionAggregationPolicy(
            mode=RegionMode.PER_REGION, degraded_min_regions=4, healthy_min_regions=5
        ),
        missing_data=MissingData.BAD,
        freshness=FreshnessPolicy(active_multiplier=7, active_floor="45s"),
    )
    policies = read_policies(document)
    assert policies == Policies(
        mode=AggregationMode.QUORUM,
        degraded_min=2,
        healthy_min=3,
        region_mode=RegionMode.PER_REGION,
        degraded_min_regions=4,
        healthy_min_regions=5,
        missing_data=MissingData.BAD,
        active_multiplier=7,
        active_floor_us=45 * SECOND,
    )
    assert written_policies(policies) == document


def test_an_invalid_freshness_floor_is_refused() -> None:
    freshness = FreshnessPolicy(active_floor="soon")
    assert read_policies(ServicePolicies(freshness=freshness)) is None
