"""Cache of the prepared checks of this process, at most a few seconds old.

If the secrets of a monitor cannot be decrypted, its entry has no check and names the reason. The
run is then a local failure and not a failure of the target.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ...probes.check.check import Check, make_check
from ...storage.core.instant import SECOND, Instant
from ...storage.core.key import MonitorKey
from ...storage.engine.keyring import CannotOpen, Keyring
from ...storage.engine.pools import Pool
from ...storage.monitors.queries.check_definitions import (
    Definition,
    select_changed_definitions,
    select_definitions,
)
from ...storage.monitors.transactions.config_secrets import join
from ...storage.monitors.transactions.resolve_secrets import open_material

log = logging.getLogger("leadline.check_cache")

# Covers the differences between the clocks of processes. A transaction that commits later than that
# after its timestamp is found by its number. That reads all monitors, 15 ms for 50 000, so not each
# refresh does it: until then a result under the earlier definition is refused as outdated. A secret
# changes no definition, so each refresh searches secrets by number.
OVERLAP_US: Final = 15 * SECOND
BY_NUMBER_US: Final = 10 * SECOND
CHECKS_MOST: Final = 200_000


@dataclass(frozen=True, slots=True)
class CachedCheck:
    """Check, or None if it cannot be prepared, with the fields stored with its result."""

    uid: UUID
    revision: int
    # Encrypted secrets that the check refers to. They replace a timestamp: a writer that waited for
    # another transaction can commit last with the earlier instant.
    sealed: frozenset[tuple[str, bytes]] = field(repr=False)
    shard: int
    interval_us: int
    timeout_us: int
    enabled: bool
    check: Check | None
    trouble: str = ""


class CheckCache:
    def __init__(self, pool: Pool, keyring: Keyring, clock: Callable[[], Instant]) -> None:
        self._pool = pool
        self._keyring = keyring
        self._clock = clock
        self._entries: dict[MonitorKey, CachedCheck] = {}
        self._read_at = Instant(0)
        self._unseen = self._unseen_secrets = "0"
        self._unseen_at = Instant(0)

    def __len__(self) -> int:
        return len(self._entries)

    async def refresh(self, shards: Sequence[int]) -> int:
        """Reads the definitions edited since the last refresh; returns their number."""
        since = Instant(max(self._read_at - OVERLAP_US, 0))
        now = self._clock()
        by_number = not self._unseen_at <= now < self._unseen_at + BY_NUMBER_US
        async with self._pool.transaction("changed_definitions", read_only=True) as tx:
            changed = await select_changed_definitions(
                tx, shards, since, self._unseen if by_number else None, self._unseen_secrets
            )
        for definition in changed.definitions:
            self._put(definition)
        self._read_at, self._unseen_secrets = now, changed.unseen
        if by_number:
            self._unseen, self._unseen_at = changed.unseen, now
        return len(changed.definitions)

    async def find(self, keys: Sequence[MonitorKey]) -> Mapping[MonitorKey, CachedCheck]:
        """Returns the entries, and reads those that are not cached. A missing monitor has none."""
        missing = [key for key in keys if key not in self._entries]
        if missing:
            # Usually one new monitor. The next refresh reads the other changes.
            async with self._pool.transaction("definitions", read_only=True) as tx:
                for definition in (await select_definitions(tx, missing)).values():
                    self._put(definition)
        return {key: self._entries[key] for key in keys if key in self._entries}

    def forget(self, key: MonitorKey) -> None:
        """Removes an outdated entry; `find` reads it again."""
        self._entries.pop(key, None)

    def _put(self, definition: Definition) -> None:
        if len(self._entries) >= CHECKS_MOST:
            self._entries.clear()
        key = MonitorKey((definition.org, definition.id))
        known = self._entries.get(key)
        sealed = frozenset(zip(definition.secret_names, definition.secret_values, strict=True))
        # The refreshes overlap, so a read that another read overtook is repeated.
        if known is not None and (
            known.revision > definition.revision
            or (known.revision == definition.revision and known.sealed == sealed)
        ):
            return
        check, trouble = self._check(definition)
        self._entries[key] = CachedCheck(
            uid=definition.uid,
            revision=definition.revision,
            sealed=sealed,
            shard=definition.shard,
            interval_us=definition.interval_seconds * SECOND,
            timeout_us=definition.timeout_seconds * SECOND,
            enabled=definition.enabled,
            check=check,
            trouble=trouble,
        )

    def _check(self, definition: Definition) -> tuple[Check | None, str]:
        try:
            material = open_material(self._keyring, definition)
        except CannotOpen as error:
            log.error(
                "secrets of a monitor cannot be decrypted", extra={"monitor": str(definition.uid)}
            )
            return None, f"decrypt_failed: {error}"
        # A missing value stays missing; the probe reports it.
        return make_check(
            definition.type,
            definition.target,
            definition.method,
            join(material.plain, material.secret),
            definition.conditions,
            retries=definition.retries,
            timeout_seconds=definition.timeout_seconds,
            interval_seconds=definition.interval_seconds,
            secrets=material.values,
            show_values=definition.show_values,
        ), ""
