"""Comparison and write of one section of on-call objects, which have names instead of slugs."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

import msgspec

from ...accounts.queries.object_marks import ObjectMark
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import AccessDecision, Permission, Scope, may
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rows import ObjectRow
from ..rules.bundle import SECTIONS, SINGLE, Bundle
from ..rules.bundle_diff import BundleAction, BundleChange, FieldChange, change_of, is_taken_over
from ..rules.bundle_owner import NamedObject, expect_owned, left_out, marks_of, owner_change
from ..tables.bundle_ownership import put_marks
from .bundle_context import ApplySource, under
from .oncall_entries import brief

R = TypeVar("R", bound=NamedObject)
D = TypeVar("D")
_WRITTEN: Final = frozenset({BundleAction.CREATE, BundleAction.UPDATE})


@dataclass(slots=True)
class ComparedSection(Generic[R, D]):
    """Compared entries of one section, with their drafts. `standing` and `orphans` are by uid."""

    section: str
    drafts: dict[str, D]
    standing: dict[str, R]
    orphans: dict[str, R]
    changes: list[BundleChange] = field(default_factory=list)

    @property
    def acts(self) -> dict[str, BundleAction]:
        return {one.uid: one.action for one in self.changes if one.action in _WRITTEN}

    def path_of(self, uid: str) -> str:
        """Returns the path of an entry for errors. A section of SINGLE is one object."""
        return self.section if self.section in SINGLE else f"{self.section}.{uid}"


def compare_section(
    found: ComparedSection[R, Any],
    bundle: Bundle,
    rows: Sequence[R],
    applied: ApplySource,
    before: Mapping[int, dict[str, Any]],
    after: Mapping[str, dict[str, Any]],
    defaults: Mapping[str, Any],
) -> None:
    """Adds the changes and orphans of a section. `before` are settings by key, `after` by uid."""
    kind = SECTIONS[found.section][0]
    for uid, settings in after.items():
        row = found.standing.get(uid)
        if row is None:
            change = change_of(kind, uid, None, brief(settings, defaults), None)
        else:
            over = owner_change(row, applied)
            change = change_of(kind, uid, before[row.id], settings, over)
            expect_owned(found.path_of(uid), row, applied, [one.name for one in change.fields])
        found.changes.append(change)
    if bundle.states(found.section):
        found.orphans = left_out(kind, rows, after, applied)
    found.changes += [
        BundleChange(kind=kind, uid=uid, action=BundleAction.ORPHAN) for uid in found.orphans
    ]


def object_row(
    marks: Mapping[UUID, ObjectMark], key: int, uid: UUID, name: str, settings: dict[str, Any]
) -> ObjectRow:
    """Returns an object with its key, and with its mark if it has one."""
    mark = {} if uid not in marks else msgspec.structs.asdict(marks[uid])
    return ObjectRow(**{**mark, "id": key, "uid": uid}, name=name, settings=settings)


def with_end(change: BundleChange, field_: str) -> BundleChange:
    """Returns the change of an orphan with its end, as the setting `field_`."""
    if change.action is not BundleAction.ORPHAN:
        return change
    ended = [FieldChange(name=field_, from_=False, to=True)]
    return msgspec.structs.replace(change, fields=ended)


def expect_editor(
    section: ComparedSection[Any, Any],
    home: ProjectRow,
    applied: ApplySource,
    right: Permission,
    edits: str,
    acts: Collection[BundleAction] = _WRITTEN,
) -> None:
    """Refuses the first entry with one of `acts` or a takeover, if the caller has not the right.

    Administrators of the organization have the right, because they edit `edits`.

    Raises:
        Refused invalid with the entry.
    """
    who = applied.inviter or applied.principal
    if may(who, right, Scope(home.org)) is AccessDecision.ALLOWED:
        return
    for one in section.changes:
        if one.action in acts or is_taken_over(one):
            rule = f"must be applied by an administrator of the organization, who edits {edits}"
            raise Refused("invalid", section.path_of(one.uid), rule)


async def write_section(
    tx: Tx,
    org: int,
    section: ComparedSection[R, D],
    order: Sequence[str],
    put: Callable[[str, D, R | None], Awaitable[None]],
    ids: Mapping[str, UUID],
    applied: ApplySource,
    *,
    is_plan: bool,
) -> None:
    """Writes the entries of `order` with `put`, and the marks. `ids` are those of all entries.

    A plan writes no existing row, so that no other transaction waits for it.

    Raises:
        Refused with the faulty entry.
    """
    kind = SECTIONS[section.section][0]
    for uid in order:
        row = section.standing.get(uid)
        with under(section.path_of(uid)):
            if is_plan and row is not None:
                async with tx.undone():
                    await put(uid, section.drafts[uid], row)
            else:
                await put(uid, section.drafts[uid], row)
        applied.progress.wrote(section.acts[uid], kind, uid)
    for uid in section.orphans:
        applied.progress.wrote(BundleAction.ORPHAN, kind, uid)
    if is_plan:
        return
    own = {uid: ids[uid] for uid in section.drafts}
    orphans = {uid: row.uid for uid, row in section.orphans.items()}
    marks = marks_of(own, section.standing, orphans, applied, tx.now)
    await put_marks(tx, kind, org, marks)
