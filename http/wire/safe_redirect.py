"""Redirect targets restricted to paths of our own site."""

from urllib.parse import urlsplit


def local_path(asked: str) -> str:
    """Returns the path to redirect to; the root for a URL that could lead to another site."""
    odd = any(char <= " " or char in "\\\x7f" for char in asked)
    if odd or not asked.startswith("/") or asked.startswith("//"):
        return "/"
    try:
        parts = urlsplit(asked)
    except ValueError:
        return "/"
    return "/" if parts.scheme or parts.netloc else asked
