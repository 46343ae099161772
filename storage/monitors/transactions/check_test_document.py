"""Check test for another process, encrypted if it contains secrets."""

from typing import Any
from uuid import UUID

import msgspec

from ...engine.keyring import Keyring
from ..rows import CheckTest
from ..rules.monitor import MonitorDraft
from ..tables.check_tests import place_of
from .config_secrets import split


class CheckTestDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `make_check`. `values` are the secrets that the config refers to, `org` is the
    organization that the CPU of the run is charged to.
    """

    type: str
    target: str
    method: str | None
    config: dict[str, Any]
    conditions: list[str]
    retries: int
    timeout_seconds: int
    interval_seconds: int
    values: dict[str, str]
    show_values: bool = False
    org: int = 0

    def __repr__(self) -> str:
        return "CheckTestDocument(…)"


def document_of(draft: MonitorDraft, values: dict[str, str], org: int) -> CheckTestDocument:
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
        show_values=draft.show_values,
        org=org,
    )


def close_document(
    document: CheckTestDocument, keyring: Keyring, trial: UUID
) -> tuple[str | None, bytes | None]:
    """Returns the document as text or encrypted.

    Raises:
        Refused encryption_key_missing if it must be encrypted and no key exists.
    """
    data = msgspec.json.encode(document)
    if document.values or split(document.type, document.config)[1]:
        return None, keyring.seal(data, place_of(trial))
    return data.decode(), None


def open_document(trial: CheckTest, keyring: Keyring) -> CheckTestDocument:
    """Returns the document of a check test.

    Raises:
        CannotOpen if no key of the ring decrypts it.
    """
    data = (
        keyring.open(trial.document_ciphertext, place_of(trial.uid))
        if trial.document_ciphertext is not None
        else (trial.document or "").encode()
    )
    return msgspec.json.decode(data, type=CheckTestDocument)
