"""Mail server and link base URL that are currently in force."""

from dataclasses import replace

from ...storage.engine.pools import Tx
from ...storage.notifications.queries.mail_settings import Mailing, mailing_in_force
from .app_context import AppContext


async def mailing_now(context: AppContext) -> Mailing:
    async with context.pool.statement("read_mail_config") as tx:
        return await mailing_in(tx, context)


async def mailing_in(tx: Tx, context: AppContext) -> Mailing:
    options = context.options
    means = replace(context.means, base_path=options.base_path)
    return await mailing_in_force(tx, context.keyring, means, options.public_base_url)
