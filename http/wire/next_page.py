"""The header `Link` that names the next page of a list that is a bare array (RFC 8288)."""

from urllib.parse import urlencode

import msgspec

from .route import Request


def next_page(ask: Request, cursor: str) -> dict[str, str]:
    """Returns the header with the address of the same request that continues at the cursor."""
    given = {name: value for name, value in msgspec.to_builtins(ask.query).items() if value}
    query = urlencode({**given, "cursor": cursor}, doseq=True)
    return {"Link": f'<{ask.base_url}{ask.path}?{query}>; rel="next"'}
