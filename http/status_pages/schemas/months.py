"""Bodies of reports for a calendar month."""

from uuid import UUID

from msgspec import UNSET, UnsetType, field

from ....storage.core.availability import Withheld
from ...wire.schema import InstantText, Schema


class MonthFigures(Schema, frozen=True, kw_only=True):
    """Figures of a month. Those that cannot be computed are absent, with `withheld_reason`.

    `covered_from` and `covered_to` are the part of the month with sealed time: all of it, unless
    the object is newer or the month is not over.
    """

    uptime_percent: float | UnsetType = UNSET
    withheld_reason: Withheld | UnsetType = UNSET
    coverage: float
    covered_from: InstantText | UnsetType = UNSET
    covered_to: InstantText | UnsetType = UNSET
    down_us: int | UnsetType = UNSET
    unknown_us: int | UnsetType = UNSET
    excluded_us: int | UnsetType = UNSET


class ServiceMonthReport(Schema, frozen=True, kw_only=True):
    """Report of a service for a calendar month in a time zone."""

    month: str
    timezone: str
    from_: InstantText = field(name="from")
    to: InstantText
    figures: MonthFigures


class ComponentMonthReport(Schema, frozen=True, kw_only=True):
    """Month of a component. One whose status is set manually has no figures."""

    id: UUID
    name: str
    group: str
    figures: MonthFigures | UnsetType = UNSET


class PageMonthReport(Schema, frozen=True, kw_only=True):
    """Report of a status page for a calendar month in the zone of the page."""

    month: str
    timezone: str
    from_: InstantText = field(name="from")
    to: InstantText
    components: list[ComponentMonthReport]
