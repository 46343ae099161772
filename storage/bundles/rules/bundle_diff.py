"""Changes of a bundle compared with the project, by entry and setting."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ...core.instant import Instant

# Provider of bundles applied over the API. File providers cannot have this name.
API: Final = "api"
Kind = Literal[
    "person",
    "monitor",
    "service",
    "channel",
    "schedule",
    "escalation_policy",
    "alert_routes",
    "maintenance_series",
    "project_settings",
    "status_page",
    "webhook",
]
# Pseudo-setting that reports the takeover of an entry that users edited.
MANAGED_BY: Final = "managed_by"


class FromBundle(Protocol):
    """Object that can belong to a bundle, such as a monitor."""

    @property
    def managed_by(self) -> str: ...
    @property
    def bundle_uid(self) -> str | None: ...
    @property
    def bundle_path(self) -> str: ...
    @property
    def orphaned_at(self) -> Instant | None: ...


class BundleAction(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    ORPHAN = "orphan"


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Change of a setting. Without `from` it is new, without `to` it is removed."""

    name: str
    from_: Any | UnsetType = UNSET
    to: Any | UnsetType = UNSET


class BundleChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: Kind
    uid: str
    action: BundleAction
    fields: list[FieldChange] = []


class OwnershipMark(msgspec.Struct, frozen=True):
    """Mark of an object that belongs to a bundle: provider, uid and file."""

    uid: UUID
    managed_by: str
    bundle_uid: str
    bundle_path: str
    orphaned_at: Instant | None = None


def change_of(
    kind: Kind,
    uid: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    taken_over: FieldChange | None,
) -> BundleChange:
    """Returns the change of an entry, with settings as in a bundle.

    `before` is None for a new entry; then `after` can omit defaults. An entry that is only taken
    over counts as unchanged, with the takeover in its fields.
    """
    if before is None:
        fields = [FieldChange(name=name, to=value) for name, value in after.items()]
        return BundleChange(kind=kind, uid=uid, action=BundleAction.CREATE, fields=fields)
    fields = differences(before, after)
    action = BundleAction.UPDATE if fields else BundleAction.UNCHANGED
    told = fields if taken_over is None else [taken_over, *fields]
    return BundleChange(kind=kind, uid=uid, action=action, fields=told)


def revision_of(path: str, changes: Sequence[BundleChange]) -> str:
    """Returns the revision of a plan: equal for exactly the same changes by the same bundle.

    `path` is the mark of the bundle, which becomes the owner of new objects.
    """
    ordered = sorted(changes, key=lambda one: (one.kind, one.uid))
    return hashlib.sha256(msgspec.json.encode((path, ordered))).hexdigest()


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """Numbers of entries by action. `taken_over` are those that get the bundle as their owner.

    A taken over entry counts as updated or unchanged too.
    """

    created: int
    updated: int
    orphaned: int
    unchanged: int
    taken_over: int

    @property
    def any_change(self) -> bool:
        return bool(self.created or self.updated or self.orphaned or self.taken_over)


def counts_of(changes: Sequence[BundleChange]) -> ChangeCounts:
    actions = Counter(one.action for one in changes)
    return ChangeCounts(
        created=actions[BundleAction.CREATE],
        updated=actions[BundleAction.UPDATE],
        orphaned=actions[BundleAction.ORPHAN],
        unchanged=actions[BundleAction.UNCHANGED],
        taken_over=sum(is_taken_over(one) for one in changes),
    )


def is_taken_over(change: BundleChange) -> bool:
    """Returns whether the owner of an existing object changes."""
    return any(one.name == MANAGED_BY for one in change.fields)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Returns the changed settings in the order of `after`. Mappings are compared by key."""
    return list(_differences("", before, after))


def _differences(
    path: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[FieldChange]:
    for name in [*after, *(each for each in before if each not in after)]:
        one, other = before.get(name, UNSET), after.get(name, UNSET)
        if one == other and type(one) is type(other):
            continue
        if not path and isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(f"{name}.", one, other)
        else:
            yield FieldChange(name=f"{path}{name}", from_=one, to=other)


def in_order(wanted: Mapping[str, Collection[str]]) -> tuple[list[str], str | None]:
    """Returns the uids, each after those it refers to, and one uid on a cycle, if any.

    References to unknown uids are ignored.
    """
    done: dict[str, bool] = {}
    found: list[str] = []
    for start in wanted:
        waiting = [(start, iter(wanted[start]))] if start not in done else []
        done.setdefault(start, False)
        while waiting:
            uid, rest = waiting[-1]
            for other in rest:
                if other not in wanted:
                    continue
                if other not in done:
                    done[other] = False
                    waiting.append((other, iter(wanted[other])))
                    break
                if not done[other]:
                    return found, other
            else:
                waiting.pop()
                done[uid] = True
                found.append(uid)
    return found, None
