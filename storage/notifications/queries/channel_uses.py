"""Reads of channel uses."""

from ...engine.pools import Tx

_NAMES_CHANNEL = """
select exists (select from escalation_targets where org = %(org)s and channel = %(key)s)
"""


async def names_channel(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether a step of an escalation policy pages the channel."""
    found: bool = await tx.value(_NAMES_CHANNEL, org=org, key=channel)
    return found


_HAS_PARTICIPANT = """
select exists (select from oncall_participants where org = %(org)s and channel = %(channel)s)
"""


async def takes_part(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether the channel is a participant of an on-call schedule."""
    found: bool = await tx.value(_HAS_PARTICIPANT, org=org, channel=channel)
    return found


_HAS_COMING = """
select exists (select from oncall_overrides
  where org = %(org)s and channel = %(channel)s and ends_at > at(%(now)s))
"""


async def is_coming_for(tx: Tx, org: int, channel: int) -> bool:
    """Returns whether a current or future override puts the channel on call."""
    found: bool = await tx.value(_HAS_COMING, org=org, channel=channel, now=tx.now)
    return found
