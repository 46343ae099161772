"""Bodies of file providers: directories, their leaders, and the state of each file."""

from typing import Literal

from msgspec import UNSET, UnsetType

from ....storage.bundles.rules.file_provider import FileStatus
from ...wire.schema import InstantText, Schema


class FileProviderDiagnostic(Schema, frozen=True, kw_only=True):
    """A bundle file at its last scan.

    `generation` counts how often it was applied. `last_error` states why the newest content is not
    applied, with line and column.
    """

    provider: str
    organization: str
    project: str
    path: str
    generation: int
    status: FileStatus
    last_error: str | UnsetType = UNSET
    applied_at: InstantText | UnsetType = UNSET


class FileProviderRuntimeStatus(Schema, frozen=True, kw_only=True):
    """State of a file provider.

    `leader`: a process watches the directory. Scans in Unix seconds.
    """

    provider: str
    scope_type: Literal["instance", "organization", "project"]
    scope_org: str | UnsetType = UNSET
    scope_project: str | UnsetType = UNSET
    leader: bool
    last_scan_unix: int | UnsetType = UNSET
    last_success_unix: int | UnsetType = UNSET
    last_error: str | UnsetType = UNSET
    managed_monitors: int
    orphaned_monitors: int
    bundle_errors: int


class FileProviders(Schema, frozen=True, kw_only=True):
    bundles: list[FileProviderDiagnostic]
    providers: list[FileProviderRuntimeStatus]


class OrganizationFiles(Schema, frozen=True, kw_only=True):
    bundles: list[FileProviderDiagnostic]
