"""Conversion of a composite's mode into service policies with the same results.

The service is good, bad, unknown or excluded exactly as the composite is up, down, unknown or
excluded. A service aggregates by region first. `all` and `any` give the same result over regions as
over members. A quorum does so only within one region. While members are in maintenance, the service
of a quorum can be down although the composite is up: the service requires members that are up,
and the composite counts those that are down.
"""

from collections.abc import Sequence

from ..monitors.rules import composite
from ..services.rules import service_health as service

TOO_FEW = "is more than the number of SLI members"
SEVERAL_REGIONS = (
    "its children are in several regions, and a service cannot count a quorum over them"
)


def policies_of(
    mode: composite.CompositeMode, quorum: int, regions: Sequence[str]
) -> service.Policies | str:
    """Returns the policies, or the reason why none are equivalent.

    `regions` has the region of each SLI member.
    """
    match mode:
        case composite.CompositeMode.ALL:
            return service.Policies(
                mode=service.AggregationMode.ALL, region_mode=service.RegionMode.ALL_REGIONS
            )
        case composite.CompositeMode.ANY:
            return service.Policies(
                mode=service.AggregationMode.ANY, region_mode=service.RegionMode.ANY_REGION
            )
        case composite.CompositeMode.QUORUM if len(set(regions)) > 1:
            return SEVERAL_REGIONS
        case composite.CompositeMode.QUORUM if quorum > len(regions):
            return TOO_FEW
        case composite.CompositeMode.QUORUM:
            least = len(regions) - quorum + 1
            return service.Policies(
                mode=service.AggregationMode.QUORUM, healthy_min=least, degraded_min=least
            )
