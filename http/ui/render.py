"""Templates become pages: escaped always, nothing inline, and under a policy that allows no other
host. What a template names and nobody gave is a fault of ours, found by its test.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from ..wire.route import Response

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
    # Without any referrer a browser also hides the Origin of our own forms, and over plain HTTP
    # that is all that tells them from another site's.
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
    environment.globals["static"] = static_url
    return environment


def render(template: str, **values: Any) -> str:
    return environment_of(_TEMPLATES).get_template(template).render(**values)


def page(template: str, *, status: int = 200, **values: Any) -> Response:
    """A whole page, with the headers that every page has."""
    body = render(template, **values).encode()
    return Response(body=body, status=status, headers=HEADERS, content_type=HTML)


def redirect(to: str, **headers: str) -> Response:
    """After a form: the browser asks for the page anew, so that a reload repeats nothing."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body=b"", status=303, headers={"Location": to, **named}, content_type=HTML)


@cache
def static_file(name: str) -> tuple[bytes, str, str] | None:
    """(bytes, type, version) of a file we ship; None for any other name."""
    path = STATIC / name
    if "/" in name or path.suffix not in TYPES or not path.is_file():
        return None
    data = path.read_bytes()
    return data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:12]


def static_url(name: str) -> str:
    """With its version, so that a browser may keep it for good."""
    found = static_file(name)
    assert found is not None, f"no such file: {name}"
    return f"/static/{name}?v={found[2]}"
