"""Rules of the webhooks of organizations and projects."""

from typing import Final

from ....probes.check.target import BadTarget, read_url

WEBHOOKS_OF_ORGANIZATION_MOST: Final = 50
URL_LONGEST: Final = 2_048


def url_fault(url: str) -> str | None:
    if len(url) > URL_LONGEST:
        return f"must have at most {URL_LONGEST} characters"
    try:
        read_url(url)
    except BadTarget as fault:
        return str(fault)
    return None


def has_moved(before: str, after: str) -> bool:
    """Returns whether two valid URLs differ in scheme, host or port."""
    return read_url(before).origin != read_url(after).origin
