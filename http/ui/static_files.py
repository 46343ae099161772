"""Static files of the console, cached permanently under the version in their URL."""

import gzip
from functools import cache
from typing import Final

import msgspec

from ...storage.accounts.rules.access import Need, Permission
from ..ui.form_routes import page_route
from ..wire.content_encoding import takes_gzip
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
    packs = takes_gzip(ask.headers)
    tag = f'"{version}-gzip"' if packs else f'"{version}"'
    headers = {
        "ETag": tag,
        "Vary": "Accept-Encoding",
        # Under another version the bytes can be newer than the page, so caches must revalidate.
        "Cache-Control": _FOR_GOOD if ask.query.v == version else _ASK_AGAIN,
    }
    if is_known(ask.headers, tag):
        return Response(status=304, headers=headers)
    if packs:
        data, headers["Content-Encoding"] = _packed(ask.words["file"]), "gzip"
    return Response(body=data, headers=headers, content_type=content_type)


@cache
def _packed(name: str) -> bytes:
    found = static_file(name)
    assert found is not None, "the caller found it"
    return gzip.compress(found[0], mtime=0)


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
