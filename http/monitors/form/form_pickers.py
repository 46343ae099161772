"""Type-ahead fields of the monitor form: channels, dependencies, tags, and members of a
composite."""

from ....probes.check.monitor_spec import FieldType, Spec
from ....storage.engine.pools import Tx
from ....storage.services.queries.pickable_objects import PickableKind
from ...ui.pickers.fields import ADD, PickerField
from ...ui.pickers.objects import PickPlace, field_of, tag_field
from .form_fields import CONFIG, Typed, form_value


def pickable_fields(spec: Spec) -> dict[str, PickableKind | None]:
    """Returns the kind of each field, None for tags."""
    children = {
        CONFIG + item.name: PickableKind.MONITOR
        for item in spec.fields
        if item.type is FieldType.IDS
    }
    return {
        "channels": PickableKind.CHANNEL,
        "depends_on": PickableKind.MONITOR,
        "tags": None,
        **children,
    }


async def pickers_of(tx: Tx, place: PickPlace, spec: Spec, typed: Typed) -> dict[str, PickerField]:
    """Returns the fields with their choices and first options."""
    found = {}
    for name, kind in pickable_fields(spec).items():
        chosen, text = typed.get(name, ()), form_value(typed, f"{ADD}{name}")
        if kind is None:
            found[name] = await tag_field(tx, place, name, chosen, text)
        else:
            found[name] = await field_of(tx, place, kind, name, chosen, text)
    return found
