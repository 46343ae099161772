"""Bodies of pushes: keywords that decide a result, and the part that is kept.

A body never becomes part of the message of a result.
"""

from dataclasses import dataclass, replace
from typing import Final

from .push_request import MESSAGE_LENGTH, Push

# Newest bodies of a monitor that are kept, and the bytes of each.
BODIES_KEPT: Final = 20
BODY_KEPT_BYTES: Final = 10 * 1024
NOT_IN_BEGINNING: Final = "success_keywords: none is in the part that was read, the status stays"


@dataclass(frozen=True, slots=True)
class BodyKeywords:
    """Keywords of a monitor. Both can be empty."""

    failure: tuple[str, ...] = ()
    success: tuple[str, ...] = ()


def keywords_in(text: str) -> tuple[str, ...]:
    """Returns the keywords of a setting: one in each line that is not blank."""
    return tuple(word for line in text.splitlines() if (word := line.strip()))


def judge_body(said: Push, body: bytes, keywords: BodyKeywords, *, is_cut: bool = False) -> Push:
    """Returns the push with the result that its body requires.

    Keywords turn a result that is up into one that is down, never the reverse, and do not apply to
    marks. Letters of another case differ. `is_cut` states that `body` is only the beginning: a
    success keyword can be in the rest, so the result stays and gets a warning.
    """
    if not said.covers or not said.up or not (keywords.failure or keywords.success):
        return said
    text = body.decode(errors="replace")
    found = next((word for word in keywords.failure if word in text), None)
    if found is not None:
        return _down(said, f"failure keyword found: {found}")
    if keywords.success and not any(word in text for word in keywords.success):
        if is_cut:
            return replace(said, warnings=(*said.warnings, NOT_IN_BEGINNING))
        return _down(said, "no success keyword found")
    return said


def _down(said: Push, why: str) -> Push:
    return replace(said, up=False, message=said.message or why[:MESSAGE_LENGTH])


def kept_part(body: bytes) -> bytes:
    """Returns the beginning of the body that is kept."""
    return body[:BODY_KEPT_BYTES]
