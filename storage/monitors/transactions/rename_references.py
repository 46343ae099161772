"""References of monitors to a renamed secret: in `_ref` settings and in canary workflows."""

from typing import Any

import msgspec

from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ..rows import MonitorRow
from ..rules.monitor import MonitorType
from ..rules.secret import references
from .config_secrets import decrypt, encrypt, join, split

WORKFLOW = "workflow"


def renamed_config(
    row: MonitorRow, name: str, new_name: str, keyring: Keyring
) -> tuple[str, bytes | None]:
    """Returns the config of a monitor as JSON text, and its encrypted secrets, with the new name.

    Raises:
        Refused invalid if no key decrypts the workflow of a canary.
    """
    plain = msgspec.json.decode(row.config)
    for setting, referred in references(plain).items():
        if referred == name:
            plain[setting] = new_name
    if row.type != MonitorType.ASYNC_CANARY:
        return msgspec.json.encode(plain).decode(), row.config_ciphertext
    try:
        whole = join(plain, decrypt(keyring, row.config_ciphertext, row.uid))
    except CannotOpen:
        fault = "has a workflow that no configured key opens"
        raise Refused("invalid", f"monitor {row.name}", fault) from None
    whole[WORKFLOW] = _renamed_workflow(whole[WORKFLOW], name, new_name)
    plain, secret = split(row.type, whole)
    return msgspec.json.encode(plain).decode(), encrypt(keyring, secret, row.uid)


def _renamed_workflow(text: str, name: str, new_name: str) -> dict[str, Any]:
    """Returns the workflow of a JSON text; its `secrets` map bindings to names of secrets."""
    document: dict[str, Any] = msgspec.json.decode(text)
    bindings = document.get("secrets", {})
    renamed = {key: new_name if to == name else to for key, to in bindings.items()}
    return {**document, "secrets": renamed}
