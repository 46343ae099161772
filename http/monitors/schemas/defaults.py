"""JSON bodies of the defaults of new monitors."""

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from ....storage.monitors.rules.fields import OF_INSTALLATION, default_fields, required_fields
from ...wire.schema import RequestSchema, Schema

if TYPE_CHECKING:
    from ....storage.monitors.rules.fields import OptionalFields

    class _SetFields(Schema, OptionalFields, frozen=True, kw_only=True): ...

    class _PutFields(RequestSchema, OptionalFields, frozen=True, kw_only=True): ...

else:
    _SetFields = required_fields(Schema, OF_INSTALLATION)
    _PutFields = default_fields(RequestSchema)


class MonitorDefaults(_SetFields, frozen=True, kw_only=True):
    """`configured` is true if an administrator has set the defaults."""

    configured: bool


class PutMonitorDefaults(_PutFields, frozen=True, kw_only=True):
    """An absent field gets the built-in default. `configured` is ignored."""

    configured: bool | UnsetType = UNSET
