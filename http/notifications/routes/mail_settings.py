"""Routes of the mail server and of the base URL for links.

Global admins set them. A change applies to the next e-mail.
"""

from typing import Final

from msgspec import UNSET

from ....probes.senders.mail_settings import MailSettings
from ....probes.senders.public_address import outside_base_path
from ....storage.notifications.queries.mail_settings import select_mail_shown
from ....storage.notifications.transactions.put_mail import EDIT, put_mail
from ...wire.app_context import AppContext
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import Request, setting_routes
from ...wire.schema import given
from ..schemas.mail import MailSettingsView, SetMailSettings

_OWN: Final = "/api/v1/settings/mail"


async def read(ask: Request) -> MailSettingsView:
    return await _settings_json(ask.context)


async def put(ask: Request) -> MailSettingsView:
    context, configured = ask.context, ask.context.options.mail
    settings = _settings(ask.body, configured)
    fault = outside_base_path(settings.public_base_url, context.options.base_path)
    if fault is not None:
        raise Problem(f"public_base_url: {fault}")
    password = given(ask.body.smtp_password)
    async with context.pool.transaction("put_mail") as tx:
        await put_mail(tx, ask.who, settings, password, configured, context.keyring)
    return await _settings_json(context)


def _settings(body: SetMailSettings, configured: MailSettings) -> MailSettings:
    host, port, username = body.smtp_host, body.smtp_port, body.smtp_username
    base = body.public_base_url
    return MailSettings(
        enabled=body.enabled,
        smtp_host=configured.smtp_host if host is UNSET else host.strip(),
        smtp_port=configured.smtp_port if port is UNSET else port,
        smtp_username=configured.smtp_username if username is UNSET else username,
        from_=configured.from_ if body.from_ is UNSET else body.from_.strip(),
        public_base_url=configured.public_base_url if base is UNSET else base.strip().rstrip("/"),
    )


async def _settings_json(context: AppContext) -> MailSettingsView:
    configured = context.options.mail
    async with context.pool.transaction("read_mail_settings", read_only=True) as tx:
        set_here = await select_mail_shown(tx)
        mailing = await mailing_in(tx, context)
    found, has_password = set_here or (configured, bool(configured.smtp_password))
    fault = outside_base_path(found.public_base_url, context.options.base_path)
    return MailSettingsView(
        configured=set_here is not None,
        enabled=found.enabled,
        smtp_host=found.smtp_host,
        smtp_port=found.smtp_port,
        smtp_username=found.smtp_username,
        smtp_password_set=has_password,
        from_=found.from_,
        public_base_url=found.public_base_url,
        deliverable=mailing.can_mail,
        public_base_url_fault=UNSET if fault is None else fault,
    )


ROUTES: Final = setting_routes(
    _OWN,
    read,
    put,
    EDIT,
    tag="mail_settings",
    body=SetMailSettings,
    answer=MailSettingsView,
    summaries=(
        "Read the mail server settings and the base URL of links.",
        "Set the mail server; applies from the next e-mail on.",
    ),
)
