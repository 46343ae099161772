"""Whether a client has already what it asks for (RFC 9110, 13.1.2)."""

from collections.abc import Mapping


def is_known(headers: Mapping[str, str], tag: str) -> bool:
    """Whether If-None-Match names the tag, weakly compared; `tag` with its quotes."""
    given = headers.get("if-none-match", "")
    known = [item.strip().removeprefix("W/") for item in given.split(",")]
    return tag in known or known == ["*"]
