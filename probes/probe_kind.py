"""What every kind offers to the runner: one signature, whatever the protocol."""

from typing import Protocol, cast

from .check.check import Check
from .check.monitor_spec import Spec
from .check.observation import Observation
from .check.phase_timer import Stopwatch
from .check.registry import file_of, spec_of
from .net.egress import Egress


class ProbeKind(Protocol):
    """A file of `kinds`."""

    SPEC: Spec

    async def probe(self, check: Check, reach: Egress, watch: Stopwatch) -> Observation:
        """One attempt. Returns what was seen; raises `Failed` or `Unobtainable`, nothing else.

        The deadline is the caller's. On every way out, cancellation too, nothing stays open.
        """
        ...


_kinds: dict[str, ProbeKind] = {}


def kind_of(kind: str) -> ProbeKind | None:
    """The probe of a type, or None where there is nothing to run."""
    found = _kinds.get(kind)
    if found is None:
        spec = spec_of(kind)
        if spec is not None and spec.probed:
            found = _kinds[kind] = cast("ProbeKind", file_of(kind))
    return found
