"""Routes of screens. GET shows a form, and POST to the same path submits it."""

import msgspec

from ...storage.accounts.rules.access import Permission
from ..wire.route import Handler, NoQuery, Route


def page_route(
    *,
    method: str,
    path: str,
    action: Permission,
    handler: Handler,
    summary: str,
    scope: tuple[str, str] | None = None,
    query: type[msgspec.Struct] = NoQuery,
    short: bool = False,
) -> Route:
    """Returns a route whose response is HTML. The body of a POST is a form."""
    return Route(
        method=method,
        path=path,
        action=action,
        scope=scope,
        handler=handler,
        summary=summary,
        query=query,
        form=method == "POST",
        page=True,
        in_document=False,
        short=short,
    )


def form_route(
    method: str,
    path: str,
    scope: tuple[str, str] | None,
    handler: Handler,
    summary: str,
    query: type[msgspec.Struct] = NoQuery,
    *,
    action: Permission,
) -> Route:
    """Returns a route of a form. `action` is the permission that its transaction enforces."""
    return page_route(
        method=method,
        path=path,
        action=action,
        scope=scope,
        handler=handler,
        summary=summary,
        query=query,
    )
