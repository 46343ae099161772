"""JSON bodies of the search, of the regions and of the build version."""

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from ..wire.schema import Schema


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
