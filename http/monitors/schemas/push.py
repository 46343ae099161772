"""Answers of push monitors: the heartbeat, and the runs of a job."""

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, RequestSchema, Schema


class PushToken(Schema, frozen=True, kw_only=True):
    push_token: str
    push_url: str


class PushAnswer(Schema, frozen=True, kw_only=True):
    """`warnings` lists ignored or changed values of the request. It is absent if empty."""

    ok: bool
    monitor_id: UUID
    up: bool
    warnings: list[str] | UnsetType = UNSET


class PushRun(Schema, frozen=True, kw_only=True):
    """Run of a job. An open run has no `ended_at`.

    `run_id` is absent if the sender gave none. `limit` states whether the run kept
    `max_run_seconds`, or why that is not known; it is absent if nothing is decided yet.
    """

    run_id: str | UnsetType = UNSET
    started_at: InstantText
    deadline_at: InstantText | UnsetType = UNSET
    ended_at: InstantText | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    outcome: Literal["succeeded", "failed", "replaced"] | UnsetType = UNSET
    exit_status: int | UnsetType = UNSET
    limit: Literal["kept", "overrun", "not_listening", "paused", "maintenance"] | UnsetType = UNSET


class PushBody(Schema, frozen=True, kw_only=True):
    """Beginning of a body, at most 10 KiB, as UTF-8 with replacements.

    `up` is absent for `/start` and `/log`. `text` is null if no key of the installation opens it.
    """

    at: InstantText
    kind: Literal["heartbeat", "start", "log"]
    up: bool | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    text: str | None
    is_cut: bool


class PushKeyRequest(RequestSchema, frozen=True, kw_only=True):
    """Whether the first push to an unknown slug creates a monitor."""

    creates_monitors: bool


class PushKey(Schema, frozen=True, kw_only=True):
    """Push key of a project. A slug follows the `url`.

    `push_key` and `url` are absent if no key of the installation opens the stored value.
    """

    push_key: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    creates_monitors: bool
    created_at: InstantText
