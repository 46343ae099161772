"""Secrets screen of a project. Members see names and uses; editors write secrets.

A submitted value is never rendered again, also not with the rest of the form.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.push_keys import select_push_key
from ....storage.monitors.queries.secret_list import ListedSecret, select_secrets
from ....storage.monitors.rules.secret import SECRETS_OF_PROJECT_MOST, VALUE_BYTES_MOST
from ....storage.monitors.transactions.edit_secrets import EDIT
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import Moment, count, moment
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import push_keys as keys
from ..routes import secrets as api
from ..schemas.push import PushKey, PushKeyRequest
from ..schemas.secrets import CreateSecretRequest, UpdateSecretRequest

_SAID: Final = {
    "secret_exists": "This name is in use. Replace the value of the secret instead.",
    "secret_quota": f"Limit: {SECRETS_OF_PROJECT_MOST} secrets per project.",
    "secret_in_use": "Monitors use this secret. Change them first.",
    "encryption_key_missing": "Secrets and push keys need security.encryption_key.",
    "not_found": "It was deleted.",
}


@dataclass(frozen=True, slots=True)
class SecretItem:
    name: str
    used: str
    in_use: bool
    made: Moment
    replaced: Moment | None


async def render_secrets(ask: Request) -> Response:
    return await _render(ask)


async def submit_secrets(ask: Request) -> Response:
    """Calls the API handler of the button."""
    # Browsers send line breaks as CRLF.
    name, value = stripped(ask, "name"), value_of(ask, "value").replace("\r\n", "\n")
    try:
        match value_of(ask, "act"):
            case "add":
                await api.create(replace(ask, body=CreateSecretRequest(name=name, value=value)))
            case "replace":
                body = UpdateSecretRequest(value=value)
                await api.update(replace(ask, words={"name": name}, body=body))
            case "delete":
                await api.delete(replace(ask, words={"name": name}))
            case "push_key":
                creates = value_of(ask, "creates") == "true"
                await keys.renew(replace(ask, body=PushKeyRequest(creates_monitors=creates)))
            case "allow" | "forbid" as word:
                body_of_key = PushKeyRequest(creates_monitors=word == "allow")
                await keys.change(replace(ask, body=body_of_key))
            case "delete_push_key":
                await keys.delete(ask)
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        said = _SAID.get(refused.code) or f"{refused.field.capitalize()} {refused.message}."
        return await _render(ask, typed=name, error=said)
    return redirect(f"/projects/{ask.ids['projectID']}/secrets")


async def _render(ask: Request, *, typed: str = "", error: str = "") -> Response:
    async with ask.context.pool.transaction("console_secrets", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_secrets(tx, org_of(ask), project_of(ask))
        key = await _push_key(ask, tx) if frame.may_write else None
        now = tx.now
    is_new = typed not in {row.name for row in rows}
    return page(
        "monitors/console/secrets.html",
        status=400 if error else 200,
        frame=frame,
        lines=_lines(rows, now),
        first=_summary(rows),
        typed=typed if is_new else "",
        error=error,
        bytes_most=VALUE_BYTES_MOST,
        push_key=key,
        push_url=key.url if key is not None and key.url is not UNSET else "",
    )


async def _push_key(ask: Request, tx: Tx) -> PushKey | None:
    row = await select_push_key(tx, org_of(ask), project_of(ask))
    return None if row is None else await keys.push_key_json(ask, tx)


def _summary(rows: Sequence[ListedSecret]) -> str:
    if not rows:
        return "No secrets yet"
    unused = sum(1 for row in rows if not row.uses)
    if not unused:
        return f"{count(len(rows), 'secret')}, all in use"
    return f"{count(len(rows), 'secret')}, {unused} that nothing refers to"


def _used_by(row: ListedSecret) -> str:
    parts = [count(row.used_by, "monitor")] if row.used_by else []
    parts += [count(row.used_by_channels, "channel")] if row.used_by_channels else []
    parts += [count(row.used_by_webhooks, "webhook")] if row.used_by_webhooks else []
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "nothing"


def _lines(rows: Sequence[ListedSecret], now: Instant) -> list[SecretItem]:
    return [
        SecretItem(
            row.name,
            _used_by(row),
            row.uses > 0,
            moment(row.created_at, now),
            None if row.rotated_at is None else moment(row.rotated_at, now),
        )
        for row in rows
    ]


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/secrets",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_secrets,
        summary="A project's secrets.",
    ),
    page_route(
        method="POST",
        path="/projects/{projectID}/secrets",
        action=EDIT,
        scope=_PROJECT,
        handler=submit_secrets,
        summary="Add, replace or delete a secret.",
    ),
)
