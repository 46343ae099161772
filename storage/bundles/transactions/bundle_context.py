"""Context of an application: the project, and the objects that a bundle can refer to.

These are monitors, services, channels, people, escalation policies and on-call schedules.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.queries.projects import select_organization
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...incidents.queries.alert_routes import select_route_marks, select_routes_of
from ...incidents.rows import AlertRouteRow, RouteListRow
from ...monitors.queries.monitor_defaults import monitor_defaults_in_force
from ...monitors.rows import MonitorRef
from ...monitors.rules.monitor_defaults import MonitorDefaults
from ...monitors.tables.monitors import select_names
from ...notifications.queries.channels import select_channels_of
from ...notifications.rows import ChannelRow
from ...oncall.queries.escalation_policies import (
    select_default_policy_uid,
    select_policies_of,
)
from ...oncall.queries.oncall_schedules import select_schedules_of
from ...oncall.rows import EscalationPolicyRow, ScheduleRow
from ...scheduling.queries.region_list import select_usable_regions
from ...services.queries.services import select_services_of_project
from ...services.rows import ServiceRow
from ..queries import select_people_of
from ..rules.bundle import FORMATS, Bundle, MonitorEntry, ServiceEntry
from ..rules.bundle_diff import BundleAction
from ..rules.bundle_owner import CONFLICT, NamedObject, match, match_named

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
class ApplyContext:
    """Settings of the process that every bundle is applied with, see `entry_context`."""

    keyring: Keyring
    regions: frozenset[str]
    reserved: Mapping[str, frozenset[str]]
    raw_days: int


@dataclass(slots=True)
class ApplyProgress:
    """Number of entries that an application has written, of all changes. For other tasks.

    `written` are (action, kind, uid) of entries that were not reported yet.
    """

    done: int = 0
    total: int = 0
    written: list[tuple[str, str, str]] = field(default_factory=list)

    def begin(self, total: int, done: int) -> None:
        self.total, self.done, self.written = total, done, []

    def wrote(self, action: BundleAction, kind: str, uid: str) -> None:
        self.done += 1
        self.written.append((action.value, kind, uid))

    def taken(self) -> list[tuple[str, str, str]]:
        """Returns the entries since the last call."""
        found, self.written = self.written, []
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySource:
    """Principal and origin of an application, see `BundleSource`.

    With `take_over`, the bundle becomes the owner of objects that people or other bundles have.
    `revision` is that of the plan which the application must equal; empty for any. The application
    counts in `progress`. The rights of `inviter` decide about invitations; None is the principal.
    """

    principal: Principal
    path: str = ""
    kept: frozenset[tuple[str, str]] = frozenset()
    take_over: bool = False
    revision: str = ""
    progress: ApplyProgress = field(default_factory=ApplyProgress)
    inviter: Principal | None = None

    @property
    def provider(self) -> str:
        return self.principal.provider


@dataclass(slots=True)
class NameReferences:
    """References to objects of one kind: names by id, and ids by uid in the bundle.

    `include` and `refer` are the only writes, because other dictionaries follow from these.
    """

    names: dict[UUID, str]
    uids: dict[str, UUID] = field(default_factory=dict)
    _words: dict[UUID, str] = field(default_factory=dict)
    _named: dict[str, dict[UUID, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for own, name in self.names.items():
            self._named.setdefault(name, {})[own] = None

    def include(self, uid: str, own: UUID, name: str) -> None:
        """Adds an object of the bundle, with the name that it will have."""
        if own in self.names:
            del self._named[self.names[own]][own]
        self.names[own] = name
        self._named.setdefault(name, {})[own] = None
        self.refer(uid, own)

    def refer(self, uid: str, own: UUID) -> None:
        """Adds a uid in the bundle. The first one of an object is its word."""
        self.uids[uid] = own
        self._words.setdefault(own, uid)

    def named(self, name: str) -> list[UUID]:
        """Returns the ids of the objects with this name."""
        return list(self._named.get(name, ()))

    def uid_of(self, own: UUID) -> str | None:
        """Returns the uid in the bundle of an object, None if it has none."""
        word = self._words.get(own)
        return word if word is not None and self.uids[word] == own else None


@dataclass(slots=True)
class OnCallRows:
    """On-call objects of the project, in the order of their ids, and the marks of its routes."""

    channels: list[ChannelRow]
    schedules: list[ScheduleRow]
    policies: list[EscalationPolicyRow]
    routes: list[AlertRouteRow]
    route_lists: list[RouteListRow]


@dataclass(slots=True)
class OnCallMatches:
    """Existing on-call objects by uid in the bundle."""

    channels: dict[str, ChannelRow] = field(default_factory=dict)
    schedules: dict[str, ScheduleRow] = field(default_factory=dict)
    policies: dict[str, EscalationPolicyRow] = field(default_factory=dict)
    routes: dict[str, RouteListRow] = field(default_factory=dict)

    @property
    def ids(self) -> list[tuple[str, UUID]]:
        every = (self.channels, self.schedules, self.policies, self.routes)
        return [(uid, row.uid) for found in every for uid, row in found.items()]


@dataclass(slots=True)
class BundleContext:
    """Current project and the objects in it that belong to the bundle."""

    home: ProjectRow
    names: list[MonitorRef]
    uids: dict[int, UUID]
    services: list[ServiceRow]
    # Names by id, and ids by key.
    policies: NameReferences
    policy_uids: dict[int, UUID]
    schedules: NameReferences
    channels: NameReferences
    # E-mail addresses of members, and of people who are named on call, by the id of the account.
    people: dict[UUID, str]
    # Accounts by address in lower case.
    accounts: dict[str, UUID]
    oncall: OnCallRows
    # Policy of incidents about Leadline in the project.
    default_policy: UUID | None
    # Format of the bundle; of an export, the last one.
    format: int = FORMATS[-1]
    # Existing objects by uid in the bundle.
    mine: dict[str, MonitorRef] = field(default_factory=dict)
    my_services: dict[str, ServiceRow] = field(default_factory=dict)
    my_oncall: OnCallMatches = field(default_factory=OnCallMatches)
    # Ids of new monitors and services by uid in the bundle.
    coming: dict[str, UUID] = field(default_factory=dict)
    coming_services: dict[str, UUID] = field(default_factory=dict)
    # Shards by region of the bundle's monitors.
    shards: dict[str, int] = field(default_factory=dict)


async def entry_context(tx: Tx, org: int, ground: ApplyContext) -> EntryContext:
    """Returns the settings for entries of an organization's project."""
    return EntryContext(
        keyring=ground.keyring,
        regions=await select_usable_regions(tx, org, ground.regions, ground.reserved),
        defaults=await monitor_defaults_in_force(tx),
        raw_days=ground.raw_days,
    )


async def look_around(tx: Tx, home: ProjectRow) -> BundleContext:
    """Reads the project, which must be locked."""
    oncall = await select_oncall(tx, home)
    names = await select_names(tx, home.org, home.id)
    people = await select_people_of(tx, home.org, home.id)
    return BundleContext(
        home=home,
        names=names,
        uids={one.id: one.uid for one in names},
        services=await select_services_of_project(tx, home.org, home.id),
        policies=NameReferences({row.uid: row.name for row in oncall.policies}),
        policy_uids={row.id: row.uid for row in oncall.policies},
        schedules=NameReferences({row.uid: row.name for row in oncall.schedules}),
        channels=NameReferences({row.uid: row.name for row in oncall.channels}),
        people=people,
        # The first of equal addresses.
        accounts={email.lower(): uid for uid, email in reversed(people.items())},
        oncall=oncall,
        default_policy=await select_default_policy_uid(tx, home.org, home.id),
    )


async def select_oncall(tx: Tx, home: ProjectRow) -> OnCallRows:
    routes = await select_routes_of(tx, home.org, home.id)
    marks = await select_route_marks(tx, home.org, home.id)
    if marks is None or not marks.managed_by:
        marks = RouteListRow(0, home.uid) if routes else None
    return OnCallRows(
        channels=await select_channels_of(tx, home.org, home.id),
        schedules=await select_schedules_of(tx, home.org, home.id),
        policies=await select_policies_of(tx, home.org, home.id),
        routes=routes,
        route_lists=[] if marks is None else [marks],
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


T = TypeVar("T")
UUID_LENGTH: Final = 36


def match_monitors(
    place: BundleContext, entries: Mapping[str, MonitorEntry], provider: str
) -> dict[str, MonitorRef]:
    """Returns existing monitors by uid.

    Raises:
        Refused if another owner has the slug, or the type differs.
    """
    found = match("monitors", place.names, entries, provider)
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
    return match("services", place.services, entries, provider)


def match_oncall(place: BundleContext, bundle: Bundle, provider: str) -> OnCallMatches:
    """Returns existing on-call objects by uid.

    Raises:
        Refused if another owner has the name, or several objects have it.
    """
    rows = place.oncall
    named = {
        section: {
            uid: entry.name if isinstance(entry.name, str) else uid
            for uid, entry in getattr(bundle, section).items()
        }
        for section in ("channels", "schedules", "escalation_policies")
    }
    of_routes = {uid: uid for uid in bundle.routes}
    return OnCallMatches(
        match_named("channels", rows.channels, named["channels"], provider),
        match_named("schedules", rows.schedules, named["schedules"], provider),
        match_named("escalation_policies", rows.policies, named["escalation_policies"], provider),
        match_named("routes", rows.route_lists, of_routes, provider),
    )


def include_oncall(place: BundleContext, bundle: Bundle, applied: ApplySource) -> None:
    """Adds the on-call objects of the bundle to the references; new ones get their ids.

    A bundle of format 3 can also name those of other bundles of its provider by their uids, and its
    own ones in a section that it leaves out.
    """
    oncall, mine = place.oncall, place.my_oncall
    sections: list[tuple[str, NameReferences, Sequence[NamedObject], Mapping[str, NamedObject]]] = [
        ("channels", place.channels, oncall.channels, mine.channels),
        ("schedules", place.schedules, oncall.schedules, mine.schedules),
        ("escalation_policies", place.policies, oncall.policies, mine.policies),
    ]
    for section, known, stored, rows in sections:
        entries = getattr(bundle, section)
        for row in stored if bundle.format == FORMATS[-1] else ():
            is_dropped = bundle.states(section) and row.bundle_path == applied.path
            if row.managed_by == applied.provider and row.orphaned_at is None and not is_dropped:
                known.refer(row.bundle_uid or "", row.uid)
        for uid, entry in entries.items():
            own = rows[uid].uid if uid in rows else uuid7()
            known.include(uid, own, entry.name if isinstance(entry.name, str) else uid)


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


def resolve_named(field_: str, word: str, known: NameReferences) -> str:
    """Returns the id, as text, for a uid of the bundle, a name or an id; blank for blank.

    Raises:
        Refused invalid if the name is unknown or ambiguous.
    """
    if not word:
        return ""
    if word in known.uids:
        return str(known.uids[word])
    if len(word) == UUID_LENGTH and _is_id(word, known):
        return word
    found = known.named(word)
    if len(found) != 1:
        rule = "is not a name in the project" if not found else "is the name of two: give an id"
        raise Refused("invalid", field_, rule)
    return str(found[0])


def word_for(uid: UUID | str | None, known: NameReferences) -> str:
    """Returns the uid in the bundle, otherwise the name if it is unique, otherwise the id."""
    if not uid:
        return ""
    key = UUID(str(uid))
    word = known.uid_of(key)
    if word is not None:
        return word
    name = known.names.get(key, "")
    is_unique = len(known.named(name)) == 1 and name not in known.uids
    return name if is_unique else str(key)


def _is_id(word: str, known: NameReferences) -> bool:
    """Returns whether the text is the id of an object, in the form that Leadline writes."""
    try:
        own = UUID(word)
    except ValueError:
        return False
    return own in known.names and str(own) == word
