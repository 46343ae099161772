"""Document of a service's policies in the API and in bundles.

A missing field has its default; an unknown field is refused.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from .service_declaration import FLOOR_LONGEST, FLOOR_PATTERN, floor_us, spelt_floor
from .service_health import AggregationMode, MissingData, Policies, RegionMode

FloorText = Annotated[str, Meta(max_length=FLOOR_LONGEST, pattern=FLOOR_PATTERN)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class AggregationPolicy(_Part, frozen=True, kw_only=True):
    """Aggregation of the members of one region. The mode `quorum` uses the minima."""

    mode: AggregationMode = AggregationMode.ALL
    degraded_min: int = 1
    healthy_min: int = 1


class RegionAggregationPolicy(_Part, frozen=True, kw_only=True):
    """Aggregation of the regions. The mode `per_region` uses the minima."""

    mode: RegionMode = RegionMode.ALL_REGIONS
    degraded_min_regions: int = 1
    healthy_min_regions: int = 1


class FreshnessPolicy(_Part, frozen=True, kw_only=True):
    """Freshness of a result: the greater of 2 to 10 intervals and the floor (at most 24h)."""

    active_multiplier: int = 3
    active_floor: FloorText = "90s"


class ServicePolicies(_Part, frozen=True, kw_only=True):
    aggregation: AggregationPolicy = AggregationPolicy()
    region: RegionAggregationPolicy = RegionAggregationPolicy()
    missing_data: MissingData = MissingData.UNKNOWN
    maintenance: Literal["exclude"] = "exclude"
    freshness: FreshnessPolicy = FreshnessPolicy()


def read_policies(given: ServicePolicies) -> Policies | None:
    """Returns the policies, None if the floor is not a whole number of microseconds."""
    floor = floor_us(given.freshness.active_floor)
    if floor is None:
        return None
    return Policies(
        mode=given.aggregation.mode,
        healthy_min=given.aggregation.healthy_min,
        degraded_min=given.aggregation.degraded_min,
        region_mode=given.region.mode,
        healthy_min_regions=given.region.healthy_min_regions,
        degraded_min_regions=given.region.degraded_min_regions,
        missing_data=given.missing_data,
        active_multiplier=given.freshness.active_multiplier,
        active_floor_us=floor,
    )


def written_policies(policies: Policies) -> ServicePolicies:
    return ServicePolicies(
        aggregation=AggregationPolicy(
            mode=policies.mode,
            degraded_min=policies.degraded_min,
            healthy_min=policies.healthy_min,
        ),
        region=RegionAggregationPolicy(
            mode=policies.region_mode,
            degraded_min_regions=policies.degraded_min_regions,
            healthy_min_regions=policies.healthy_min_regions,
        ),
        missing_data=policies.missing_data,
        freshness=FreshnessPolicy(
            active_multiplier=policies.active_multiplier,
            active_floor=spelt_floor(policies.active_floor_us),
        ),
    )
