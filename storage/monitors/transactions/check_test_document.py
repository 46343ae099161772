"""A check on its way to another process, to be tried there: sealed where it holds secrets."""

from typing import Any
from uuid import UUID

import msgspec

from ...engine.keyring import Keyring
from ..rows import CheckTest
from ..rules.monitor import MonitorDraft
from ..tables.check_tests import place_of
from .config_secrets import split


class CheckTestDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All that `make_check` takes; `values` are what stands behind references."""

    type: str
    target: str
    method: str | None
    config: dict[str, Any]
    conditions: list[str]
    retries: int
    timeout_seconds: int
    interval_seconds: int
    values: dict[str, str]

    def __repr__(self) -> str:
        return "CheckTestDocument(…)"


def document_of(draft: MonitorDraft, values: dict[str, str]) -> CheckTestDocument:
    return CheckTestDocument(
        type=draft.type,
        target=draft.target,
        method=draft.method,
        config=dict(draft.config),
        conditions=list(draft.conditions),
        retries=draft.retries,
        timeout_seconds=draft.timeout_seconds,
        interval_seconds=draft.interval_seconds,
        values=values,
    )


def close_document(
    document: CheckTestDocument, keyring: Keyring, trial: UUID
) -> tuple[str | None, bytes | None]:
    """As text, or sealed; Refused encryption_key_missing where it must be and cannot."""
    data = msgspec.json.encode(document)
    if document.values or split(document.type, document.config)[1]:
        return None, keyring.seal(data, place_of(trial))
    return data.decode(), None


def open_document(trial: CheckTest, keyring: Keyring) -> CheckTestDocument:
    """CannotOpen where the ring does not open it."""
    data = (
        keyring.open(trial.document_ciphertext, place_of(trial.uid))
        if trial.document_ciphertext is not None
        else (trial.document or "").encode()
    )
    return msgspec.json.decode(data, type=CheckTestDocument)
