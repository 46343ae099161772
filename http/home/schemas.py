"""JSON bodies of the search, the regions, the build version and actions on many monitors."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.bulk.rules import OBJECTS_MOST
from ...storage.monitors.rules.monitor import MonitorType
from ...storage.scheduling.rules.maintenance_window import REASON_LONGEST
from ..monitors.routes.monitor_list import Q_LONGEST, VALUES_MOST
from ..wire.schema import InstantText, RequestSchema, Schema


class BuildInfo(Schema, frozen=True, kw_only=True):
    version: str
    commit: str | UnsetType = UNSET
    python_version: str


class SearchHit(Schema, frozen=True, kw_only=True):
    type: Literal["monitor", "project", "incident"]
    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    label: str
    sub: str


class SearchResult(Schema, frozen=True, kw_only=True):
    query: str
    hits: list[SearchHit]


class Region(Schema, frozen=True, kw_only=True):
    """`live` is true if a worker or agent of the region was seen recently."""

    name: str
    live: bool


class Regions(Schema, frozen=True, kw_only=True):
    regions: list[Region]


class MonitorSelector(RequestSchema, frozen=True, kw_only=True):
    """Filter of the list of monitors. Values of one field are alternatives; the fields apply
    together. `all` selects every monitor of the project, and permits no other field.
    """

    all: bool = False
    q: Annotated[str, Meta(max_length=Q_LONGEST)] = ""
    tag: Annotated[list[str], Meta(max_length=VALUES_MOST)] = []
    type: list[MonitorType] = []
    region: Annotated[list[str], Meta(max_length=VALUES_MOST)] = []
    status: list[Literal["pending", "up", "down"]] = []


class MonitorsAction(RequestSchema, frozen=True, kw_only=True):
    """Action on the monitors of a selector, or on those of `monitor_ids`.

    `tag` and `untag` need `tag`, `attach` and `detach` need `channel_id`, `maintain` needs
    `minutes` or both instants. `delete` needs `count`; any other action is refused too if `count`
    is given and is not the number of selected monitors.
    """

    act: Literal["pause", "resume", "tag", "untag", "attach", "detach", "maintain", "delete"]
    selector: MonitorSelector | UnsetType = UNSET
    monitor_ids: Annotated[list[UUID], Meta(max_length=OBJECTS_MOST)] | UnsetType = UNSET
    count: int | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    channel_id: UUID | UnsetType = UNSET
    minutes: int | UnsetType = UNSET
    starts_at: InstantText | UnsetType = UNSET
    ends_at: InstantText | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=REASON_LONGEST)] | UnsetType = UNSET


class SelectedMonitor(Schema, frozen=True, kw_only=True):
    id: UUID
    slug: str
    name: str


class SelectedMonitors(Schema, frozen=True, kw_only=True):
    """Monitors that the action would change."""

    count: int
    monitors: list[SelectedMonitor]


class ActedObject(Schema, frozen=True, kw_only=True):
    """Monitor of an action, or a maintenance window that an undo ends, with its result so far.

    `code` and `message` are present if it refused the action.
    """

    id: UUID
    name: str
    state: Literal["waiting", "changed", "unchanged", "skipped", "failed"]
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class ActedObjectList(Schema, frozen=True, kw_only=True):
    items: list[ActedObject]
    next_cursor: str | None
