"""What a bundle changes of what is there, entry by entry and setting by setting."""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ...core.instant import Instant

# The provider of what is applied over the API; no file provider is called so.
API: Final = "api"
Kind = Literal["monitor", "service"]
# What an entry takes over that people edited, where its settings are told.
MANAGED_BY: Final = "managed_by"


class FromBundle(Protocol):
    """What may come from a bundle: a monitor or a service."""

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
    """Without `from` there was none, without `to` there is none any more."""

    name: str
    from_: Any | UnsetType = UNSET
    to: Any | UnsetType = UNSET


class BundleChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: Kind
    uid: str
    action: BundleAction
    fields: list[FieldChange] = []


class OwnershipMark(msgspec.Struct, frozen=True):
    """From which bundle a monitor or a service comes, by the provider, the uid and the file."""

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
    """Of an entry, in the words of a bundle; `before` None where nothing stands there yet, and
    then `after` needs say only what is worth it. What is only taken over as it is counts as
    unchanged, and is told."""
    if before is None:
        fields = [FieldChange(name=name, to=value) for name, value in after.items()]
        return BundleChange(kind=kind, uid=uid, action=BundleAction.CREATE, fields=fields)
    fields = differences(before, after)
    action = BundleAction.UPDATE if fields else BundleAction.UNCHANGED
    told = fields if taken_over is None else [taken_over, *fields]
    return BundleChange(kind=kind, uid=uid, action=action, fields=told)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """In the order of what is to be; a mapping is told key by key."""
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
    """The uids, each after all of those it refers to, and one that leads back to itself if there
    is any. What is referred to and is no uid of the mapping is passed over."""
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
