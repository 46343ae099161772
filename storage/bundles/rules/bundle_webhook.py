"""Entries of format 3 about webhooks of the project."""

from typing import Annotated, Final

from msgspec import Meta

from ...monitors.rules.secret import NAME_PATTERN, secret_name_fault
from ...notifications.rules.webhook import (
    URL_LONGEST,
    WEBHOOKS_OF_ORGANIZATION_MOST,
    url_fault,
)
from .bundle_oncall import OnCallEntry

WEBHOOKS_MOST: Final = WEBHOOKS_OF_ORGANIZATION_MOST
Reference = Annotated[str, Meta(extra_json_schema={"pattern": f"{NAME_PATTERN}|^$"})]


class WebhookEntry(OnCallEntry, frozen=True, kw_only=True):
    """Webhook of the project. The secret of the project in `secret_ref` signs its deliveries."""

    url: Annotated[str, Meta(extra_json_schema={"maxLength": URL_LONGEST})]
    enabled: bool = True
    secret_ref: Reference = ""


def webhook_fault(entry: WebhookEntry) -> tuple[str, str] | None:
    if (fault := url_fault(entry.url)) is not None:
        return "url", fault
    if entry.secret_ref and (fault := secret_name_fault(entry.secret_ref)) is not None:
        return "secret_ref", fault
    return None
