"""Release of a bundle's objects to people: reverses a takeover.

The objects keep their settings. A later application that names them leaves them to people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.tables.service_dependencies import lock_graph
from ..rules.bundle import SECTIONS
from ..rules.bundle_diff import API
from ..rules.bundle_owner import name_of
from ..tables.bundle_ownership import KINDS, release_marks_of
from ..tables.bundle_people import delete_released_people
from .apply_bundle import APPLY


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected objects by section and uid in the bundle. Without a section, all of the bundle."""

    uids: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, section: str) -> Sequence[str] | None:
        """Returns the selected uids of a section; None selects all."""
        return self.uids.get(section, ()) if self.uids else None


async def release_bundle(
    tx: Tx, principal: Principal, project: UUID, path: str, selected: Selection
) -> dict[str, int]:
    """Releases objects of a bundle of the API and returns their numbers by section.

    `path` is the mark of the bundle. Orphans are released too, and stay disabled.

    Raises:
        Refused not_found, forbidden, invalid with a uid that the bundle does not manage.
    """
    home = await demand_project(tx, principal, APPLY, project)
    if await lock_graph(tx, home.org, home.id) is None:
        raise Refused(NOT_FOUND)
    numbers: dict[str, int] = {}
    sections = {kind: section for section, (kind, _, _) in SECTIONS.items()}
    for kind in KINDS:
        section = sections[kind]
        uids = selected.of(section)
        found = await release_marks_of(tx, kind, home.key, API, path, uids)
        missing = sorted(set(uids or ()) - set(found))
        if missing:
            rule = f"names {missing[0][:64]!r}, which the bundle {name_of(path)} does not manage"
            raise Refused("invalid", section, rule)
        numbers[section] = len(found)
    await delete_released_people(tx)
    if any(numbers.values()):
        told = [name for name in SECTIONS if numbers[name] or name in ("monitors", "services")]
        counts = " ".join(f"{name}={numbers[name]}" for name in told)
        said = f"project:{home.uid} bundle={name_of(path)} {counts}"
        await audit(tx, principal, home.org, "bundle.release", said)
    return numbers
