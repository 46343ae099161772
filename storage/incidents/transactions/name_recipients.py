"""Names of the recipients of a page for the timeline: a channel, or a person with the methods."""

from collections.abc import Sequence
from uuid import UUID

from ...engine.pools import Tx
from ..rules.incident import lasted
from ..tables import incident_escalations as ladders


async def paged_names(tx: Tx, org: int, thread: UUID, channels: Sequence[int]) -> dict[int, str]:
    """Returns the name of each channel that still exists.

    That of a person names each contact method with its label, and the delay of a later one. Only
    messages that the transaction has written count.
    """
    names = await ladders.select_channel_names(tx, org, channels)
    methods: dict[int, list[str]] = {}
    for channel, kind, label, at in await ladders.select_personal_messages(
        tx, org, thread, list(names)
    ):
        after = f" after {lasted(at - tx.now)}" if at > tx.now else ""
        methods.setdefault(channel, []).append(f"{kind} {label}{after}")
    return {
        channel: f"{name}: {', '.join(methods[channel])}" if channel in methods else name
        for channel, name in names.items()
    }
