"""Push keys: by project for editors, and by token for pushes."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

_OF_PROJECT = """
select uid, token_ciphertext, creates_monitors, created_at from push_keys
where org = %(org)s and project = %(project)s
"""
_BY_TOKEN = """
select k.org, k.project, p.uid, k.creates_monitors
from push_keys k join projects p on p.org = k.org and p.id = k.project
where k.token_hash = %(hash)s
"""


class PushKeyRow(msgspec.Struct, frozen=True):
    uid: UUID
    token_ciphertext: bytes
    creates_monitors: bool
    created_at: Instant


class PushKeyHome(msgspec.Struct, frozen=True):
    """Project that a push key belongs to."""

    org: int
    project: int
    project_uid: UUID
    creates_monitors: bool


async def select_push_key(tx: Tx, org: int, project: int) -> PushKeyRow | None:
    return await tx.one(PushKeyRow, _OF_PROJECT, org=org, project=project)


async def select_push_key_home(tx: Tx, token_hash: bytes) -> PushKeyHome | None:
    return await tx.one(PushKeyHome, _BY_TOKEN, hash=token_hash)
