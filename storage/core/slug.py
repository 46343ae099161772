"""Slugs: short names that stand in URLs, `^[a-z][a-z0-9-]{0,62}$`, never changed once given."""

import re
from collections.abc import Container
from itertools import count
from unicodedata import normalize

LENGTH = 63
_SLUG = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_OTHER = re.compile(r"[^a-z0-9]+")
# German sharp s and the Nordic letters have no decomposition.
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "đ": "d", "ł": "l", "œ": "oe", "þ": "th"})


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


def slug_of(name: str, otherwise: str = "monitor") -> str:
    """A slug for a name: its letters and digits, the rest as hyphens.

    One that would begin with a digit, and one of which nothing is left (a name in another script),
    get `otherwise` in front or instead.
    """
    spread = normalize("NFKD", name.lower().translate(_LETTERS))
    plain = _OTHER.sub("-", spread.encode("ascii", "ignore").decode()).strip("-")
    if not plain:
        return otherwise
    if not plain[0].isalpha():
        plain = f"{otherwise}-{plain}"
    return plain[:LENGTH].rstrip("-")


def free_slug(wanted: str, taken: Container[str]) -> str:
    """The slug itself, or the first of `-2`, `-3` … that is free."""
    if wanted not in taken:
        return wanted
    for number in count(2):
        suffix = f"-{number}"
        candidate = wanted[: LENGTH - len(suffix)].rstrip("-") + suffix
        if candidate not in taken:
            return candidate
    raise AssertionError("counting ends nowhere")
