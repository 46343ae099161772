"""How a service says what a composite said: the policies under which, of the same members, it is
good where the composite is up, bad where it is down, and unknown and excluded as it is.

A service counts within each region first. All and any are the same over regions as over members; a
quorum is not, so it has a service of its own only within one region.
"""

from collections.abc import Collection

from ..monitors.rules import composite
from ..services.rules import service_health as service

SEVERAL_REGIONS = "its children stand in several regions, over which no service counts a quorum"


def policies_of(
    mode: composite.CompositeMode, quorum: int, regions: Collection[str]
) -> service.Policies | None:
    """None where no policies say the same; `regions` are those of the members."""
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
