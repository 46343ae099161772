"""Certificates that the checks of this process saw, until they are reported.

A result does not carry its certificate. A new one is reported, and a known one again after
REFRESH_US. Only a new one is parsed: the usual check costs one digest.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Generic, TypeVar

from ..check.result import Result, RunOutcome
from ..net.certificate_expiry import end_of

log = logging.getLogger("leadline.seen_certificates")

# In µs. The server drops a certificate without a report for an hour, while it gets others.
REFRESH_US: Final = 20 * 60_000_000
# Certificates of one monitor that are reported in this time, so that a target with a new one for
# each handshake costs no more than others.
EACH_MOST: Final = 8
# Monitors that are remembered.
MONITORS_MOST: Final = 200_000
# Notes that wait. Above this, the oldest one is dropped.
PENDING_MOST: Final = 50_000

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class SeenNote(Generic[Key]):
    """Certificate of a monitor, seen by a check of `revision`. Instants are µs since the epoch.

    `ends_at` is None if the checks of this revision work without TLS.
    """

    key: Key
    revision: int
    ends_at: int | None
    seen_at: int


@dataclass(slots=True)
class _Reported:
    digest: bytes
    ends_at: int | None
    at: int


class SeenCertificates(Generic[Key]):
    def __init__(self) -> None:
        self._reported: dict[Key, tuple[int, list[_Reported]]] = {}
        self._pending: dict[tuple[Key, int, int | None], SeenNote[Key]] = {}

    def __len__(self) -> int:
        """Returns the number of notes to report."""
        return len(self._pending)

    def see(self, key: Key, revision: int, result: Result) -> None:
        """Notes the certificate of a result, or that an up target was checked without TLS.

        An error is logged: it must not end the checks of other targets.
        """
        try:
            self._see(key, revision, result)
        except Exception:
            log.exception("certificate not noted", extra={"monitor": str(key)})

    def _see(self, key: Key, revision: int, result: Result) -> None:
        der = result.certificate
        if der is None and result.outcome is not RunOutcome.UP:
            return
        digest = b"" if der is None else sha256(der).digest()
        before, reported = self._reported.get(key, (revision, []))
        # A restore of the database can set a lower one. The server knows the present one.
        if revision != before:
            reported = []
        at = result.started_at
        known = next((one for one in reported if one.digest == digest), None)
        # After the clock is set back, a known one is reported again.
        if known is not None and abs(at - known.at) < REFRESH_US:
            return
        if known is None:
            reported = [one for one in reported if abs(at - one.at) < REFRESH_US]
            ends_at = None if der is None else end_of(der)
            if len(reported) >= EACH_MOST or (der is not None and ends_at is None):
                return
            known = _Reported(digest, ends_at, at)
            reported.append(known)
            self._keep(key, revision, reported)
        known.at = at
        if len(self._pending) >= PENDING_MOST:
            del self._pending[next(iter(self._pending))]
        self._pending[key, revision, known.ends_at] = SeenNote(key, revision, known.ends_at, at)

    def take(self, most: int) -> list[SeenNote[Key]]:
        """Removes and returns the oldest notes."""
        names = list(self._pending)[:most]
        return [self._pending.pop(name) for name in names]

    def give_back(self, notes: Sequence[SeenNote[Key]]) -> None:
        """Keeps notes that could not be reported, unless newer ones exist."""
        self._pending = {(one.key, one.revision, one.ends_at): one for one in notes} | self._pending

    def forget(self) -> None:
        """Drops everything, for example after a jump of the clock."""
        self._reported.clear()
        self._pending.clear()

    def _keep(self, key: Key, revision: int, reported: list[_Reported]) -> None:
        if key not in self._reported and len(self._reported) >= MONITORS_MOST:
            self._reported.clear()
        self._reported[key] = revision, reported
