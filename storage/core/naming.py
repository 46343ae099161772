"""Rules for names and e-mail addresses. The faults state the rule."""

import re

from .slug import is_slug

NAME_LONGEST = 200
EMAIL_LONGEST = 254

# One @ with text on both sides and no blanks. `admin@localhost` is an address too.
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


def name_fault(text: str) -> str | None:
    """Returns why the name is invalid; None if it is valid."""
    if not text.strip():
        return "must not be blank"
    return words_fault(text)


def words_fault(text: str) -> str | None:
    """Returns the same for a text that can be empty."""
    if len(text) > NAME_LONGEST:
        return f"must be at most {NAME_LONGEST} characters"
    return text_rule_broken(text)


def slug_fault(text: str) -> str | None:
    return None if is_slug(text) else "must match ^[a-z][a-z0-9-]{0,62}$"


def email_fault(text: str) -> str | None:
    """Checks the form only: delivery cannot be verified from the text."""
    if len(text) > EMAIL_LONGEST or not _EMAIL.fullmatch(text):
        return "must be an e-mail address"
    return text_rule_broken(text)


def text_rule_broken(text: str, *, multiline: bool = False) -> str | None:
    """Returns why a text cannot be stored: control characters or lone surrogates; else None."""
    allowed = "\n\t" if multiline else ""
    if any((char < " " or "\x7f" <= char <= "\x9f") and char not in allowed for char in text):
        return "must not contain control characters"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "must be valid Unicode"
    return None
