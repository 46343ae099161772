"""A path of our own site, whatever a link asks for."""

from urllib.parse import urlsplit


def local_path(asked: str) -> str:
    """The path to go on to; the root for whatever could lead to another site."""
    odd = any(char <= " " or char in "\\\x7f" for char in asked)
    if odd or not asked.startswith("/") or asked.startswith("//"):
        return "/"
    try:
        parts = urlsplit(asked)
    except ValueError:
        return "/"
    return "/" if parts.scheme or parts.netloc else asked
