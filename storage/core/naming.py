"""What people may call things, and how they are addressed: faults in words that tell the mend."""

import re

from .slug import is_slug

NAME_LONGEST = 200
EMAIL_LONGEST = 254

# One sign, something on both sides of it, and no blanks: `admin@localhost` is an address too.
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def name_fault(text: str) -> str | None:
    """Why nothing may be called this; None where it may."""
    if not text.strip():
        return "must not be blank"
    return words_fault(text)


def words_fault(text: str) -> str | None:
    """As of a name, but it may be empty."""
    if len(text) > NAME_LONGEST:
        return f"must be at most {NAME_LONGEST} characters"
    return text_rule_broken(text)


def slug_fault(text: str) -> str | None:
    return None if is_slug(text) else "must match ^[a-z][a-z0-9-]{0,62}$"


def email_fault(text: str) -> str | None:
    """Only what makes it none at all: whether mail arrives there cannot be told by looking."""
    if len(text) > EMAIL_LONGEST or not _EMAIL.fullmatch(text):
        return "must be an e-mail address"
    return text_rule_broken(text)


def text_rule_broken(text: str, *, multiline: bool = False) -> str | None:
    """Why a text may not be stored: control characters, or halves of characters; None: it may."""
    allowed = "\n\t" if multiline else ""
    if any((char < " " or "\x7f" <= char <= "\x9f") and char not in allowed for char in text):
        return "must not hold control characters"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "must be valid Unicode"
    return None
