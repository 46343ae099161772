"""Output that the commands share: JSON documents and lines, instants, durations."""

from datetime import datetime
from typing import Any, Final

import click
import msgspec

from ..safe_text import shown_json

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def print_json(value: Any) -> None:
    """Prints one JSON document, with the characters of a terminal escaped."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(shown_json(data))


def json_line(value: Any) -> bytes:
    """Returns a JSON document in one line, without its end."""
    return shown_json(msgspec.json.encode(value))


def moment(text: str | None) -> str:
    """Returns an instant of the API to the second, in UTC: `2026-11-26 22:05:10Z`."""
    if not text:
        return ""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{found:%Y-%m-%d %H:%M:%S}Z"


def minute(text: str) -> str:
    """Returns an instant of the API to the minute, for a narrow column: `2026-11-26 22:05Z`."""
    return f"{moment(text)[:16]}Z"


def span(seconds: int) -> str:
    """Returns a duration with at most two units: `1d 4h`, `30m`, `45s`."""
    parts = []
    left = seconds
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def joined(words: list[str]) -> str:
    return ", ".join(words)
