"""Context of an application: the project, and the objects that a bundle can refer to.

These are monitors, services, escalation policies and on-call schedules.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar
from uuid import UUID

from ...accounts.queries.projects import select_organization
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...core.instant import Instant
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.rows import MonitorRef
from ...monitors.rules.monitor_defaults import MonitorDefaults
from ...monitors.tables.monitors import select_names
from ...oncall.queries.escalation_policies import select_policies_of
from ...oncall.queries.oncall_schedules import select_schedules_of
from ...services.queries.services import select_services_of_project
from ...services.rows import ServiceRow
from ..rules.bundle import Bundle, MonitorEntry, ServiceEntry
from ..rules.bundle_diff import MANAGED_BY, FieldChange, FromBundle, Kind, OwnershipMark

CONFLICT: Final = "bundle_conflict"
# Refusals caused by another writer, not by a fault of the bundle.
_CONFLICTS: Final = frozenset(
    {"slug_taken", "managed_by_file", "in_use", "revision_conflict", "service_quota", "retired"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContext:
    """Settings for the interpretation of entries.

    They are the defaults, the regions of the installation, and the retention of results in days.
    """

    keyring: Keyring
    regions: frozenset[str]
    defaults: MonitorDefaults
    raw_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySource:
    """Principal and file of an application. `kept` are uids in the provider's other files."""

    principal: Principal
    path: str = ""
    kept: frozenset[tuple[str, str]] = frozenset()

    @property
    def provider(self) -> str:
        return self.principal.provider


@dataclass(slots=True)
class BundleContext:
    """Current project and the objects in it that belong to the bundle."""

    home: ProjectRow
    names: list[MonitorRef]
    uids: dict[int, UUID]
    services: list[ServiceRow]
    # Names by id, and ids by key.
    policies: dict[UUID, str]
    policy_uids: dict[int, UUID]
    schedules: dict[UUID, str]
    # Existing objects by uid in the bundle.
    mine: dict[str, MonitorRef] = field(default_factory=dict)
    my_services: dict[str, ServiceRow] = field(default_factory=dict)
    # Ids of new objects by uid in the bundle.
    coming: dict[str, UUID] = field(default_factory=dict)
    # Shards by region of the bundle's monitors.
    shards: dict[str, int] = field(default_factory=dict)


async def look_around(tx: Tx, home: ProjectRow) -> BundleContext:
    """Reads the project, which must be locked."""
    policies = await select_policies_of(tx, home.org, home.id)
    schedules = await select_schedules_of(tx, home.org, home.id)
    names = await select_names(tx, home.org, home.id)
    return BundleContext(
        home=home,
        names=names,
        uids={one.id: one.uid for one in names},
        services=await select_services_of_project(tx, home.org, home.id),
        policies={row.uid: row.name for row in policies},
        policy_uids={row.id: row.uid for row in policies},
        schedules={row.uid: row.name for row in schedules},
    )


async def expect_home(tx: Tx, bundle: Bundle, home: ProjectRow) -> None:
    """Checks that the bundle is for this project.

    Raises:
        Refused invalid.
    """
    organization = await select_organization(tx, home.org_uid)
    assert organization is not None, "the organization contains the project"
    if bundle.organization not in (organization.slug, str(home.org_uid)):
        raise Refused("invalid", "organization", "is not the organization of the project")
    if bundle.project not in (home.slug, str(home.uid)):
        raise Refused("invalid", "project", "is another than the one it is applied to")


class ManagedObject(FromBundle, Protocol):
    """Object that a bundle can name: a monitor or a service."""

    @property
    def id(self) -> int: ...
    @property
    def slug(self) -> str: ...


M = TypeVar("M", bound=ManagedObject)
T = TypeVar("T")


def match_monitors(
    place: BundleContext, entries: Mapping[str, MonitorEntry], provider: str
) -> dict[str, MonitorRef]:
    """Returns existing monitors by uid.

    Raises:
        Refused if another owner has the slug, or the type differs.
    """
    found = _match("monitors", place.names, entries, provider)
    for uid, one in found.items():
        if entries[uid].type != one.type:
            rule = f"is {one.type}, and types are not changed: give it another uid"
            raise Refused("invalid", f"monitors.{uid}.type", rule)
    return found


def match_services(
    place: BundleContext, entries: Mapping[str, ServiceEntry], provider: str
) -> dict[str, ServiceRow]:
    """Returns existing services by uid.

    Raises:
        Refused if another owner has the slug.
    """
    return _match("services", place.services, entries, provider)


def _match(
    kind: str,
    rows: Sequence[M],
    entries: Mapping[str, MonitorEntry] | Mapping[str, ServiceEntry],
    provider: str,
) -> dict[str, M]:
    """Returns existing objects: by uid of the provider, otherwise by slug."""
    by_uid = {one.bundle_uid: one for one in rows if one.managed_by == provider}
    by_slug = {one.slug: one for one in rows}
    found: dict[str, M] = {}
    for uid, entry in entries.items():
        slug = entry.slug if isinstance(entry.slug, str) else uid
        one = by_uid.get(uid) or by_slug.get(slug)
        if one is None:
            continue
        _expect_ours(f"{kind}.{uid}", uid, one, provider)
        if isinstance(entry.slug, str) and entry.slug != one.slug:
            rule = f"is {one.slug}, and slugs are not changed"
            raise Refused("invalid", f"{kind}.{uid}.slug", rule)
        found[uid] = one
    _expect_apart(kind, {uid: one.id for uid, one in found.items()})
    return found


def left_out(
    kind: Kind, rows: Sequence[M], entries: Collection[str], applied: ApplySource
) -> dict[str, M]:
    """Returns objects that the file named before, and that no file of the provider names now."""
    return {
        one.bundle_uid: one
        for one in rows
        if one.managed_by == applied.provider
        and one.bundle_uid is not None
        and one.bundle_path == applied.path
        and one.orphaned_at is None
        and one.bundle_uid not in entries
        and (kind, one.bundle_uid) not in applied.kept
    }


def taken_over(row: ManagedObject, applied: ApplySource) -> FieldChange | None:
    """Returns the change to report if the bundle takes over an object of users or an orphan."""
    if row.managed_by == applied.provider and row.orphaned_at is None:
        return None
    was = "" if row.managed_by == "" else "orphaned"
    return FieldChange(name=MANAGED_BY, from_=was, to=applied.provider)


def marks_of(
    entries: Mapping[str, UUID],
    standing: Mapping[str, ManagedObject],
    orphans: Mapping[str, UUID],
    applied: ApplySource,
    now: Instant,
) -> list[OwnershipMark]:
    """Returns the marks to write. `entries` and `orphans` are ids by uid in the bundle."""
    marks: list[OwnershipMark] = []
    for uid, own in entries.items():
        row = standing.get(uid)
        stands = row and (row.managed_by, row.bundle_uid, row.bundle_path, row.orphaned_at)
        if stands != (applied.provider, uid, applied.path, None):
            marks.append(OwnershipMark(own, applied.provider, uid, applied.path))
    for uid, own in orphans.items():
        marks.append(OwnershipMark(own, applied.provider, uid, applied.path, now))
    return marks


@contextmanager
def under(path: str) -> Iterator[None]:
    """Converts refusals inside the block to refusals of the entry and its field."""
    try:
        yield
    except Refused as refused:
        if refused.code == CONFLICT:
            field_ = f"{path}.{refused.field}"
            raise Refused(CONFLICT, field_, refused.message) from refused
        if refused.field and refused.message:
            raise Refused("invalid", f"{path}.{refused.field}", refused.message) from refused
        if refused.code in _CONFLICTS:
            raise Refused(CONFLICT, path, refused.code) from refused
        raise Refused("invalid", path, refused.message or refused.code) from refused


def _expect_ours(path: str, uid: str, one: ManagedObject, provider: str) -> None:
    if one.managed_by in ("", provider) and one.bundle_uid in (None, uid):
        return
    whose = f"{one.managed_by}, as {one.bundle_uid}"
    raise Refused(CONFLICT, path, f"the slug {one.slug} is taken by {whose}")


def _expect_apart(kind: str, keys: Mapping[str, int]) -> None:
    seen: dict[int, str] = {}
    for uid, key in keys.items():
        if key in seen:
            raise Refused(CONFLICT, f"{kind}.{uid}", f"is the same as {seen[key]}")
        seen[key] = uid


def monitor_ids(place: BundleContext) -> dict[str, UUID]:
    """Returns the ids by reference: a uid of the bundle precedes a slug or id of the project."""
    found = {str(one.uid): one.uid for one in place.names}
    found.update({one.slug: one.uid for one in place.names})
    found.update({uid: one.uid for uid, one in place.mine.items()})
    found.update(place.coming)
    return found


def monitor_words(place: BundleContext) -> dict[UUID, str]:
    """Returns the reference of each monitor.

    It is the uid in the bundle, otherwise the slug, or the id if the bundle uses the slug as a uid.
    """
    taken = {*place.mine, *place.coming}
    found = {one.uid: str(one.uid) if one.slug in taken else one.slug for one in place.names}
    found.update({one.uid: uid for uid, one in place.mine.items()})
    found.update({uid: word for word, uid in place.coming.items()})
    return found


def resolve(field_: str, words: Sequence[str], known: Mapping[str, T]) -> list[T]:
    """Resolves references.

    Raises:
        Refused invalid for the first unknown one.
    """
    for word in words:
        if word not in known:
            rule = f"names {word[:64]!r}, which is neither in the bundle nor in the project"
            raise Refused("invalid", field_, rule)
    return [known[word] for word in words]


def resolve_named(field_: str, word: str, named: Mapping[UUID, str]) -> str:
    """Returns the id, as text, for a name or id; blank for blank.

    Raises:
        Refused invalid if the name is unknown or ambiguous.
    """
    if not word:
        return ""
    if word in {str(uid) for uid in named}:
        return word
    found = [uid for uid, name in named.items() if name == word]
    if len(found) != 1:
        rule = "is not a name in the project" if not found else "is the name of two: give an id"
        raise Refused("invalid", field_, rule)
    return str(found[0])


def word_for(uid: UUID | str | None, named: Mapping[UUID, str]) -> str:
    """Returns the name if it is unique, otherwise the id."""
    if not uid:
        return ""
    key = UUID(str(uid))
    name = named.get(key, "")
    return name if list(named.values()).count(name) == 1 else str(key)
