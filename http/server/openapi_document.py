"""The OpenAPI 3.1 document of the one table of routes, as `leadline openapi` prints it."""

import msgspec

from .openapi_builder import describe
from .route_table import ROUTES


def document() -> dict[str, object]:
    return describe(ROUTES)


def document_bytes() -> bytes:
    """Returns the document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document()), indent=2)
