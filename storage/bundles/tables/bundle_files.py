"""File providers and their files, as of the last scan."""

from collections.abc import Iterable
from uuid import UUID

from ...engine.pools import Tx
from ..rules.file_provider import FileStatus

# Measured by the clock of the database, which all processes share.
LEASE_SECONDS = 30

_CLAIM = """
insert into bundle_providers as p (provider, scope, holder, lease_until)
values (%(provider)s, %(scope)s, %(holder)s,
  clock_timestamp() + %(lease)s * interval '1 second')
on conflict (provider) do update set scope = excluded.scope, holder = excluded.holder,
  lease_until = excluded.lease_until
where p.holder = excluded.holder or p.lease_until <= clock_timestamp()
returning provider
"""
_SCANNED = """
update bundle_providers set last_scan = at(%(now)s), last_error = %(error)s,
  last_success = case when %(error)s = '' then at(%(now)s) else last_success end
where provider = %(provider)s
"""
_PUT = """
insert into bundle_files (provider, path, organization, project_slug, digest, status, last_error,
  scanned_at)
values (%(provider)s, %(path)s, %(organization)s, %(project_slug)s, %(digest)s, %(status)s,
  %(error)s, at(%(now)s))
on conflict (provider, path) do update set organization = excluded.organization,
  project_slug = excluded.project_slug, digest = excluded.digest, status = excluded.status,
  last_error = excluded.last_error, scanned_at = excluded.scanned_at
"""
_APPLIED = """
update bundle_files set project = %(project)s, generation = generation + 1, status = 'applied',
  last_error = '', applied_at = at(%(now)s), scanned_at = at(%(now)s)
where provider = %(provider)s and path = %(path)s
"""
_DROP = "delete from bundle_files where provider = %(provider)s and path = %(path)s"
_DROP_PROVIDER = "delete from bundle_providers where provider = %(provider)s"
# Every table with marks of bundles.
_MANAGED = (
    "monitors",
    "services",
    "notification_channels",
    "oncall_schedules",
    "escalation_policies",
    "alert_route_lists",
    "bundle_people",
    "bundle_objects",
)
_OF_FILE = " or ".join(
    f"""exists (select from {table} k where k.org = p.org and k.project = p.id
    and k.managed_by = %(provider)s and k.bundle_path = %(path)s and k.orphaned_at is null)"""
    for table in _MANAGED
)
_ORPHAN_PLACES = f"""
select distinct p.uid from projects p where p.uid <> %(project)s and ({_OF_FILE}) order by p.uid
"""


async def claim_provider(tx: Tx, provider: str, scope: str, holder: UUID) -> bool:
    """Returns whether the holder has the lease on the directory, for LEASE_SECONDS from now."""
    return (
        await tx.value(_CLAIM, provider=provider, scope=scope, holder=holder, lease=LEASE_SECONDS)
        is not None
    )


async def record_scan(tx: Tx, provider: str, error: str) -> None:
    await tx.execute(_SCANNED, provider=provider, error=error, now=tx.now)


async def put_file(
    tx: Tx,
    provider: str,
    path: str,
    *,
    named: tuple[str, str],
    digest: bytes,
    status: FileStatus,
    error: str = "",
) -> None:
    """Writes the state of a file. `named` are its organization and project."""
    await tx.execute(
        _PUT,
        provider=provider,
        path=path,
        organization=named[0],
        project_slug=named[1],
        digest=digest,
        status=status.value,
        error=error,
        now=tx.now,
    )


async def record_applied(tx: Tx, provider: str, path: str, project: UUID) -> None:
    """Records an application. The file and its project exist."""
    await tx.execute(_APPLIED, provider=provider, path=path, project=project, now=tx.now)


async def delete_file(tx: Tx, provider: str, path: str) -> None:
    await tx.execute(_DROP, provider=provider, path=path)


async def select_left_behind(
    tx: Tx, provider: str, path: str, project: UUID | None
) -> Iterable[UUID]:
    """Returns other projects with objects that still belong to the file."""
    nowhere = UUID(int=0)
    rows = await tx.rows(_ORPHAN_PLACES, provider=provider, path=path, project=project or nowhere)
    return [uid for (uid,) in rows]


async def delete_provider(tx: Tx, provider: str) -> bool:
    """Deletes a provider with its files. Returns whether it existed."""
    return await tx.execute(_DROP_PROVIDER, provider=provider) == 1
