"""Refusal of a canary window that was not claimed.

A refusal counts as a failure of the monitor. Therefore it is decided only when the claim period
ends, from the state at that instant. A window that was merely not run in time is missed, which is
not a failure.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ....probes.check.monitor_spec import MonitorType
from ....probes.jobs.agent_protocol import CAPABILITY
from .expected_run import WithheldReason

NEEDED = CAPABILITY[MonitorType.ASYNC_CANARY]
_KIND = NEEDED.partition("@")[0]


@dataclass(frozen=True, slots=True)
class RefusalInputs:
    """State at the end of a window's claim period.

    `capabilities` are those of all live runners of the region, as <kind>@<version>.
    """

    in_flight: bool
    taken: int
    places: int
    capabilities: Collection[str]


def refusal(ground: RefusalInputs) -> WithheldReason | None:
    """Returns the reason closest to the monitor, None if a runner was available."""
    if ground.in_flight:
        return WithheldReason.ALREADY_IN_FLIGHT
    if NEEDED not in ground.capabilities:
        others = any(one.partition("@")[0] == _KIND for one in ground.capabilities)
        return WithheldReason.CAPABILITY_MISMATCH if others else WithheldReason.NO_CAPABLE_RUNNER
    if ground.taken >= ground.places:
        return WithheldReason.REGION_SATURATED
    return None
