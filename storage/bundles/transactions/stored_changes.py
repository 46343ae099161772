"""Changes of a bundle as they are stored: without documents, which `monitors` has encrypted.

Secrets are blank in the changes already.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ....probes.check.monitor_spec import FieldType, MonitorType
from ....probes.check.registry import spec_of
from ..rules.bundle_diff import BundleAction, BundleChange, FieldChange, is_taken_over

# Settings that are documents of any monitor type.
DOCUMENTS: Final = frozenset(
    field.name
    for kind in MonitorType
    if (spec := spec_of(kind)) is not None
    for field in spec.fields
    if field.type is FieldType.DOCUMENT
)
# Settings by kind that are not stored: a revision can outlive people, and editors of a project read
# its revisions, but no webhooks.
HIDDEN: Final = {"person": {"email", "name", "contact_methods"}, "webhook": {"url"}}
# A larger revision is stored without its last changes.
REVISION_CHANGES_MOST: Final = 500
REVISION_BYTES_MOST: Final = 256 << 10


def stored_changes(changes: Sequence[BundleChange]) -> list[BundleChange]:
    """Returns the changes without personal data, URLs of webhooks and the contents of documents.

    Documents are encrypted in `monitors`.
    """
    return [
        msgspec.structs.replace(change, fields=[_stored(change.kind, one) for one in change.fields])
        for change in changes
    ]


def revision_changes(changes: Sequence[BundleChange]) -> str:
    """Returns the changes of a revision as JSON, without unchanged objects and within the bounds.

    New objects are stored without their settings, which the console does not show either.
    """
    told = [
        one for one in changes if one.action is not BundleAction.UNCHANGED or is_taken_over(one)
    ]
    kept, size = list[bytes](), 2
    for change in stored_changes(told[:REVISION_CHANGES_MOST]):
        is_new = change.action is BundleAction.CREATE
        text = msgspec.json.encode(msgspec.structs.replace(change, fields=[]) if is_new else change)
        size += len(text) + 1
        if size > REVISION_BYTES_MOST:
            break
        kept.append(text)
    return f"[{b','.join(kept).decode()}]"


def _stored(kind: str, field: FieldChange) -> FieldChange:
    if field.name in HIDDEN.get(kind, ()) or field.name.rpartition(".")[2] in DOCUMENTS:
        return FieldChange(name=field.name)
    return FieldChange(name=field.name, from_=_plain(field.from_), to=_plain(field.to))


def _plain(value: Any) -> Any:
    """Returns a configuration without its documents, and any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {name: one for name, one in value.items() if name not in DOCUMENTS}
