"""Conversion of a composite's mode into service policies with the same results.

The service is good, bad, unknown or excluded exactly as the composite is up, down, unknown or
excluded. A service aggregates by region first. `all` and `any` give the same result over regions as
over members. A quorum does so only within one region.
"""

from collections.abc import Collection

from ..monitors.rules import composite
from ..services.rules import service_health as service

SEVERAL_REGIONS = (
    "its children are in several regions, and a service cannot count a quorum over them"
)


def policies_of(
    mode: composite.CompositeMode, quorum: int, regions: Collection[str]
) -> service.Policies | None:
    """Returns the policies, None if no policies are equivalent. `regions` are the members'."""
    match mode:
        case composite.CompositeMode.ALL:
            return service.Policies(
                mode=service.AggregationMode.ALL, region_mode=service.RegionMode.ALL_REGIONS
            )
        case composite.CompositeMode.ANY:
            return service.Policies(
                mode=service.AggregationMode.ANY, region_mode=service.RegionMode.ANY_REGION
            )
        case composite.CompositeMode.QUORUM if len(set(regions)) <= 1:
            return service.Policies(
                mode=service.AggregationMode.QUORUM, healthy_min=quorum, degraded_min=quorum
            )
        case composite.CompositeMode.QUORUM:
            return None
