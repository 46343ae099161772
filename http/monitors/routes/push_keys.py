"""Push key of a project: its URLs name a push monitor by its slug."""

from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.push_keys import select_push_key
from ....storage.monitors.transactions.edit_push_key import (
    EDIT,
    allow_new_monitors,
    delete_push_key,
    open_push_key,
    renew_push_key,
)
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of, project_of
from ..schemas.push import PushKey, PushKeyRequest
from .push import PING_PATH

_PATH: Final = "/api/v1/projects/{projectID}/push-key"


async def show_push_key(ask: Request) -> PushKey:
    async with ask.context.pool.transaction("show_push_key", read_only=True) as tx:
        return await push_key_json(ask, tx)


async def push_key_json(ask: Request, tx: Tx) -> PushKey:
    """Returns the key with its URL. Raises Refused not_found."""
    row = await select_push_key(tx, org_of(ask), project_of(ask))
    if row is None:
        raise Refused("not_found")
    token = open_push_key(row, ask.context.keyring)
    return PushKey(
        push_key=known(token),
        url=known(f"{ask.base_url}{PING_PATH}{token}/" if token else None),
        creates_monitors=row.creates_monitors,
        created_at=to_text(row.created_at),
    )


async def renew(ask: Request) -> PushKey:
    async with ask.context.pool.transaction("renew_push_key") as tx:
        await renew_push_key(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.context.keyring,
            creates=ask.body.creates_monitors,
        )
        made = await push_key_json(ask, tx)
    ask.context.push_targets.clear()
    return made


async def change(ask: Request) -> PushKey:
    async with ask.context.pool.transaction("change_push_key") as tx:
        await allow_new_monitors(
            tx, ask.who, ask.ids["projectID"], creates=ask.body.creates_monitors
        )
        return await push_key_json(ask, tx)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_push_key") as tx:
        await delete_push_key(tx, ask.who, ask.ids["projectID"])
    ask.context.push_targets.clear()


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    Route(
        method="GET",
        path=_PATH,
        action=Permission(Need.EDITOR),
        scope=_PROJECT,
        handler=show_push_key,
        summary="The push key of a project, with which a URL names a push monitor by its slug.",
        tag="push",
        answer=PushKey,
    ),
    Route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=renew,
        summary="Create a push key in place of an earlier one.",
        tag="push",
        body=PushKeyRequest,
        answer=PushKey,
        status=201,
    ),
    Route(
        method="PATCH",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=change,
        summary="Set whether the first push to an unknown slug creates a monitor.",
        tag="push",
        body=PushKeyRequest,
        answer=PushKey,
    ),
    Route(
        method="DELETE",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=delete,
        summary="Delete the push key.",
        tag="push",
        status=204,
    ),
)
