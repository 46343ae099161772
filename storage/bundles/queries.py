"""Read-only SQL of bundles."""

from collections.abc import Sequence

from ..engine.pools import Tx
from .rows import FileRow, ProviderRow

_PROVIDERS = """
select p.provider, p.scope, p.lease_until > clock_timestamp(), p.last_scan, p.last_success,
  p.last_error,
  (select count(*) from monitors m where m.managed_by = p.provider and m.orphaned_at is null),
  (select count(*) from monitors m where m.managed_by = p.provider and m.orphaned_at is not null),
  (select count(*) from bundle_files f where f.provider = p.provider
    and f.status in ('rejected', 'error', 'degraded'))
from bundle_providers p where %(provider)s in ('', p.provider) order by p.provider
"""

_FILES = """
select provider, path, organization, project_slug, project, digest, generation, status, last_error,
  scanned_at, applied_at
from bundle_files
where %(provider)s in ('', provider)
  and (%(organizations)s::text[] is null or organization = any(%(organizations)s::text[]))
order by provider, path
"""


async def select_providers(tx: Tx, provider: str = "") -> list[ProviderRow]:
    return await tx.structs(ProviderRow, _PROVIDERS, provider=provider)


async def select_files(
    tx: Tx, provider: str = "", organizations: Sequence[str] | None = None
) -> list[FileRow]:
    """Returns files by provider and path; of all providers if `provider` is empty.

    `organizations` are names as given in the files.
    """
    names = None if organizations is None else list(organizations)
    return await tx.structs(FileRow, _FILES, provider=provider, organizations=names)
