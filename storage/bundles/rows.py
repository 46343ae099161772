"""Row structs of bundles that other features or layers use, and their constants."""

from typing import Any
from uuid import UUID

import msgspec

from ..core.instant import Instant


class BundlePersonRow(msgspec.Struct, frozen=True):
    """Person of a bundle. `methods` is the list of the proposed methods, as JSON."""

    id: int
    uid: UUID
    email: str
    name: str
    role: str
    methods: str
    managed_by: str
    bundle_uid: str | None
    bundle_path: str
    orphaned_at: Instant | None


class ObjectRow(msgspec.Struct, frozen=True):
    """Object without bundle columns of its own, with its settings as in a bundle."""

    id: int
    uid: UUID
    name: str
    settings: dict[str, Any]
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None


class FileRow(msgspec.Struct, frozen=True):
    """File of a provider.

    `organization` and `project_slug` are those named in the file. `project` is where it was last
    applied.
    """

    provider: str
    path: str
    organization: str
    project_slug: str
    project: UUID | None
    digest: bytes
    generation: int
    # Value of FileStatus.
    status: str
    last_error: str
    scanned_at: Instant
    applied_at: Instant | None


class ProviderRow(msgspec.Struct, frozen=True):
    """File provider. `is_held` states that a process has the lease on its directory."""

    provider: str
    scope: str
    is_held: bool
    last_scan: Instant | None
    last_success: Instant | None
    last_error: str
    managed_monitors: int
    orphaned_monitors: int
    bundle_errors: int


class ApplicationRow(msgspec.Struct, frozen=True):
    """Bundle that is applied in the background: JSON in one of the documents."""

    operation: UUID
    project: UUID
    document: str | None
    document_ciphertext: bytes | None
    path: str
    take_over: bool
    revision: str
    actor_label: str
    actor_user: UUID | None

    def __repr__(self) -> str:
        return f"ApplicationRow({self.operation})"


class RevisionRow(msgspec.Struct, frozen=True):
    """Application over the API that changed something. `revision` counts within one name."""

    path: str
    revision: int
    applied_at: Instant
    actor_label: str
    created: int
    updated: int
    orphaned: int
    unchanged: int
    taken_over: int
    # Whether the changes are stored.
    has_changes: bool


class BundleRow(msgspec.Struct, frozen=True):
    """Bundle of the API with the numbers of objects that it manages."""

    path: str
    monitors: int
    services: int
    oncall: int
    # Settings of the project, maintenance series, status pages and webhooks.
    others: int = 0
