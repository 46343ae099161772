"""Row structs of notifications that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from ..core.key import DestinationKey, EventKey


class ChannelRow(msgspec.Struct, frozen=True):
    """A notification channel. `config` is JSON text; a secret in it is a blank.

    A channel with `contact_method` has the type, the id and the settings of that method.
    `takes_tickets`: it is a destination of tickets. `takes_warnings`: it gets the warnings of the
    monitors of its project. `referred` is JSON text of the project secrets
    that the settings name: {setting: [id, encrypted value in base64]}.
    """

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    type: str
    name: str
    config: str
    config_ciphertext: bytes | None
    enabled: bool
    created_at: Instant
    contact_method: int | None = None
    takes_tickets: bool = False
    takes_warnings: bool = False
    referred: str = "{}"
    # Bundle fields, as in a monitor.
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None


class ContactMethodRow(msgspec.Struct, frozen=True):
    """A contact method of a person, with the hash of its code. Secrets in `config` are blank."""

    id: int
    uid: UUID
    user: int
    kind: str
    label: str
    config: str
    config_ciphertext: bytes | None
    enabled: bool
    verified_at: Instant | None
    code_hash: bytes | None
    code_expires_at: Instant | None
    code_attempts: int
    created_at: Instant
    # Organization and project of the bundle that proposed the method; empty if the person added it.
    proposed_by: str


class ContactSettingsRow(msgspec.Struct, frozen=True):
    """Quiet hours in minutes of the local day, and the recent codes and test messages."""

    quiet_from: int | None
    quiet_until: int | None
    quiet_zone: str
    sent_at: list[Instant]


class WebhookRow(msgspec.Struct, frozen=True):
    """A webhook. It has an own secret, or `secret_ref` names the secret of its project that signs.

    `managed_by` is the provider of its bundle; empty if people edit it.
    """

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    project: int | None
    project_uid: UUID | None
    url: str
    secret_ciphertext: bytes | None
    enabled: bool
    creator_uid: UUID | None
    creator_email: str | None
    created_at: Instant
    secret_ref: str | None
    referred_uid: UUID | None
    referred_ciphertext: bytes | None
    managed_by: str


class Leased(msgspec.Struct, frozen=True):
    """A leased event for a channel, a webhook, a status page's subscribers or one of them.

    `payload` is JSON text. `enqueued_through` is the last subscriber of a page for which a row was
    written. `thread_external_id` is the id that the remote service gave to the first message of the
    thread; empty if unknown.
    """

    org: int
    id: int
    uid: UUID
    destination: int
    channel: int | None
    webhook: int | None
    page: int | None
    subscriber: int | None
    project: int | None
    topic: str
    thread: UUID
    event: str
    payload: str
    attempts: int
    enqueued_through: int
    thread_external_id: str

    @property
    def key(self) -> EventKey:
        return EventKey((self.org, self.id))

    @property
    def destination_key(self) -> DestinationKey:
        return DestinationKey((self.org, self.destination))


class _OutboxEvent(msgspec.Struct, frozen=True):
    org: int
    id: int
    destination: int
    stream: UUID
    thread: UUID
    attempts: int

    @property
    def key(self) -> EventKey:
        return EventKey((self.org, self.id))

    @property
    def destination_key(self) -> DestinationKey:
        return DestinationKey((self.org, self.destination))


class HeldEvent(_OutboxEvent, frozen=True):
    """An event whose lease is valid and whose row is locked."""


class DueEvent(HeldEvent, frozen=True):
    was_leased: bool
    is_question: bool
    is_visitors_webhook: bool


class WaitingEvent(HeldEvent, frozen=True):
    """An event that is due and is not leased."""

    is_question: bool


class Backlog(msgspec.Struct, frozen=True):
    """State of the outbox at the instant `at`.

    `failing` counts destinations. `oldest_due_at` is the due instant of the oldest event that only
    Leadline delays.
    """

    at: Instant
    pending: int
    dead: int
    failing: int
    oldest_due_at: Instant | None

    def oldest_us(self, now: Instant, fresh_us: int) -> int:
        """Returns the age in µs of the oldest event that is due, else 0.

        After `fresh_us` it grows even then, since an event can have become due after the count.
        """
        since = self.at + fresh_us if self.oldest_due_at is None else self.oldest_due_at
        return max(now - since, 0)
