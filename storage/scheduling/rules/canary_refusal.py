"""Whether a canary's window that nobody took up was refused, and why.

A refusal is told as a failure of the monitor, so that it is decided late and narrowly: when its
claiming ends, by what stands then. What merely was not done in time is missed, and no failure.
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
    """What stands when a window's claiming ends. `capabilities` are of all runners of the region
    that are live, as <kind>@<version>."""

    in_flight: bool
    taken: int
    places: int
    capabilities: Collection[str]


def refusal(ground: RefusalInputs) -> WithheldReason | None:
    """The reason nearest to the monitor; None where somebody could have run it."""
    if ground.in_flight:
        return WithheldReason.ALREADY_IN_FLIGHT
    if NEEDED not in ground.capabilities:
        others = any(one.partition("@")[0] == _KIND for one in ground.capabilities)
        return WithheldReason.CAPABILITY_MISMATCH if others else WithheldReason.NO_CAPABLE_RUNNER
    if ground.taken >= ground.places:
        return WithheldReason.REGION_SATURATED
    return None
