"""CSRF protection: the origin of a writing request that a cookie authenticates.

Browsers send the origin as Sec-Fetch-Site, older browsers as Origin. A client that sends neither is
not a browser, so no other site can make it send our cookie.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN = frozenset({"same-origin", "none"})


def is_cross_site(method: str, headers: Mapping[str, str], public_base_url: str) -> bool:
    if method in SAFE_METHODS:
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in OWN
    origin = headers.get("origin")
    if origin is None:
        return False
    return not _is_own(origin, headers.get("host", ""), public_base_url)


def _is_own(origin: str, host: str, public_base_url: str) -> bool:
    try:
        parts = urlsplit(origin)
        public = urlsplit(public_base_url)
    except ValueError:
        return False
    if not parts.netloc:
        return False
    if public.netloc and (parts.scheme, parts.netloc.lower()) == (
        public.scheme,
        public.netloc.lower(),
    ):
        return True
    return parts.netloc.lower() == host.lower()
