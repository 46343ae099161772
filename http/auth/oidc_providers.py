"""Providers as this process knows them: what they say of themselves and their keys, asked for when
needed and again after a while. Nothing is believed that could not be asked again within a day.
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
# After how long it is asked again, and how long what it said holds where it does not answer.
FRESH_SECONDS: Final = 3_600.0
STALE_SECONDS: Final = 86_400.0
# Tokens that name an unknown key make us ask again no more often than this.
KEYS_AGAIN_SECONDS: Final = 10.0
# After a failure, so that each request does not wait for the next.
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
        """ProviderFault where nothing is known of it that may still be believed."""
        known = await self._fresh(issuer)
        assert known.metadata is not None, "it was asked"
        return known.metadata

    async def claims(self, issuer: str, token: str) -> dict[str, Any]:
        """What a token says that the issuer signed. NotSigned; ProviderFault where its keys cannot
        be had: then nothing is known of the token."""
        known = await self._fresh(issuer)
        with suppress(UnknownKey):
            return known.keys.claims(token)
        # It may have changed its keys since.
        if not await self._ask_again(issuer, known, KEYS_AGAIN_SECONDS):
            raise NotSigned
        return known.keys.claims(token)

    def fault(self, issuer: str) -> str:
        """Why it could not be asked the last time; empty where it could."""
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

    async def _ask_again(self, issuer: str, known: _Known, least_seconds: float) -> bool:
        """Whether it was asked, by us or by who was faster, since what is known was `least_seconds`
        old."""
        async with known.asking:
            now = trio.current_time()
            if known.metadata is not None and now - known.asked_at < least_seconds:
                return False
            if now - known.failed_at < FAILED_SECONDS:
                return False
            try:
                metadata = await discover(self.reach, issuer)
                keys = Jwks(await fetch_keys(self.reach, metadata))
            except ProviderFault as fault:
                known.failed_at = trio.current_time()
                known.fault = fault.reason
                return False
            known.metadata, known.keys, known.fault = metadata, keys, ""
            known.asked_at = trio.current_time()
            return True
