"""Mail server and link base URL, set by global admins."""

from typing import Final

import msgspec

from ....probes.senders.mail_settings import MailSettings, mail_faults, with_password
from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand
from ...accounts.transactions.write_setting import write_setting
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..queries.mail_settings import NAME, select_mail_settings

EDIT: Final = Permission(Need.GLOBAL_ADMIN)


async def put_mail(
    tx: Tx,
    principal: Principal,
    given: MailSettings,
    password: str | None,
    configured: MailSettings,
    keyring: Keyring,
) -> MailSettings:
    """Stores the settings and returns them with the password. Equal settings are not audited.

    A blank `password` keeps the one in force, or that of `configured` if no setting was stored.

    Raises: Refused forbidden, encryption_key_missing, or invalid with the field.
    """
    demand(principal, EDIT, None)
    try:
        before = await select_mail_settings(tx, keyring) or configured
    except CannotOpen:
        # The stored password cannot be decrypted, so it must be entered again.
        before = MailSettings()
    whole = with_password(given, password, before)
    if whole is None:
        fault = "must be given again, as server or account changed"
        raise Refused("invalid", "smtp_password", fault)
    for field, rule in mail_faults(whole):
        raise Refused("invalid", field, rule)
    plain = msgspec.structs.replace(whole, smtp_password="")
    value = msgspec.json.encode(plain).decode()
    if await write_setting(tx, NAME, value, whole.smtp_password, keyring):
        target = f"settings:mail enabled={whole.enabled} host={whole.smtp_host}"
        await audit(tx, principal, INSTANCE, "settings.mail", target)
    return whole
