"""Static files of the console, cached permanently under the version in their URL."""

from typing import Final

import msgspec

from ...storage.accounts.rules.access import Need, Permission
from ..ui.form_routes import page_route
from ..wire.errors import Problem
from ..wire.etags import is_known
from ..wire.route import Request, Response
from .render import static_file

_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "public, no-cache"


class VersionQuery(msgspec.Struct, frozen=True):
    v: str = ""


async def read(ask: Request) -> Response:
    found = static_file(ask.words["file"])
    if found is None:
        raise Problem("not_found")
    data, content_type, version = found
    tag = f'"{version}"'
    headers = {
        "ETag": tag,
        # Under another version the bytes can be newer than the page, so they must not be cached.
        "Cache-Control": _FOR_GOOD if ask.query.v == version else _ASK_AGAIN,
    }
    if is_known(ask.headers, tag):
        return Response(status=304, headers=headers)
    return Response(body=data, headers=headers, content_type=content_type)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/static/{file}",
        action=Permission(Need.NOBODY),
        handler=read,
        summary="A style sheet, a script or a picture of the console.",
        query=VersionQuery,
    ),
)
