"""JSON bodies of notifications: mute."""

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, RequestSchema, Schema, Words


class GlobalSilence(Schema, frozen=True, kw_only=True):
    """`enabled` mutes new alerts. Without `until` the mute lasts until it is lifted.

    `muted_by` is the label of the user or token that set the mute in force last, at `muted_at`.
    """

    enabled: bool
    until: InstantText | UnsetType = UNSET
    reason: Words | UnsetType = UNSET
    muted_by: str | UnsetType = UNSET
    muted_at: InstantText | UnsetType = UNSET


class Alerting(Schema, frozen=True, kw_only=True):
    """`configured` is true if an administrator has set the mute."""

    configured: bool
    global_silence: GlobalSilence


class GlobalSilenceRequest(RequestSchema, frozen=True, kw_only=True):
    """`until` is in the future, at most 366 days ahead. `muted_by` and `muted_at` are ignored."""

    enabled: bool = False
    until: InstantText | UnsetType = UNSET
    reason: Words | UnsetType = UNSET
    muted_by: str | UnsetType = UNSET
    muted_at: InstantText | UnsetType = UNSET


class PutAlerting(RequestSchema, frozen=True, kw_only=True):
    """Complete setting. `configured` is ignored."""

    configured: bool | UnsetType = UNSET
    global_silence: GlobalSilenceRequest | UnsetType = UNSET
