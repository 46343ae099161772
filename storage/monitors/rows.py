"""Row structs of monitors that other features or layers use, and their constants."""

from enum import StrEnum
from uuid import UUID

import msgspec

from ..core.instant import Instant
from ..core.key import MonitorKey
from .rules.fields import StoredFields


class MonitorRow(StoredFields, frozen=True):
    """Monitor with names of its project and region. `config` is JSON text without secrets."""

    org: int
    id: int
    uid: UUID
    project_uid: UUID
    project: int
    shard: int
    slug: str
    type: str
    depends_on: list[int]
    config: str
    config_ciphertext: bytes | None
    push_token_hash: bytes | None
    push_token_ciphertext: bytes | None
    revision: int
    created_at: Instant
    updated_at: Instant
    # Escalation policy of its incidents.
    escalation_policy: int | None = None
    # File provider, id in the bundle and file path; empty if edited by users. `orphaned_at` is the
    # instant since which the files no longer name it.
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None
    # Service that supersedes the monitor, and when the monitor was retired for it.
    superseded_by: int | None = None
    superseded_by_uid: UUID | None = None
    retired_at: Instant | None = None
    # The composite of the regional monitor that this is a part of; its own id if it is that one.
    regional_of: int | None = None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))


class ProbeErrorReason(StrEnum):
    """Reason why a monitor could not be probed. The values are those of the API."""

    CARRIER_TOO_OLD = "carrier_too_old"
    MISSING_REFERENCE = "missing_reference"
    DECRYPT_FAILED = "decrypt_failed"


class ProbeErrorRow(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    reason: str
    at: Instant


class NewCheckTest(msgspec.Struct, frozen=True, kw_only=True):
    """Check test to insert. `needs` are the capabilities that an agent needs for it."""

    uid: UUID
    region: str
    type: str
    needs: list[str]
    document: str | None
    sealed: bytes | None
    until: Instant


class CheckTest(msgspec.Struct, frozen=True):
    uid: UUID
    document: str | None
    document_ciphertext: bytes | None


class MonitorRef(msgspec.Struct, frozen=True):
    """Monitor with all names by which it can be referenced."""

    id: int
    uid: UUID
    slug: str
    type: str
    shard: int
    managed_by: str
    bundle_uid: str | None
    bundle_path: str
    orphaned_at: Instant | None


class CertificateReport(msgspec.Struct, frozen=True):
    """Certificate that a check of `revision` saw. `ends_at` is None if it used no TLS."""

    key: MonitorKey
    revision: int
    ends_at: Instant | None
    seen_at: Instant
