"""Webhooks of an organization, for its admins: add, test, enable, disable and delete.

Only the response to a create contains the secret that signs the deliveries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.queries.visible_projects import select_visible_projects
from ....storage.core.refusal import Refused
from ....storage.notifications.rules.webhook import URL_LONGEST
from ....storage.notifications.transactions.edit_webhooks import EDIT
from ...ui.bundle_notice import MANAGED_SAID
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, uuid_in, value_of
from ...ui.formatting import count
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..routes import webhooks as api
from ..schemas.notifications import CreateWebhook, ToggleEnabled, Webhook

_SAID: Final = {
    "webhook_quota": "The organization has the maximum number of webhooks.",
    "encryption_key_missing": "Secrets need security.encryption_key.",
}
_LABELS: Final = {"url": "URL", "secret": "Secret", "project_id": "Scope"}
_DONE: Final = {
    "enabled": "The webhook was enabled.",
    "disabled": "The webhook was disabled.",
    "deleted": "The webhook was deleted.",
    "managed": MANAGED_SAID,
    "gone": "The webhook no longer exists. Nothing was changed.",
}


@dataclass(frozen=True, slots=True)
class WebhookItem:
    uid: UUID
    url: str
    place: str
    maker: str
    enabled: bool
    # A bundle manages it.
    is_fixed: bool = False


@dataclass(frozen=True, slots=True)
class WebhookResult:
    """Message above the list: the result of a test, or the secret of a new webhook."""

    text: str = ""
    is_wrong: bool = False
    secret: str = ""
    url: str = ""


class WebhookQuery(msgspec.Struct, frozen=True):
    """`show` is the step: empty for the list, new or delete. `uid` names the webhook."""

    show: str = ""
    uid: str = ""
    done: str = ""


async def render_webhooks(ask: Request) -> Response:
    query = ask.query
    if query.show == "new":
        return await _page(ask, "new")
    if query.show == "delete":
        return await _page(ask, "delete", uid=uuid_in(query.uid))
    return await _page(ask, "", done=_DONE.get(query.done, ""))


async def submit_webhooks(ask: Request) -> Response:
    """Calls the API handler of the button."""
    verb = value_of(ask, "act")
    try:
        return await _apply(ask, verb)
    except Refused as refused:
        if refused.code == "not_found":
            return redirect(f"{_path(ask)}?done=gone")
        if refused.code == "managed_by_file":
            return redirect(f"{_path(ask)}?done=managed")
        if verb != "add" or refused.code == "forbidden":
            raise
        label = _LABELS.get(refused.field, "The form")
        said = _SAID.get(refused.code) or f"{label}: {refused.message or refused.code}."
        return await _page(ask, "new", error=said)


async def _apply(ask: Request, verb: str) -> Response:
    if verb == "add":
        made: Webhook = await api.create(replace(ask, body=_new_webhook(ask)))
        assert isinstance(made.secret, str), "a create returns the secret"
        return await _page(ask, "", said=WebhookResult(secret=made.secret, url=made.url))
    about = await _about(ask)
    match verb:
        case "enable" | "disable":
            await api.update(replace(about, body=ToggleEnabled(enabled=verb == "enable")))
            return redirect(f"{_path(ask)}?done={verb}d")
        case "delete":
            await api.delete(about)
            return redirect(f"{_path(ask)}?done=deleted")
        case "test":
            tested = await api.test(about)
            why = f": {tested.reason}" if isinstance(tested.reason, str) else ""
            text = "The test was delivered." if tested.ok else f"The test failed{why}."
            return await _page(ask, "", said=WebhookResult(text, is_wrong=not tested.ok))
        case _:
            raise Problem("Unknown action")


async def _about(ask: Request) -> Request:
    """Returns the request for the webhook of the form, which must be of this organization."""
    uid = uuid_given(value_of(ask, "uid"))
    if uid not in {one.id for one in await api.list_webhooks(ask)}:
        raise Refused("not_found")
    return replace(ask, ids={**ask.ids, "webhookID": uid})


def _new_webhook(ask: Request) -> CreateWebhook:
    project, secret = value_of(ask, "project"), value_of(ask, "secret")
    if len(secret) > 4_096:
        raise Refused("invalid", "secret", "is too long")
    if len(stripped(ask, "url")) > URL_LONGEST:
        raise Refused("invalid", "url", "is too long")
    return CreateWebhook(
        url=stripped(ask, "url"),
        secret=secret or msgspec.UNSET,
        project_id=uuid_given(project) if project else msgspec.UNSET,
    )


def _path(ask: Request) -> str:
    return f"/organizations/{ask.ids['orgID']}/webhooks"


async def _page(
    ask: Request,
    what: str,
    *,
    uid: UUID | None = None,
    said: WebhookResult = WebhookResult(),
    error: str = "",
    done: str = "",
) -> Response:
    async with ask.context.pool.transaction("console_webhooks", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
        projects = await select_visible_projects(tx, ask.who, org_of(ask))
    assert organization is not None, "its scope was found"
    places = {row.uid: row.name for row in projects}
    found = [_item(one, places) for one in await api.list_webhooks(ask)]
    chosen = next((one for one in found if one.uid == uid), None)
    if uid is not None and chosen is None:
        raise Problem("not_found")
    return page(
        "notifications/console/webhook_list.html",
        status=400 if error else 200,
        frame=await outer_frame_of(ask, organization=ask.ids["orgID"]),
        path=_path(ask),
        organization=organization.name,
        what=what,
        webhooks=found,
        caption=count(len(found), "webhook"),
        chosen=chosen,
        places=places,
        said=said,
        error=error,
        done=done,
        typed={"url": value_of(ask, "url"), "project": value_of(ask, "project")},
    )


def _item(one: Webhook, places: Mapping[UUID, str]) -> WebhookItem:
    project = one.project_id
    return WebhookItem(
        one.id,
        one.url,
        places.get(project, "a project") if isinstance(project, UUID) else "all projects",
        one.created_by_email if isinstance(one.created_by_email, str) else "a deleted user",
        one.enabled,
        isinstance(one.managed_by, str),
    )


PATH: Final = "/organizations/{orgID}/webhooks"
_IN_ORG: Final = ("organization", "orgID")

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=render_webhooks,
        summary="Webhooks of an organization.",
        query=WebhookQuery,
    ),
    page_route(
        method="POST",
        path=PATH,
        action=EDIT,
        scope=_IN_ORG,
        handler=submit_webhooks,
        summary="Add, test, enable, disable or delete a webhook.",
    ),
)
