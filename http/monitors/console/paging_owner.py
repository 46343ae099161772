"""Who pages for a monitor: itself, or a service that it is a part of, and why that one does not."""

from dataclasses import dataclass
from uuid import UUID

from ....storage.alerting.queries.alerting_state import Delegation
from ....storage.alerting.rules.paging_delegation import SignalReason
from ...ui.failure_help import reason_words


@dataclass(frozen=True, slots=True)
class PagingOwner:
    """`owners` are linked before the text, each by id and name."""

    owners: list[tuple[UUID, str]]
    text: str


def voices(found: Delegation) -> PagingOwner | None:
    """None where no service owns its paging: that it speaks for itself is how it always is."""
    live = found.live
    if live.delegated:
        owners = [(owner.uid, owner.name) for owner in live.owners]
        return PagingOwner(owners, "speaks for it" if len(owners) == 1 else "speak for it")
    if live.reason is None or live.reason is SignalReason.NO_OWNING_SERVICE:
        return None
    why = reason_words(live.reason)
    return PagingOwner(
        [], f"A service owns its paging and cannot speak: {why}. It speaks for itself."
    )
