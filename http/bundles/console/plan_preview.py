"""Plan of a bundle in words: its changes by object and field, without secrets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from ....probes.check.monitor_spec import is_credential_header
from ....storage.bundles.rows import RevisionRow
from ....storage.bundles.rules.bundle_diff import (
    API,
    MANAGED_BY,
    BundleAction,
    BundleChange,
    ChangeCounts,
    FieldChange,
    counts_of,
    differences,
    is_taken_over,
    revision_of,
)
from ....storage.bundles.rules.bundle_owner import DEFAULT_NAME, name_of
from ....storage.bundles.transactions.stored_changes import DOCUMENTS
from ...ui.formatting import count, number

# Changes of a plan that are shown; the command line prints all.
CHANGES_MOST: Final = 500
FIELDS_MOST: Final = 50
VALUE_LONGEST: Final = 160
HIDDEN: Final = "(not shown)"
# Words for a plan and for its application.
_WORDS: Final = {
    BundleAction.CREATE: ("to add", "added"),
    BundleAction.UPDATE: ("to change", "changed"),
    BundleAction.ORPHAN: ("to disable", "disabled"),
}
# A stored revision has the number of orphans of all kinds.
_ORPHANED: Final = "orphaned"
# An orphan of another kind keeps its settings, since what refers to it would page nobody.
_DISABLED_KINDS: Final = ("monitor", "service", "maintenance_series")
_DELETED_KINDS: Final = ("webhook",)
_LEFT: Final = ("to leave to people", "left to people")
_DELETED: Final = ("to delete", "deleted")
_TAKEN: Final = ("to take over", "taken over")
_ACTIONS: Final = {
    BundleAction.CREATE: "add",
    BundleAction.UPDATE: "change",
    BundleAction.ORPHAN: "disable",
    BundleAction.UNCHANGED: "take over",
}


@dataclass(frozen=True, slots=True)
class FieldChangeItem:
    """Change of a field. `before` or `after` is None if the field is absent there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangePlanItem:
    act: str
    words: str
    kind: str
    uid: str
    fields: list[FieldChangeItem]


@dataclass(frozen=True, slots=True)
class BundlePreview:
    """A plan, or the result of applying one. `disabled` and `deleted` count objects.

    Other objects that the bundle no longer contains are left as they are.
    """

    is_applied: bool
    first: str
    lines: list[ChangePlanItem]
    more: int
    disabled: int
    unchanged: int
    revision: str
    # True if the changes that are not shown are not stored.
    is_cut: bool = False
    deleted: int = 0

    @property
    def removed(self) -> int:
        """Number of objects that stop to work, which a person confirms."""
        return self.disabled + self.deleted

    @property
    def removal(self) -> str:
        """What is confirmed: `1 object will be disabled and 1 webhook deleted`."""
        parts = [f"{count(self.disabled, 'object')} will be disabled"] if self.disabled else []
        be = "" if parts else " will be"
        parts += [f"{count(self.deleted, 'webhook')}{be} deleted"] if self.deleted else []
        return " and ".join(parts)


def preview_of(
    path: str, changes: Sequence[BundleChange], *, is_applied: bool = False
) -> BundlePreview:
    counts = counts_of(changes)
    orphans = [one.kind for one in changes if one.action is BundleAction.ORPHAN]
    disabled = sum(kind in _DISABLED_KINDS for kind in orphans)
    deleted = sum(kind in _DELETED_KINDS for kind in orphans)
    left = len(orphans) - disabled - deleted
    shown = replace(counts, orphaned=disabled)
    said = summary_of(shown, left=left, deleted=deleted, is_applied=is_applied)
    first = f"{'Applied' if is_applied else 'Plan'}: {said}"
    told = [one for one in changes if one.action in _WORDS or is_taken_over(one)]
    return BundlePreview(
        is_applied=is_applied,
        first=first,
        lines=[_item(one) for one in told[:CHANGES_MOST]],
        more=max(len(told) - CHANGES_MOST, 0),
        disabled=disabled,
        deleted=deleted,
        unchanged=counts.unchanged,
        revision=revision_of(path, changes),
    )


def preview_of_revision(row: RevisionRow, changes: Sequence[BundleChange]) -> BundlePreview:
    """Returns the differences that a revision applied."""
    counts = ChangeCounts(row.created, row.updated, row.orphaned, row.unchanged, row.taken_over)
    summary = summary_of(counts, is_applied=True)
    all_of = max(counts.created + counts.updated + counts.orphaned, len(changes))
    return BundlePreview(
        is_applied=True,
        first=f"Revision {row.revision} of {name_of(row.path)}: {summary}",
        lines=[_item(one) for one in changes],
        more=all_of - len(changes),
        disabled=counts.orphaned,
        unchanged=counts.unchanged,
        revision="",
        is_cut=True,
    )


def action_words(action: str) -> str:
    return _ACTIONS[BundleAction(action)]


def summary_of(
    counts: ChangeCounts, *, is_applied: bool, left: int | None = None, deleted: int = 0
) -> str:
    """Returns the numbers in words.

    `left` counts orphans that keep their settings, and `deleted` those that are deleted; None if
    `counts` has all orphans.
    """
    at = 1 if is_applied else 0
    numbers = (
        (counts.created, _WORDS[BundleAction.CREATE][at]),
        (counts.updated, _WORDS[BundleAction.UPDATE][at]),
        (counts.orphaned, _ORPHANED if left is None else _WORDS[BundleAction.ORPHAN][at]),
        (left or 0, _LEFT[at]),
        (deleted, _DELETED[at]),
        (counts.taken_over, _TAKEN[at]),
    )
    return ", ".join(f"{number(many)} {words}" for many, words in numbers if many) or "no changes"


def _item(change: BundleChange) -> ChangePlanItem:
    fields = [] if change.action is BundleAction.CREATE else shown_fields(change.fields)
    return ChangePlanItem(
        act=change.action.value,
        words=_words_of(change),
        kind=change.kind.replace("_", " "),
        uid=change.uid,
        fields=fields,
    )


def _words_of(change: BundleChange) -> str:
    if change.action is BundleAction.ORPHAN and change.kind not in _DISABLED_KINDS:
        return "delete" if change.kind in _DELETED_KINDS else "leave"
    return _ACTIONS[change.action]


def shown_fields(fields: Sequence[FieldChange]) -> list[FieldChangeItem]:
    """Returns the changes in words, with an item for each entry of a mapping, at most FIELDS_MOST.

    The contents of documents and of credential headers are not shown.
    """
    return [_field(one) for field in fields for one in _leaves(field)][:FIELDS_MOST]


def _leaves(field: FieldChange) -> Iterator[FieldChange]:
    one, other = field.from_, field.to
    name = field.name.rpartition(".")[2]
    if name in DOCUMENTS or not (isinstance(one, Mapping) or isinstance(other, Mapping)):
        yield field
        return
    if not all(isinstance(side, Mapping) or side is msgspec.UNSET for side in (one, other)):
        yield field
        return
    before, after = ({} if side is msgspec.UNSET else side for side in (one, other))
    for inner in differences({"in": before}, {"in": after}):
        path = f"{field.name}.{inner.name.removeprefix('in.')}"
        yield from _leaves(FieldChange(name=path, from_=inner.from_, to=inner.to))


def _field(field: FieldChange) -> FieldChangeItem:
    name = field.name.rpartition(".")[2]
    if field.name == MANAGED_BY:
        before, after = (_owner_words(str(value)) for value in (field.from_, field.to))
        return FieldChangeItem("managed by", before, after)
    old, new = field.from_, field.to
    # A mapping is shown by its entries. One that is replaced as a whole can contain credentials.
    is_whole = isinstance(old, Mapping) or isinstance(new, Mapping)
    is_hidden = is_whole or name in DOCUMENTS or is_credential_header(name)
    if isinstance(old, list) and isinstance(new, list):
        old, new = _without_common(old, new)
    return FieldChangeItem(
        field.name, _value(old, is_hidden=is_hidden), _value(new, is_hidden=is_hidden)
    )


def _without_common(before: list[Any], after: list[Any]) -> list[Any]:
    """Returns only the removed and the added entries; both lists whole if their order changes."""
    if [one for one in before if one in after] != [one for one in after if one in before]:
        return [before, after]
    removed = [one for one in before if one not in after]
    added = [one for one in after if one not in before]
    return [removed or msgspec.UNSET, added or msgspec.UNSET]


def _owner_words(owner: str) -> str:
    """Returns the owner of an object in words, as `owner_text` spells it."""
    if owner in ("", "orphaned"):
        return "people" if owner == "" else "no bundle (disabled before)"
    provider, _, name = owner.partition("/")
    return f"the bundle {name or DEFAULT_NAME}" if provider == API else f"the provider {provider}"


def _value(value: Any, *, is_hidden: bool) -> str | None:
    if value is msgspec.UNSET:
        return None
    if is_hidden:
        return HIDDEN
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_LONGEST else f"{text[:VALUE_LONGEST]}…"
