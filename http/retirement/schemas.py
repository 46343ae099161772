"""Bodies of what a service takes over from a monitor."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from ..monitors.schemas.monitors import Monitor
from ..services.schemas.services import Service
from ..wire.schema import RequestSchema, Schema


class SetSuccessor(RequestSchema, frozen=True, kw_only=True):
    """The service that stands in a monitor's place; without one none does."""

    service_id: UUID | UnsetType | None = UNSET


class ConvertComposite(RequestSchema, frozen=True, kw_only=True):
    """Those of its children of which the service's availability is made."""

    sli: list[UUID] = []


class CompositeConversion(Schema, frozen=True, kw_only=True):
    """`already_converted`: a service stood in its place before, and nothing was changed."""

    service: Service
    monitor: Monitor
    already_converted: bool
