"""Release of a bundle's objects to people: reverses a takeover.

The objects keep their settings. A later application that names them leaves them to people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.tables.service_dependencies import lock_graph
from ..rules.bundle_diff import API, Kind
from ..rules.bundle_owner import name_of
from ..tables.bundle_ownership import release_marks_of
from .apply_bundle import APPLY


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected objects by their uids in the bundle. Without both lists, all of the bundle."""

    monitors: Sequence[str] | None = None
    services: Sequence[str] | None = None

    def of(self, kind: Kind) -> Sequence[str] | None:
        """Returns the selected uids of a kind; None selects all."""
        if self.monitors is None and self.services is None:
            return None
        return (self.monitors if kind == "monitor" else self.services) or ()


async def release_bundle(
    tx: Tx, principal: Principal, project: UUID, path: str, selected: Selection
) -> tuple[int, int]:
    """Releases objects of a bundle of the API and returns the numbers of monitors and services.

    `path` is the mark of the bundle. Orphans are released too, and stay disabled.

    Raises:
        Refused not_found, forbidden, invalid with a uid that the bundle does not manage.
    """
    home = await demand_project(tx, principal, APPLY, project)
    if await lock_graph(tx, home.org, home.id) is None:
        raise Refused(NOT_FOUND)
    numbers: dict[Kind, int] = {}
    kinds: tuple[Kind, ...] = ("service", "monitor")
    for kind in kinds:
        uids = selected.of(kind)
        found = await release_marks_of(tx, kind, home.key, API, path, uids)
        missing = sorted(set(uids or ()) - set(found))
        if missing:
            rule = f"names {missing[0][:64]!r}, which the bundle {name_of(path)} does not manage"
            raise Refused("invalid", f"{kind}s", rule)
        numbers[kind] = len(found)
    if any(numbers.values()):
        counts = f"monitors={numbers['monitor']} services={numbers['service']}"
        said = f"project:{home.uid} bundle={name_of(path)} {counts}"
        await audit(tx, principal, home.org, "bundle.release", said)
    return numbers["monitor"], numbers["service"]
