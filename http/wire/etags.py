"""Conditional requests by entity tag (RFC 9110, 13.1.2)."""

from collections.abc import Mapping


def is_known(headers: Mapping[str, str], tag: str) -> bool:
    """Returns whether If-None-Match contains the tag, by weak comparison.

    `tag` includes its quotes.
    """
    given = headers.get("if-none-match", "")
    known = [item.strip().removeprefix("W/") for item in given.split(",")]
    return tag in known or known == ["*"]
