"""Templates of messages: a channel replaces the title and the text of its messages by its own.

Pure. A template contains the fields of FIELDS, such as {title}. Nothing else is evaluated, so a
template reads no secret and costs one search. A line whose fields are all empty is left out. A
sender still adds the link.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .message import (
    LINE_LONGEST,
    LINES_MOST,
    TITLE_LONGEST,
    Message,
    instant_text,
    one_line,
)

TEMPLATE_LONGEST: Final = 2_000
TITLE_TEMPLATE: Final = "title_template"
TEXT_TEMPLATE: Final = "text_template"
FIELDS: Final = (
    *("title", "status", "severity", "event"),
    *("details", "why", "conditions", "since", "runbook_url", "link"),
)
FIELDS_SAID: Final = ", ".join(f"{{{name}}}" for name in FIELDS)
_FIELD: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def template_fault(template: str, lines_most: int) -> str | None:
    """Returns what is wrong with a template, or None."""
    if len(template) > TEMPLATE_LONGEST:
        return f"must be at most {TEMPLATE_LONGEST} characters"
    if template.count("\n") >= lines_most:
        return f"must be at most {lines_most} lines" if lines_most > 1 else "must be one line"
    if any(name not in FIELDS for name in _FIELD.findall(template)):
        return f"must contain no other fields than {FIELDS_SAID}"
    return None


def templated(message: Message, config: Mapping[str, str]) -> Message:
    """Returns the message with the title and the text of the templates of a channel, if any."""
    title, text = config.get(TITLE_TEMPLATE, ""), config.get(TEXT_TEMPLATE, "")
    if not title and not text:
        return message
    values = _values(message)
    made = message
    if title:
        # A title of empty fields would be no title.
        filled = one_line(_filled(title, values), TITLE_LONGEST)
        made = replace(made, title=filled or message.title)
    if text:
        lines = [
            one_line(_filled(line, values), LINE_LONGEST)
            for line in text.split("\n")
            if _is_shown(line, values)
        ]
        made = replace(
            made,
            lines=tuple(lines[:LINES_MOST]),
            why="",
            conditions=(),
            since=None,
            runbook_url="",
        )
    return made


def _is_shown(line: str, values: Mapping[str, str]) -> bool:
    names = _FIELD.findall(line)
    return not names or any(values.get(name) for name in names)


def _filled(line: str, values: Mapping[str, str]) -> str:
    """Inserts each value once. A value that looks like a field stays as it is."""
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), line)


def _values(message: Message) -> dict[str, str]:
    return {
        "title": one_line(message.title, TITLE_LONGEST),
        "status": message.status.value,
        "severity": message.severity.value,
        "event": message.event,
        "details": one_line(" ".join(message.lines[:LINES_MOST]), LINE_LONGEST),
        "why": one_line(message.why, LINE_LONGEST),
        "conditions": one_line("; ".join(message.conditions[:LINES_MOST]), LINE_LONGEST),
        "since": "" if message.since is None else instant_text(message.since),
        "runbook_url": message.runbook_url,
        "link": message.link,
    }
