"""State of file providers: all for global admins, an organization's files for its admins."""

from typing import Final

import msgspec

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.rules.access import Need, Permission
from ....storage.bundles.queries import select_files, select_providers
from ....storage.bundles.rows import FileRow, ProviderRow
from ....storage.bundles.rules.file_provider import FileStatus, scope_of
from ....storage.core.instant import SECOND, Instant
from ...wire.route import Request, Route
from ...wire.schema import instant_text, known
from ..schemas.file_providers import (
    FileProviderDiagnostic,
    FileProviderRuntimeStatus,
    FileProviders,
    OrganizationFiles,
)


class ProviderQuery(msgspec.Struct, frozen=True):
    provider: str = ""


async def list_all(ask: Request) -> FileProviders:
    name = ask.query.provider
    async with ask.context.pool.transaction("list_file_providers", read_only=True) as tx:
        files = await select_files(tx, name)
        providers = await select_providers(tx, name)
    return FileProviders(
        bundles=[_diagnostic(row) for row in files],
        providers=[_runtime(row) for row in providers],
    )


async def list_of_organization(ask: Request) -> OrganizationFiles:
    async with ask.context.pool.transaction("list_organization_files", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        assert organization is not None, "its scope was found"
        names = (organization.slug, str(organization.uid))
        files = await select_files(tx, organizations=names)
    return OrganizationFiles(bundles=[_diagnostic(row) for row in files])


def _diagnostic(row: FileRow) -> FileProviderDiagnostic:
    return FileProviderDiagnostic(
        provider=row.provider,
        organization=row.organization,
        project=row.project_slug,
        path=row.path,
        generation=row.generation,
        status=FileStatus(row.status),
        last_error=known(row.last_error or None),
        applied_at=instant_text(row.applied_at),
    )


def _runtime(row: ProviderRow) -> FileProviderRuntimeStatus:
    kind, organization, project = scope_of(row.scope)
    return FileProviderRuntimeStatus(
        provider=row.provider,
        scope_type=kind,  # type: ignore[arg-type]
        scope_org=known(organization or None),
        scope_project=known(project or None),
        leader=row.is_held,
        last_scan_unix=known(_unix(row.last_scan)),
        last_success_unix=known(_unix(row.last_success)),
        last_error=known(row.last_error or None),
        managed_monitors=row.managed_monitors,
        orphaned_monitors=row.orphaned_monitors,
        bundle_errors=row.bundle_errors,
    )


def _unix(at: Instant | None) -> int | None:
    return None if at is None else at // SECOND


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/admin/file-providers",
        action=Permission(Need.GLOBAL_ADMIN),
        handler=list_all,
        summary="List the file providers with the state of their files.",
        tag="file_providers",
        query=ProviderQuery,
        answer=FileProviders,
    ),
    Route(
        method="GET",
        path="/api/v1/organizations/{orgID}/file-providers",
        action=Permission(Need.ORG_ADMIN),
        scope=("organization", "orgID"),
        handler=list_of_organization,
        summary="List the bundle files of the organization with their state.",
        tag="file_providers",
        answer=OrganizationFiles,
    ),
)
