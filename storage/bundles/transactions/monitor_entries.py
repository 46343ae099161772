"""Monitor entries: drafts, which are written, and settings as in a bundle.

The settings are compared, reported and exported.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from ....probes.check.monitor_spec import FieldType
from ....probes.check.registry import spec_of
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...monitors.rows import MonitorRow
from ...monitors.rules.fields import FIELDS
from ...monitors.rules.monitor import MonitorDraft, MonitorType
from ...monitors.rules.monitor_defaults import completed
from ...monitors.transactions.composite_children import with_canonical_config
from ...monitors.transactions.config_secrets import decrypt, readable, split
from ...monitors.transactions.monitor_draft import check_draft
from ..rules.bundle import MonitorEntry
from .bundle_context import (
    BundleContext,
    EntryContext,
    NameReferences,
    resolve,
    resolve_named,
    under,
    word_for,
)

# Names as in the API and in bundles, in the order of an entry.
SETTINGS: Final = (*FIELDS, "depends_on", "config")
POLICY: Final = "escalation_policy"


def wanted_draft(
    path: str,
    uid: str,
    entry: MonitorEntry,
    ids: Mapping[str, UUID],
    policies: NameReferences,
    terms: EntryContext,
) -> MonitorDraft:
    """Returns the draft of an entry.

    Raises:
        Refused invalid with an unknown reference.
    """
    given = {
        name: value for name in (*SETTINGS, "slug") if (value := getattr(entry, name)) is not UNSET
    }
    given["slug"] = given.get("slug", uid)
    given["type"] = entry.type.value
    given["depends_on"] = resolve(f"{path}.depends_on", entry.depends_on, ids)
    given["config"] = _with_children(path, entry, ids)
    policy = resolve_named(f"{path}.{POLICY}", entry.escalation_policy, policies)
    given["escalation_policy_id"] = policy or None
    draft = MonitorDraft(**completed(given, entry.type.value, terms.defaults))
    if entry.type != MonitorType.COMPOSITE:
        return draft
    # Compared in stored form, which exists only for a valid draft.
    with under(path):
        check_draft(draft, terms.regions)
    return with_canonical_config(draft)


def _with_children(path: str, entry: MonitorEntry, ids: Mapping[str, UUID]) -> dict[str, Any]:
    config = dict(entry.config)
    if entry.type == MonitorType.COMPOSITE:
        words = children_of(path, entry)
        config["children"] = [str(uid) for uid in resolve(f"{path}.config.children", words, ids)]
    return config


def children_of(path: str, entry: MonitorEntry) -> list[str]:
    """Returns the children of a composite entry.

    Raises:
        Refused invalid if they are not a list of strings.
    """
    children = entry.config.get("children", []) if entry.type == MonitorType.COMPOSITE else []
    if not isinstance(children, list) or not all(isinstance(one, str) for one in children):
        raise Refused("invalid", f"{path}.config.children", "must be a list of names")
    return children


def present_draft(row: MonitorRow, place: BundleContext, keyring: Keyring) -> MonitorDraft:
    """Returns the draft of an existing monitor with blank secrets and decrypted documents."""
    values: dict[str, Any] = {name: getattr(row, name) for name in SETTINGS}
    config: dict[str, Any] = msgspec.json.decode(row.config)
    values["config"] = readable(row.type, config, lambda: _unsealed(row, keyring))
    values["depends_on"] = [place.uids[key] for key in row.depends_on if key in place.uids]
    policy = place.policy_uids.get(row.escalation_policy or 0)
    values["escalation_policy_id"] = None if policy is None else str(policy)
    return MonitorDraft(type=row.type, slug=row.slug, **values)


def _unsealed(row: MonitorRow, keyring: Keyring) -> dict[str, Any]:
    """Returns no secrets if the ring does not decrypt them. A document is then blank."""
    try:
        return decrypt(keyring, row.config_ciphertext, row.uid)
    except CannotOpen:
        return {}


def in_words(
    draft: MonitorDraft, words: Mapping[UUID, str], policies: NameReferences
) -> dict[str, Any]:
    """Returns the settings of a draft as in a bundle."""
    found = {name: getattr(draft, name) for name in SETTINGS}
    found["depends_on"] = [words.get(uid, str(uid)) for uid in draft.depends_on]
    found["config"] = _config_in_words(draft, words)
    found[POLICY] = word_for(draft.escalation_policy_id, policies)
    return found


def _config_in_words(draft: MonitorDraft, words: Mapping[UUID, str]) -> dict[str, Any]:
    plain, _ = split(draft.type, draft.config)
    spec = spec_of(draft.type)
    for field in spec.fields if spec else ():
        value = draft.config.get(field.name)
        if field.type is FieldType.DOCUMENT and value not in (None, ""):
            plain[field.name] = _document(value)
    if draft.type == MonitorType.COMPOSITE:
        plain["children"] = [words.get(UUID(uid), uid) for uid in plain.get("children", [])]
    return plain


def _document(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
