"""Bodies of the replacement of a monitor by a service."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from ..monitors.schemas.monitors import Monitor
from ..services.schemas.services import Service
from ..wire.schema import RequestSchema, Schema


class SetSuccessor(RequestSchema, frozen=True, kw_only=True):
    """Request to set the service that replaces a monitor, or to clear it without `service_id`."""

    service_id: UUID | UnsetType | None = UNSET


class ConvertComposite(RequestSchema, frozen=True, kw_only=True):
    """Request for a conversion. `sli` lists the children that become SLI members."""

    sli: list[UUID] = []


class CompositeConversion(Schema, frozen=True, kw_only=True):
    """Result of a conversion.

    `already_converted`: a service replaced it before; no change was made.
    """

    service: Service
    monitor: Monitor
    already_converted: bool
