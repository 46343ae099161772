"""Statement that a mute applies to the object of a screen."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....storage.core.instant import Instant
from ....storage.mutes.rows import MuteRow
from ..formatting import dated


@dataclass(frozen=True, slots=True)
class MuteFact:
    """Mute in force. `until` is its end, and `about` what it names."""

    about: str
    until: str
    by: str
    reason: str


def mute_facts(rows: Sequence[MuteRow], now: Instant) -> list[MuteFact]:
    return [
        MuteFact(scope_words(row), dated(row.ends_at, now), row.author_label, row.reason)
        for row in rows
    ]


def scope_words(row: MuteRow) -> str:
    """Returns what a mute names: an object with its kind, or the matchers in braces."""
    if row.matchers:
        return f"{{{row.matchers}}}"
    return f"{'monitor' if row.monitor is not None else 'service'} {row.subject}"
