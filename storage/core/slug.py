"""Slugs: short names in URLs, `^[a-z][a-z0-9-]{0,62}$`, immutable."""

import re
from collections.abc import Container
from itertools import count
from unicodedata import normalize

LENGTH = 63
_SLUG = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_OTHER = re.compile(r"[^a-z0-9]+")
# Letters without a Unicode decomposition.
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "đ": "d", "ł": "l", "œ": "oe", "þ": "th"})


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


def slug_of(name: str, otherwise: str = "monitor") -> str:
    """Returns a slug for a name: its letters and digits, with hyphens for the rest.

    If the slug would begin with a digit, `otherwise` is prepended. If it would be empty (a name in
    another script), `otherwise` replaces it.
    """
    spread = normalize("NFKD", name.lower().translate(_LETTERS))
    plain = _OTHER.sub("-", spread.encode("ascii", "ignore").decode()).strip("-")
    if not plain:
        return otherwise
    if not plain[0].isalpha():
        plain = f"{otherwise}-{plain}"
    return plain[:LENGTH].rstrip("-")


def free_slug(wanted: str, taken: Container[str], first: int = 2) -> str:
    """Returns the slug itself, or the first free one of `-2`, `-3` …

    The caller can skip numbers that it knows to be taken.
    """
    if wanted not in taken:
        return wanted
    for number in count(first):
        suffix = f"-{number}"
        candidate = wanted[: LENGTH - len(suffix)].rstrip("-") + suffix
        if candidate not in taken:
            return candidate
    raise AssertionError("counting ends nowhere")
