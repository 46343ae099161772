"""Rows of actions on many monitors."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from ..core.instant import Instant
from .rules import BulkAct


class BulkRow(msgspec.Struct, frozen=True):
    """An action. `arguments` is a JSON object of texts."""

    uid: UUID
    org: int
    project: int
    project_uid: UUID
    act: str
    arguments: str
    stopped_by: str | None
    started_by: UUID | None

    @property
    def values(self) -> Mapping[str, str]:
        found: dict[str, str] = msgspec.json.decode(self.arguments, type=dict[str, str])
        return found

    @property
    def kind(self) -> BulkAct:
        return BulkAct(self.act)


class BulkObject(msgspec.Struct, frozen=True):
    """`expected` is the revision that the monitor needs; None permits every revision."""

    place: int
    uid: UUID
    name: str
    expected: int | None = None


class BulkObjectResult(msgspec.Struct, frozen=True):
    """Object of an action with its `ObjectState`; `code` and `rule` only if it refused."""

    place: int
    uid: UUID
    name: str
    state: str
    code: str | None
    rule: str | None


class BulkChange(msgspec.Struct, frozen=True):
    """What the undo of a change needs: a monitor with its new revision, or a window without."""

    uid: UUID
    revision: int | None


class BulkFailure(msgspec.Struct, frozen=True):
    """Object that was not changed, with the code and the rule of the refusal."""

    name: str
    code: str
    rule: str


class BulkReport(msgspec.Struct, frozen=True):
    """State of an action. `counts` are objects by `ObjectState`, `failures` the first ones.

    `error` states why the action ended before its last object. `undone_by` is its undo.
    """

    row: BulkRow
    counts: Mapping[str, int]
    failures: Sequence[BulkFailure]
    created_at: Instant
    finished_at: Instant | None
    error: str | None
    undone_by: UUID | None
