"""Owner of a monitor's paging: the monitor, or a service, and why the service cannot page."""

from dataclasses import dataclass
from uuid import UUID

from ....storage.alerting.queries.alerting_state import Delegation
from ....storage.alerting.rules.paging_delegation import SignalReason
from ...ui.failure_help import reason_words


@dataclass(frozen=True, slots=True)
class PagingOwner:
    """`owners` are (id, name) pairs, linked before the text."""

    owners: list[tuple[UUID, str]]
    text: str


def voices(found: Delegation) -> PagingOwner | None:
    """Returns None if no service owns the paging, as the monitor then pages by default."""
    live = found.live
    if live.delegated:
        owners = [(owner.uid, owner.name) for owner in live.owners]
        return PagingOwner(
            owners, "pages for this monitor" if len(owners) == 1 else "page for this monitor"
        )
    if live.reason is None or live.reason is SignalReason.NO_OWNING_SERVICE:
        return None
    why = reason_words(live.reason)
    return PagingOwner([], f"The service cannot page ({why}), so this monitor pages directly.")
