"""Mail server and link base URL: the stored setting, else the configuration.

They are read at each use, so that a change is effective immediately in every process.
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ....probes.senders.gateway_settings import PhoneGateway
from ....probes.senders.mail_settings import MailSettings
from ....probes.senders.public_address import outside_base_path, used_address
from ....probes.senders.send_result import OutgoingMail, SendContext
from ...accounts.rows import SettingRow
from ...accounts.tables.instance_settings import select_whole_setting
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx

NAME: Final = "mail"


@dataclass(frozen=True, slots=True)
class Mailing:
    """Mail settings in force.

    `base_url` is the prefix of links, without a final slash, or empty.
    """

    means: SendContext
    base_url: str

    def with_gateway(self, gateway: PhoneGateway | None) -> "Mailing":
        return replace(self, means=replace(self.means, gateway=gateway))

    @property
    def can_link(self) -> bool:
        return bool(self.base_url)

    @property
    def can_mail(self) -> bool:
        return self.means.mail is not None and self.can_link


def place_of(row: SettingRow) -> CipherContext:
    return CipherContext("settings", "secret_ciphertext", row.uid)


async def select_mail_settings(tx: Tx, keyring: Keyring) -> MailSettings | None:
    """Returns the stored setting; None if it was never set.

    Raises: CannotOpen if no key decrypts the password.
    """
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return None
    found = msgspec.json.decode(row.value, type=MailSettings)
    if row.secret_ciphertext is None:
        return found
    password = keyring.open(row.secret_ciphertext, place_of(row)).decode()
    return msgspec.structs.replace(found, smtp_password=password)


async def select_mail_shown(tx: Tx) -> tuple[MailSettings, bool] | None:
    """Returns the stored setting without the password, and whether a password exists."""
    row = await select_whole_setting(tx, NAME)
    if row is None:
        return None
    return msgspec.json.decode(row.value, type=MailSettings), row.secret_ciphertext is not None


async def mailing_in_force(
    tx: Tx, keyring: Keyring, configured: SendContext, base_url: str
) -> Mailing:
    """Returns the configuration, overridden by the stored setting.

    A stored base URL outside the path prefix of the installation is ignored.
    If no key decrypts the password, no mail server is available.
    """
    usual = Mailing(configured, base_url.rstrip("/"))
    try:
        found = await select_mail_settings(tx, keyring)
    except CannotOpen:
        return replace(usual, means=replace(configured, mail=None))
    if found is None:
        return usual
    means = replace(configured, mail=server_of(found, configured))
    stored = found.public_base_url.rstrip("/")
    fault = outside_base_path(stored, configured.base_path)
    return Mailing(means, used_address("public_base_url", stored, usual.base_url, fault))


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
