"""By which server letters go and where they lead: as it was set, else as it is configured.

Read anew each time that something is to be sent, so that what is set holds at once in every
process.
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ....probes.senders import SendContext
from ....probes.senders.mail_settings import MailSettings
from ....probes.senders.send_result import OutgoingMail
from ...accounts.rows import SettingRow
from ...accounts.tables.instance_settings import select_whole_setting
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx

NAME: Final = "mail"


@dataclass(frozen=True, slots=True)
class Mailing:
    """`base_url` is what links are made of, without a slash at its end, or empty."""

    means: SendContext
    base_url: str

    @property
    def can_link(self) -> bool:
        return bool(self.base_url)

    @property
    def can_mail(self) -> bool:
        return self.means.mail is not None and self.can_link


def place_of(row: SettingRow) -> CipherContext:
    return CipherContext("settings", "secret_ciphertext", row.uid)


async def select_mail_settings(tx: Tx, keyring: Keyring) -> MailSettings | None:
    """None where nobody ever set them. CannotOpen where no key opens the password."""
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return None
    found = msgspec.json.decode(row.value, type=MailSettings)
    if row.secret_ciphertext is None:
        return found
    password = keyring.open(row.secret_ciphertext, place_of(row)).decode()
    return msgspec.structs.replace(found, smtp_password=password)


async def select_mail_shown(tx: Tx) -> tuple[MailSettings, bool] | None:
    """Without the password, and whether there is one."""
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return None
    return msgspec.json.decode(row.value, type=MailSettings), row.secret_ciphertext is not None


async def mailing_in_force(
    tx: Tx, keyring: Keyring, configured: SendContext, base_url: str
) -> Mailing:
    """What is configured, with what was set in its place. A password that no key opens is no
    server that could be asked."""
    usual = Mailing(configured, base_url.rstrip("/"))
    try:
        found = await select_mail_settings(tx, keyring)
    except CannotOpen:
        return replace(usual, means=replace(configured, mail=None))
    if found is None:
        return usual
    means = replace(configured, mail=server_of(found, configured))
    return Mailing(means, found.public_base_url.rstrip("/"))


def server_of(mail: MailSettings, means: SendContext) -> OutgoingMail | None:
    if not mail.enabled or means.to_mail_server is None:
        return None
    return OutgoingMail(
        host=mail.smtp_host.strip("[]"),
        port=mail.smtp_port,
        sender=mail.from_,
        username=mail.smtp_username,
        password=mail.smtp_password,
        reach=means.to_mail_server,
    )
