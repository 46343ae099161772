"""Refusal of settings that a running process of an earlier version would ignore."""

from collections.abc import Mapping

from ....probes.jobs.agent_protocol import OF_PROCESSES, OPTIONS, capabilities_for
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...scheduling.tables import presences


async def expect_capabilities(
    tx: Tx, type_: str, config: Mapping[str, object], before: Mapping[str, object] | None = None
) -> None:
    """Checks that every process knows the type and the settings of a monitor.

    `before` is the stored config of an edited monitor, whose settings are accepted.

    Raises:
        Refused invalid while a process of an earlier version is present.
    """
    needed = capabilities_for(type_, config) & OF_PROCESSES
    if before is not None:
        needed -= capabilities_for(type_, before)
    if needed and await presences.lacks_capability(tx, needed):
        names = [f"config.{name}" for name, token in OPTIONS.items() if token in needed]
        rule = "needs this version in all processes, and one of an earlier version is running"
        raise Refused("invalid", names[0] if names else "type", rule)
