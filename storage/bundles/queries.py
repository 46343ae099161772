"""Read-only SQL of bundles."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ..engine.pools import Tx
from .rows import BundlePersonRow, BundleRow, FileRow, ProviderRow, RevisionRow
from .rules.bundle_diff import API, BundleChange

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


_REVISION_COLUMNS = """
path, revision, applied_at, actor_label, created, updated, orphaned, unchanged, taken_over,
  changes is not null
"""
_REVISION = f"""
select {_REVISION_COLUMNS} from bundle_revisions
where org = %(org)s and project = %(project)s and path = %(path)s and revision = %(revision)s
"""
_REVISIONS = f"""
select {_REVISION_COLUMNS} from bundle_revisions where org = %(org)s and project = %(project)s
order by applied_at desc, path, revision desc limit %(most)s
"""
_CHANGES = """
select changes from bundle_revisions
where org = %(org)s and project = %(project)s and path = %(path)s and revision = %(revision)s
"""
_OF_API = """
where org = %(org)s and project = %(project)s and managed_by = %(api)s and orphaned_at is null
"""
# The mark of an object that is gone counts no more.
_STANDS = """
(b.kind = 'project_settings' or exists (select from maintenance_series x
  where x.org = b.org and x.uid = b.uid and x.ended_at is null)
  or exists (select from status_pages x where x.org = b.org and x.uid = b.uid)
  or exists (select from webhooks x where x.org = b.org and x.uid = b.uid))
"""
_PATHS = f"""
select path, sum(monitors)::int, sum(services)::int, sum(oncall)::int,
  (count(*) - sum(monitors + services + oncall))::int from (
  select bundle_path as path, 1 as monitors, 0 as services, 0 as oncall from monitors {_OF_API}
  union all select bundle_path, 0, 1, 0 from services {_OF_API}
  union all select bundle_path, 0, 0, 1 from notification_channels {_OF_API}
  union all select bundle_path, 0, 0, 1 from oncall_schedules {_OF_API}
  union all select bundle_path, 0, 0, 1 from escalation_policies {_OF_API}
  union all select bundle_path, 0, 0, 1 from bundle_people {_OF_API}
  union all select bundle_path, 0, 0, 0 from bundle_objects b {_OF_API} and {_STANDS}
  union all select bundle_path, 0, 0, 1 from alert_route_lists {_OF_API}) k
group by path order by path
"""


_PEOPLE = """
select u.uid, u.email from users u
where exists (select from memberships m where m.user_id = u.id and m.org = %(org)s
    and (m.project is null or m.project = %(project)s))
  or exists (select from notification_channels c where c.org = %(org)s
    and c.project = %(project)s and c.person = u.id)
"""


async def select_people_of(tx: Tx, org: int, project: int) -> dict[UUID, str]:
    """Returns the e-mail addresses of the members and of people in on-call objects."""
    return dict(await tx.rows(_PEOPLE, org=org, project=project))


_BUNDLE_PEOPLE = """
select id, uid, email, name, role::text, methods::text, managed_by, bundle_uid, bundle_path,
  orphaned_at
from bundle_people where org = %(org)s and project = %(project)s order by id
"""
# Also unverified addresses: an invitation would not change them, so each application would invite.
_MEMBER_ADDRESSES = """
select distinct lower(u.email) from memberships m join users u on u.id = m.user_id
where m.org = %(org)s and (m.project is null or m.project = %(project)s)
"""
_INVITED = """
select distinct lower(email) from invitations
where org = %(org)s and (project is null or project = %(project)s) and expires_at > at(%(now)s)
"""


async def select_bundle_people(tx: Tx, org: int, project: int) -> list[BundlePersonRow]:
    return await tx.structs(BundlePersonRow, _BUNDLE_PEOPLE, org=org, project=project)


async def select_member_addresses(tx: Tx, org: int, project: int) -> set[str]:
    """Returns the addresses in lower case of the members of a project."""
    return {email for (email,) in await tx.rows(_MEMBER_ADDRESSES, org=org, project=project)}


async def select_invited(tx: Tx, org: int, project: int) -> set[str]:
    """Returns the addresses in lower case with an open invitation to a project."""
    rows = await tx.rows(_INVITED, org=org, project=project, now=tx.now)
    return {email for (email,) in rows}


_ATTACHED = """
select m.id, c.uid
from monitors m left join monitor_channels a on a.org = m.org and a.monitor = m.id
  left join notification_channels c on c.org = a.org and c.id = a.channel and c.person is null
where m.org = %(org)s and m.project = %(project)s and (c.id is not null or m.channels_managed)
"""


async def select_attached(tx: Tx, org: int, project: int) -> dict[int, set[UUID]]:
    """Returns the channels of each monitor by key, with an empty set if a bundle states none."""
    found: dict[int, set[UUID]] = {}
    for monitor, channel in await tx.rows(_ATTACHED, org=org, project=project):
        found.setdefault(monitor, set()).update(() if channel is None else (channel,))
    return found


_STATED = """
select id, channels_managed, targets_managed from monitors
where org = %(org)s and project = %(project)s and (channels_managed or targets_managed)
"""


async def select_stated(tx: Tx, org: int, project: int) -> dict[int, tuple[bool, bool]]:
    """Returns whether a bundle states channels and objectives, by the keys of monitors."""
    rows = await tx.rows(_STATED, org=org, project=project)
    return {key: (channels, targets) for key, channels, targets in rows}


async def select_revisions(tx: Tx, org: int, project: int, most: int) -> list[RevisionRow]:
    """Returns the newest revisions of the bundles of a project, newest first."""
    return await tx.structs(RevisionRow, _REVISIONS, org=org, project=project, most=most)


async def select_revision(
    tx: Tx, org: int, project: int, path: str, revision: int
) -> RevisionRow | None:
    values = {"org": org, "project": project, "path": path, "revision": revision}
    return await tx.one(RevisionRow, _REVISION, **values)


async def select_revision_changes(
    tx: Tx, org: int, project: int, path: str, revision: int
) -> list[BundleChange] | None:
    """Returns the changes of a revision, None if they are not stored."""
    values = {"org": org, "project": project, "path": path, "revision": revision}
    found: str | None = await tx.value(_CHANGES, **values)
    return None if found is None else msgspec.json.decode(found, type=list[BundleChange])


async def select_bundles(tx: Tx, org: int, project: int) -> list[BundleRow]:
    """Returns the bundles of the API that manage objects of a project."""
    return await tx.structs(BundleRow, _PATHS, org=org, project=project, api=API)


async def select_providers(tx: Tx, provider: str = "") -> list[ProviderRow]:
    return await tx.structs(ProviderRow, _PROVIDERS, provider=provider)


async def select_files(
    tx: Tx, provider: str = "", organizations: Sequence[str] | None = None
) -> list[FileRow]:
    """Returns files by provider and path. An empty `provider` selects all providers.

    `organizations` are names as given in the files.
    """
    names = None if organizations is None else list(organizations)
    return await tx.structs(FileRow, _FILES, provider=provider, organizations=names)
