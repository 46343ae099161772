"""Cache of the metadata and keys of OIDC providers.

Documents are fetched on demand and again when they are an hour old. A document that could not be
renewed is valid for one day.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from ...probes.net.egress import Egress
from ...probes.oidc.oidc_client import Metadata, ProviderFault, discover, fetch_keys
from .jws import Jwks, NotSigned, UnknownKey

ISSUERS_MOST: Final = 4
# Age after which documents are fetched again, and age up to which old ones are valid.
FRESH_SECONDS: Final = 3_600.0
STALE_SECONDS: Final = 86_400.0
# A token with an unknown key causes a fetch at most this often.
KEYS_AGAIN_SECONDS: Final = 10.0
# Pause after a failure, so that not every request waits for a further one.
FAILED_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Known:
    metadata: Metadata | None = None
    keys: Jwks = field(default_factory=lambda: Jwks(()))
    asked_at: float = 0.0
    failed_at: float = -FAILED_SECONDS
    fault: str = ""
    asking: trio.Lock = field(default_factory=trio.Lock)


class ProviderCache:
    def __init__(self, reach: Egress) -> None:
        self.reach = reach
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def metadata(self, issuer: str) -> Metadata:
        """Returns the metadata. Raises: ProviderFault if no valid metadata is available."""
        known = await self._fresh(issuer)
        assert known.metadata is not None, "it was asked"
        return known.metadata

    async def claims(self, issuer: str, token: str) -> dict[str, Any]:
        """Returns the claims of a token that the issuer signed.

        Raises: NotSigned; ProviderFault if the keys are unavailable, so that the token cannot be
        judged.
        """
        known = await self._fresh(issuer)
        asked_at = known.asked_at
        with suppress(UnknownKey):
            return known.keys.claims(token)
        # The provider may have rotated its keys. A concurrent request can have fetched them.
        await self._ask_again(issuer, known, KEYS_AGAIN_SECONDS)
        if known.asked_at == asked_at:
            raise NotSigned
        return known.keys.claims(token)

    def fault(self, issuer: str) -> str:
        """Returns the cause of the last failed fetch; empty if the last fetch succeeded."""
        known = self._known.get(issuer)
        return known.fault if known else ""

    async def _fresh(self, issuer: str) -> _Known:
        known = self._known.setdefault(issuer, _Known())
        self._known.move_to_end(issuer)
        while len(self._known) > ISSUERS_MOST:
            self._known.popitem(last=False)
        age = trio.current_time() - known.asked_at
        if known.metadata is None or age >= FRESH_SECONDS:
            await self._ask_again(issuer, known, FRESH_SECONDS)
        age = trio.current_time() - known.asked_at
        if known.metadata is None or age >= STALE_SECONDS:
            raise ProviderFault(known.fault or "unavailable")
        return known

    async def _ask_again(self, issuer: str, known: _Known, least_seconds: float) -> None:
        """Fetches the documents if they are older than `least_seconds`, and sets `asked_at`.

        Does nothing during the pause after a failure.
        """
        async with known.asking:
            now = trio.current_time()
            if known.metadata is not None and now - known.asked_at < least_seconds:
                return
            if now - known.failed_at < FAILED_SECONDS:
                return
            try:
                metadata = await discover(self.reach, issuer)
                keys = Jwks(await fetch_keys(self.reach, metadata))
            except ProviderFault as fault:
                known.failed_at = trio.current_time()
                known.fault = fault.reason
                return
            known.metadata, known.keys, known.fault = metadata, keys, ""
            known.asked_at = trio.current_time()
