"""Owners of the objects of a project: people, a bundle of the API by its name, or a file provider.

A bundle writes an object only if it owns it, or if the application takes it over. Invariant: an
object that another owner has and that the bundle describes as it is stays with its owner.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeVar
from uuid import UUID

from ...core.instant import Instant
from ...core.refusal import Refused
from ...core.slug import free_slug, slug_of
from .bundle import MonitorEntry, ServiceEntry
from .bundle_diff import API, MANAGED_BY, FieldChange, FromBundle, Kind, OwnershipMark

CONFLICT: Final = "bundle_conflict"
# Name of a bundle of the API that has no other.
DEFAULT_NAME: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)


class ManagedObject(FromBundle, Protocol):
    """Object that a bundle can name by its slug: a monitor or a service."""

    @property
    def id(self) -> int: ...
    @property
    def slug(self) -> str: ...


class NamedObject(FromBundle, Protocol):
    """Object that a bundle can name by its name, which another object can have too."""

    @property
    def id(self) -> int: ...
    @property
    def uid(self) -> UUID: ...
    @property
    def name(self) -> str: ...


class BundleSource(Protocol):
    """Origin of an application: its provider, and the name of the bundle or of the file.

    `kept` are uids in the other files of the provider.
    """

    @property
    def provider(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def take_over(self) -> bool: ...
    @property
    def kept(self) -> frozenset[tuple[str, str]]: ...


class OwnerRelation(StrEnum):
    """Relation of a bundle to an existing object that it names."""

    # The bundle owns it.
    HELD = "held"
    # It is an orphan of the provider, and belongs to the bundle again.
    RETURNED = "returned"
    # The bundle becomes its owner.
    TAKEN = "taken"
    # It stays with its owner.
    LEFT = "left"


M = TypeVar("M", bound=ManagedObject)
N = TypeVar("N", bound=NamedObject)
F = TypeVar("F", bound=FromBundle)


def name_fault(name: str) -> str | None:
    """Returns the rule that the name of a bundle violates; None for a valid name."""
    if _NAME.fullmatch(name) is not None:
        return None
    return "must have 1 to 63 letters, digits, dots, hyphens or underscores"


def path_of(name: str) -> str:
    """Returns the mark of a bundle of the API. That of the default name is empty."""
    return "" if name == DEFAULT_NAME else name


def name_of(path: str) -> str:
    """Returns the name of a bundle of the API by the mark of its objects."""
    return path or DEFAULT_NAME


def owner_text(provider: str, path: str) -> str:
    """Returns the owner as in a plan: empty for people, `api`, `api/NAME`, or a file provider."""
    return f"{API}/{path}" if provider == API and path else provider


def relation_of(row: FromBundle, source: BundleSource) -> OwnerRelation:
    """Returns the relation of a bundle to an object that no other provider has."""
    is_of_provider = row.managed_by == source.provider
    if is_of_provider and row.orphaned_at is not None:
        return OwnerRelation.RETURNED
    if is_of_provider and row.bundle_path == source.path:
        return OwnerRelation.HELD
    # An entry can move between the files of a directory, which are known together.
    moves = is_of_provider and source.provider != API
    return OwnerRelation.TAKEN if moves or source.take_over else OwnerRelation.LEFT


def is_left(row: FromBundle | None, source: BundleSource) -> bool:
    """Returns whether an object stays with its owner. A new one does not."""
    return row is not None and relation_of(row, source) is OwnerRelation.LEFT


def owner_change(row: FromBundle, source: BundleSource) -> FieldChange | None:
    """Returns the change to report if the bundle becomes the owner of the object."""
    relation = relation_of(row, source)
    was = (
        "orphaned"
        if relation is OwnerRelation.RETURNED
        else owner_text(row.managed_by, row.bundle_path)
    )
    owner = owner_text(source.provider, source.path)
    if relation in (OwnerRelation.HELD, OwnerRelation.LEFT) or was == owner:
        return None
    return FieldChange(name=MANAGED_BY, from_=was, to=owner)


def expect_owned(path: str, row: FromBundle, source: BundleSource, names: Sequence[str]) -> None:
    """Refuses the change of settings of an object that stays with its owner.

    `names` are the changed settings.

    Raises:
        Refused bundle_conflict.
    """
    if not names or relation_of(row, source) is not OwnerRelation.LEFT:
        return
    owner = "people edit it"
    if row.managed_by:
        owner = f"the bundle {name_of(row.bundle_path)} manages it"
    changed = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    how = "take it over with take_over (--take-over)"
    raise Refused(CONFLICT, path, f"{owner}, and {changed} would change: {how}")


def match(
    kind: str,
    rows: Sequence[M],
    entries: Mapping[str, MonitorEntry] | Mapping[str, ServiceEntry],
    provider: str,
) -> dict[str, M]:
    """Returns existing objects: by uid of the provider, otherwise by slug.

    Raises:
        Refused bundle_conflict if another provider has the object, or two entries name it; invalid
        if the slug differs.
    """
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


def match_named(
    section: str, rows: Sequence[N], names: Mapping[str, str], provider: str
) -> dict[str, N]:
    """Returns existing objects: by uid of the provider, otherwise by name if people own them.

    `rows` are in the order of their ids, and `names` are those of the entries by uid. Several
    entries of one name are as many objects of people, in order.

    Raises:
        Refused bundle_conflict if another provider has the only object of the name, or if it is
        open which object of people an entry means.
    """
    by_uid = {one.bundle_uid: one for one in rows if one.managed_by == provider}
    found = {uid: by_uid[uid] for uid in names if uid in by_uid}
    wanted: dict[str, list[str]] = {}
    for uid, name in names.items():
        if uid not in found:
            wanted.setdefault(name, []).append(uid)
    for name, uids in wanted.items():
        free = [one for one in rows if one.name == name and not one.managed_by]
        if free and len(free) != len(uids):
            called = _called(section, name)
            rule = f"{called} is that of {len(free)} objects: make it different for each"
            raise Refused(CONFLICT, f"{section}.{uids[0]}", rule)
        others = [one for one in rows if one.name == name and one.managed_by not in ("", provider)]
        if not free and others:
            whose = f"{others[0].managed_by}, as {others[0].bundle_uid}"
            rule = f"{_called(section, name)} is taken by {whose}"
            raise Refused(CONFLICT, f"{section}.{uids[0]}", rule)
        found.update(zip(uids, free, strict=False))
    return found


def _called(section: str, name: str) -> str:
    """Returns the name for an error. Editors read errors, and a URL can contain a credential."""
    return "the URL" if section == "webhooks" else f"the name {name[:64]!r}"


def left_out(
    kind: Kind, rows: Sequence[F], entries: Collection[str], source: BundleSource
) -> dict[str, F]:
    """Returns objects that the file named before, and that no file of the provider names now."""
    return {
        one.bundle_uid: one
        for one in rows
        if one.managed_by == source.provider
        and one.bundle_uid is not None
        and one.bundle_path == source.path
        and one.orphaned_at is None
        and one.bundle_uid not in entries
        and (kind, one.bundle_uid) not in source.kept
    }


def marks_of(
    entries: Mapping[str, UUID],
    standing: Mapping[str, FromBundle],
    orphans: Mapping[str, UUID],
    source: BundleSource,
    now: Instant,
) -> list[OwnershipMark]:
    """Returns the marks to write. `entries` and `orphans` are ids by uid in the bundle."""
    marks: list[OwnershipMark] = []
    for uid, own in entries.items():
        row = standing.get(uid)
        if row is None or relation_of(row, source) in (OwnerRelation.RETURNED, OwnerRelation.TAKEN):
            marks.append(OwnershipMark(own, source.provider, uid, source.path))
    for uid, own in orphans.items():
        marks.append(OwnershipMark(own, source.provider, uid, source.path, now))
    return marks


def exported(rows: Iterable[M]) -> dict[str, M]:
    """Returns the objects of an export by uid: those of people, and of all bundles of the API.

    Without a uid, it is the slug if no object of the API has that uid. An orphan keeps its uid,
    since an entry of that uid would be the orphan again.
    """
    all_rows = list(rows)
    taken = {one.bundle_uid for one in all_rows if one.bundle_uid and one.managed_by == API}
    found: dict[str, M] = {}
    for one in all_rows:
        if one.managed_by not in ("", API) or one.orphaned_at is not None:
            continue
        uid = one.bundle_uid or free_slug(one.slug, taken)
        taken.add(uid)
        found[uid] = one
    return found


def exported_named(rows: Iterable[N], otherwise: str) -> dict[str, N]:
    """Returns the objects of an export by uid as `exported`, in the order of their ids.

    `otherwise` is the uid of an object whose name has no letters for one.
    """
    all_rows = sorted(rows, key=lambda one: one.id)
    taken = {one.bundle_uid for one in all_rows if one.bundle_uid and one.managed_by == API}
    found: dict[str, N] = {}
    for one in all_rows:
        if one.managed_by not in ("", API) or one.orphaned_at is not None:
            continue
        uid = one.bundle_uid or free_slug(slug_of(one.name, otherwise), taken)
        taken.add(uid)
        found[uid] = one
    return found


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
