"""JSON bodies of the limits of organizations."""

from msgspec import UNSET, UnsetType

from ....storage.monitors.rules.organization_limits import OrganizationLimits as Limits
from ...wire.schema import RequestSchema, Schema

_BUILT_IN = Limits()


class OrganizationLimits(Schema, frozen=True, kw_only=True):
    """Limits of every organization without own ones. `configured` is true if they were set.

    `runs_per_minute` includes confirming runs, which happen while a target fails.
    """

    monitors: int
    shortest_interval_seconds: int
    runs_per_minute: int
    configured: bool


class PutOrganizationLimits(RequestSchema, frozen=True, kw_only=True):
    """An absent field gets the built-in default. `configured` is ignored."""

    monitors: int = _BUILT_IN.monitors
    shortest_interval_seconds: int = _BUILT_IN.shortest_interval_seconds
    runs_per_minute: int = _BUILT_IN.runs_per_minute
    configured: bool | UnsetType = UNSET


class OwnLimits(Schema, frozen=True, kw_only=True):
    """Limits that were set for one organization. An absent one is that of the installation."""

    monitors: int | UnsetType = UNSET
    shortest_interval_seconds: int | UnsetType = UNSET
    runs_per_minute: int | UnsetType = UNSET


class PutOwnLimits(RequestSchema, frozen=True, kw_only=True):
    """An absent field gets the limit of the installation."""

    monitors: int | UnsetType = UNSET
    shortest_interval_seconds: int | UnsetType = UNSET
    runs_per_minute: int | UnsetType = UNSET


class LimitsOfOrganization(Schema, frozen=True, kw_only=True):
    """Limits in force of an organization, its own ones, and its present use.

    A use above a limit is of monitors that are older than the limit.
    """

    monitors: int
    shortest_interval_seconds: int
    runs_per_minute: int
    own: OwnLimits
    used_monitors: int
    used_runs_per_minute: float
