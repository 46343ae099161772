"""Notifications of all processes. Correctness does not depend on them, only latency."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from .pools import Tx

EDITED: Final = "leadline_edited"
# Triggers of the tables announce work on it, with its kind as the payload.
WORK: Final = "leadline_work"
# Payload for work that is due later: the receiver reads its instant.
AGAIN: Final = ""
_TELL: Final = "select pg_notify(%(channel)s, %(payload)s)"
# Projects of one notification: a payload has less than 8 000 bytes.
EDITED_MOST: Final = 50
_EDITED: Final = """
with edited as materialized (
  select json_build_object('process', %(process)s::uuid, 'projects', coalesce(
    json_agg(json_build_array(p.org, p.id, p.uid)), '[]'::json))::text as payload
  from unnest(%(orgs)s::int[], %(ids)s::int[]) k(org, id)
    join projects p on p.org = k.org and p.id = k.id)
select pg_notify(%(channel)s, payload), payload from edited
"""


class EditedProject(msgspec.Struct, frozen=True, array_like=True):
    """Project in which something was written."""

    org: int
    id: int
    uid: UUID


class EditNotice(msgspec.Struct, frozen=True):
    """Payload of a notification: the process that made the writes, and their projects."""

    process: UUID
    projects: list[EditedProject]


async def notify_edited(
    tx: Tx, process: UUID, projects: Collection[tuple[int, int]]
) -> list[EditedProject]:
    """Announces writes in at most EDITED_MOST projects, by (organization, id), or outside of them.

    Returns the projects that still exist.
    """
    assert len(projects) <= EDITED_MOST
    ordered: Sequence[tuple[int, int]] = sorted(projects)
    row = await tx.row(
        _EDITED,
        channel=EDITED,
        process=process,
        orgs=[org for org, _ in ordered],
        ids=[key for _, key in ordered],
    )
    assert row is not None, "an aggregate has a row"
    return msgspec.json.decode(row[1], type=EditNotice).projects


def read_edits(payload: str) -> EditNotice | None:
    """Returns the content of a notification, None for that of another version."""
    try:
        return msgspec.json.decode(payload, type=EditNotice)
    except msgspec.MsgspecError:
        return None


async def notify_work(tx: Tx, work: str) -> None:
    """Announces work that no trigger announces."""
    await tx.execute(_TELL, channel=WORK, payload=work)
