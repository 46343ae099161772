"""Interface of a probe for the runner, independent of the protocol."""

from typing import Protocol, cast

from .check.check import Check
from .check.monitor_spec import Spec
from .check.observation import Observation
from .check.phase_timer import Stopwatch
from .check.registry import file_of, spec_of
from .net.egress import Egress


class ProbeKind(Protocol):
    """Module of `kinds`."""

    SPEC: Spec

    async def probe(self, check: Check, reach: Egress, watch: Stopwatch) -> Observation:
        """Performs one attempt and returns its observation.

        The caller sets the deadline. Invariant: no connection remains open, also after
        cancellation.
        Raises: only `TargetFailure` and `LocalFailure`.
        """
        ...


_kinds: dict[str, ProbeKind] = {}


async def prepare(kind: ProbeKind, check: Check) -> None:
    """Loads what the check needs, before its deadline begins.

    The `prepare` function of a module, if it has one, loads a library once per process. Otherwise
    its first run on a busy host could end in a timeout that is not one of the target.
    """
    load = getattr(kind, "prepare", None)
    if load is not None:
        await load(check)


def kind_of(kind: str) -> ProbeKind | None:
    """Returns the probe of a type, or None if the type is unknown or not probed."""
    found = _kinds.get(kind)
    if found is None:
        spec = spec_of(kind)
        if spec is not None and spec.probed:
            found = _kinds[kind] = cast("ProbeKind", file_of(kind))
    return found
