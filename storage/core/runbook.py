"""Rule for the URL of a runbook. An empty text means none."""

from typing import Final

from ...probes.check.target import BadTarget, read_url
from .naming import text_rule_broken

# A sender truncates a longer line of a message.
RUNBOOK_LONGEST: Final = 400


def runbook_fault(text: str) -> str | None:
    """Returns why the text is not the URL of a runbook; None if it is valid or empty."""
    if not text:
        return None
    if len(text) > RUNBOOK_LONGEST:
        return f"must be at most {RUNBOOK_LONGEST} characters"
    broken = text_rule_broken(text)
    if broken:
        return broken
    try:
        read_url(text)
    except BadTarget as fault:
        return str(fault)
    return None
