"""Bodies of subscriptions to status pages."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.status_pages.rules.subscription import (
    COMPONENTS_CHOSEN_MOST,
    URL_LONGEST,
    SubscriberKind,
)
from ...wire.schema import Email, InstantText, RequestSchema, Schema


class Subscriber(Schema, frozen=True, kw_only=True):
    """Subscriber by e-mail, or by webhook at `url`. The URL of a chat is shortened, as it is a
    secret of its channel.

    It receives updates only after confirmation. Since `suspended_at` it receives none, because
    `bounces` deliveries in a row were refused.
    """

    id: UUID
    status_page_id: UUID
    kind: SubscriberKind
    email: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    confirmed_at: InstantText | UnsetType = UNSET
    bounces: int | UnsetType = UNSET
    suspended_at: InstantText | UnsetType = UNSET
    created_at: InstantText


class Subscribe(RequestSchema, frozen=True, kw_only=True):
    """Exactly one of `email` and `url` is required. `components` default to all.

    `kind` of a URL is `webhook` by default, or `slack` or `teams` for the incoming webhook of a
    channel.
    """

    email: Email | UnsetType = UNSET
    url: Annotated[str, Meta(max_length=URL_LONGEST)] | UnsetType = UNSET
    kind: Literal["webhook", "slack", "teams"] | UnsetType = UNSET
    components: (
        Annotated[list[UUID], Meta(min_length=1, max_length=COMPONENTS_CHOSEN_MOST)] | UnsetType
    ) = UNSET
