"""The routes of screens: a form is shown by GET, and sent by POST to where it was shown."""

import msgspec

from ...storage.accounts.rules.access import Need, Permission
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
) -> Route:
    """Returns a route whose answer is a page; the body of a POST is a form."""
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
    )


def form_route(
    method: str,
    path: str,
    scope: tuple[str, str] | None,
    handler: Handler,
    summary: str,
    query: type[msgspec.Struct] = NoQuery,
    *,
    need: Need = Need.EDITOR,
) -> Route:
    """An editor's where nobody else is named."""
    return page_route(
        method=method,
        path=path,
        action=Permission(need),
        scope=scope,
        handler=handler,
        summary=summary,
        query=query,
    )


def admin_route(
    method: str,
    path: str,
    handler: Handler,
    summary: str,
    query: type[msgspec.Struct] = NoQuery,
) -> Route:
    """Of whoever runs the installation; it stands in no project."""
    return form_route(method, path, None, handler, summary, query, need=Need.GLOBAL_ADMIN)
