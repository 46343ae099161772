"""Adopter of proposals: gives people the contact methods that bundles propose.

A process adopts after its own applications. This loop adopts after an accepted invitation, single
sign-on and the verification of an address, and for locked accounts and ended processes.
"""

from dataclasses import dataclass
from typing import Final

from ....storage.bundles.transactions.adopt_proposals import adopt_proposals
from ....storage.engine.pools import Pool

PAUSE_SECONDS: Final = 15.0


@dataclass(frozen=True)
class ProposalAdopter:
    pool: Pool

    async def pass_once(self) -> None:
        after: int | None = 0
        while after is not None:
            after = await adopt_proposals(self.pool, after=after)
