"""Rendering of templates to HTML: always escaped, without inline code.

The Content-Security-Policy allows no other host. An undefined template variable raises an error, so
that tests find it.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from ..wire.own_paths import with_base_path
from ..wire.route import Response
from .formatting import number
from .shown_time import hours_shown, zone_name, zone_word

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    # With no-referrer, browsers send `Origin: null` with forms. Over plain HTTP, only the Origin
    # distinguishes own forms from those of another site.
    "Referrer-Policy": "same-origin",
}
HTML: Final = "text/html; charset=utf-8"
_TEMPLATES: Final = Path(__file__).parents[1]


@cache
def environment_of(folder: Path) -> Environment:
    """Returns the environment of the templates in a folder."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (static_url, zone_name, zone_word, hours_shown)
    names = ("static", "zone_name", "zone_word", "hours_shown")
    environment.globals.update(zip(names, shown, strict=True))
    environment.filters["number"] = number
    return environment


def render(template: str, **values: Any) -> str:
    return with_base_path(environment_of(_TEMPLATES).get_template(template).render(**values))


def page(template: str, *, status: int = 200, **values: Any) -> Response:
    """Returns a whole page with the common headers, and the cookie that its shell sets."""
    body = render(template, **values).encode()
    cookie = getattr(values.get("frame"), "remember", "")
    headers = {**HEADERS, "Set-Cookie": cookie} if cookie else HEADERS
    return Response(body=body, status=status, headers=headers, content_type=HTML)


def redirect(to: str, **headers: str) -> Response:
    """Returns 303 after a form, so that a reload does not repeat the POST."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body=b"", status=303, headers={"Location": to, **named}, content_type=HTML)


@cache
def static_file(name: str) -> tuple[bytes, str, str] | None:
    """Returns (bytes, type, version) of a shipped file, None for any other name."""
    path = STATIC / name
    if "/" in name or path.suffix not in TYPES or not path.is_file():
        return None
    data = path.read_bytes()
    return data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:12]


def static_url(name: str) -> str:
    """Returns the URL with the file version, so that browsers can cache it permanently."""
    found = static_file(name)
    assert found is not None, f"no such file: {name}"
    return f"/static/{name}?v={found[2]}"
