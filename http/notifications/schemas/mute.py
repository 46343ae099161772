"""JSON bodies of notifications: mute."""

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, RequestSchema, Schema


class GlobalSilence(Schema, frozen=True, kw_only=True):
    """`enabled` while people are told of nothing new; without `until` it lasts until somebody lifts
    it."""

    enabled: bool
    until: InstantText | UnsetType = UNSET


class Alerting(Schema, frozen=True, kw_only=True):
    """`configured` says that somebody has set it."""

    configured: bool
    global_silence: GlobalSilence


class GlobalSilenceRequest(RequestSchema, frozen=True, kw_only=True):
    """`until` lies ahead, at most 366 days."""

    enabled: bool = False
    until: InstantText | UnsetType = UNSET


class PutAlerting(RequestSchema, frozen=True, kw_only=True):
    """The whole of it; `configured` is passed over."""

    configured: bool | UnsetType = UNSET
    global_silence: GlobalSilenceRequest | UnsetType = UNSET
