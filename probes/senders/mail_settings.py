"""Mail settings of the installation: the server, the sender and the base URL of links.

If the server or the account changes, the password must be given again. Otherwise an administrator
could have the stored password sent to a server of their choice.
"""

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

SMTP_PORT: Final = 587
HOST_LONGEST: Final = 253
TEXT_LONGEST: Final = 500
# An address, or a name followed by the address in angle brackets. Line breaks are refused.
ADDRESS: Final = re.compile(r"\A[^\r\n<>]*<?[^\s<>@]+@[^\s<>@]+>?\Z")
_HOST: Final = re.compile(r"\A[^\s/@\[\]\x00-\x20\x7f]+\Z|\A\[[0-9A-Fa-f:.]+\]\Z")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Mail settings. `from_` is the sender.

    `smtp_password` is empty if it is not set, and in responses.
    """

    enabled: bool = False
    smtp_host: str = ""
    smtp_port: int = SMTP_PORT
    smtp_username: str = ""
    smtp_password: str = ""
    from_: str = msgspec.field(default="", name="from")
    public_base_url: str = ""

    def __repr__(self) -> str:
        return f"MailSettings({self.smtp_host}:{self.smtp_port})"


def mail_faults(mail: MailSettings) -> list[tuple[str, str]]:
    """Returns each invalid field with the reason."""
    faults = []
    if mail.enabled and not mail.smtp_host:
        faults.append(("smtp_host", "is required when mail is enabled"))
    if mail.smtp_host and (len(mail.smtp_host) > HOST_LONGEST or not _HOST.match(mail.smtp_host)):
        faults.append(("smtp_host", "must be a host's name or address"))
    if not 1 <= mail.smtp_port <= 65_535:
        faults.append(("smtp_port", "must be 1 to 65535"))
    if mail.enabled and not mail.from_:
        faults.append(("from", "is required when mail is enabled"))
    if mail.from_ and (len(mail.from_) > TEXT_LONGEST or not ADDRESS.search(mail.from_)):
        faults.append(("from", "must contain an e-mail address"))
    for name, text in (
        ("smtp_username", mail.smtp_username),
        ("smtp_password", mail.smtp_password),
    ):
        if len(text) > TEXT_LONGEST or _CONTROL.search(text):
            faults.append((name, f"must be at most {TEXT_LONGEST} characters of one line"))
    if mail.smtp_username and not mail.smtp_password:
        faults.append(("smtp_password", "is required with smtp_username"))
    if mail.smtp_password and not mail.smtp_username:
        faults.append(("smtp_username", "is required with smtp_password"))
    fault = base_url_fault(mail.public_base_url)
    if fault is not None:
        faults.append(("public_base_url", fault))
    return faults


def base_url_fault(text: str) -> str | None:
    """Returns the reason to refuse a base URL of links, or None if it is valid or empty."""
    rule = "must be an http or https URL without a query"
    if not text:
        return None
    if len(text) > TEXT_LONGEST or any(char <= " " or char == "\x7f" for char in text):
        return rule
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return rule
    odd = parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in ("http", "https") or not parts.hostname or odd:
        return rule
    return None


def with_password(
    given: MailSettings, password: str | None, before: MailSettings
) -> MailSettings | None:
    """Returns the complete settings. If `password` is None or blank, that of `before` is used.

    Settings without a user name have only the given password.
    Returns None if `before` has another server or account, because its password must not be sent
    there.
    """
    if password or not given.smtp_username:
        return msgspec.structs.replace(given, smtp_password=password or "")
    is_same = (before.smtp_host, before.smtp_port, before.smtp_username) == (
        given.smtp_host,
        given.smtp_port,
        given.smtp_username,
    )
    if not is_same:
        return None
    return msgspec.structs.replace(given, smtp_password=before.smtp_password)
