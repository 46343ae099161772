"""Row structs of monitors that other features or layers use, and their constants."""

from enum import StrEnum
from uuid import UUID

import msgspec

from ..core.instant import Instant
from ..core.key import MonitorKey
from .rules.fields import StoredFields


class MonitorRow(StoredFields, frozen=True):
    """A monitor with the names of its place. `config` is JSON text without its secrets."""

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
    # The key of the escalation policy of its incidents.
    escalation_policy: int | None = None
    # The provider whose files it comes from, what they call it and the file's path; empty where
    # people edit it. `orphaned_at` is since when the files no longer name it.
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None
    # The service that stands in its place, and since when it is retired for it.
    superseded_by: int | None = None
    superseded_by_uid: UUID | None = None
    retired_at: Instant | None = None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))


class ProbeErrorReason(StrEnum):
    """What keeps a check from being made of a monitor; the words are those of the wire."""

    CARRIER_TOO_OLD = "carrier_too_old"
    MISSING_REFERENCE = "missing_reference"
    DECRYPT_FAILED = "decrypt_failed"


class ProbeErrorRow(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    reason: str
    at: Instant


class CheckTest(msgspec.Struct, frozen=True):
    uid: UUID
    document: str | None
    document_ciphertext: bytes | None


class MonitorRef(msgspec.Struct, frozen=True):
    """A monitor by all it may be referred to."""

    id: int
    uid: UUID
    slug: str
    type: str
    shard: int
    managed_by: str
    bundle_uid: str | None
    bundle_path: str
    orphaned_at: Instant | None
