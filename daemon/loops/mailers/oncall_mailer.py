"""Mailer of on-call: finds hand-offs, and sends their summaries and the mails of cover requests.

An e-mail is leased for longer than an attempt lasts. It is retried at growing intervals, up to a
limit.
"""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from ....probes.senders.send_result import NotDelivered, SendContext
from ....probes.senders.subscriber_mail import SubscriberMail, send_letter
from ....storage.core.instant import SECOND
from ....storage.engine.keyring import Keyring
from ....storage.engine.pools import Pool
from ....storage.notifications.queries.mail_settings import mailing_in_force
from ....storage.oncall.rows import OnCallMailRow
from ....storage.oncall.tables.oncall_mails import (
    LEASE_US,
    delete_mail,
    lease_mails,
    postpone_mail,
)
from ....storage.oncall.tables.oncall_schedules import select_hand_offs_due
from ....storage.oncall.transactions.hand_over import hand_over_if_due

log = logging.getLogger("leadline.oncall_mailer")

PAUSE_SECONDS: Final = 20.0
HAND_OFFS_AT_ONCE: Final = 100
MAILS_AT_ONCE: Final = 5


@dataclass(frozen=True)
class OnCallMailer:
    pool: Pool
    keyring: Keyring
    means: SendContext
    base_url: str

    async def pass_once(self) -> int:
        """Records due hand-offs and sends due e-mails; returns the number of e-mails."""
        async with self.pool.transaction("find_hand_offs", read_only=True) as tx:
            due = await select_hand_offs_due(tx, HAND_OFFS_AT_ONCE)
        for schedule in due:
            await self.pool.transact("hand_over", partial(hand_over_if_due, schedule=schedule))
        sent = 0
        while True:
            async with self.pool.statement("lease_oncall_mails") as tx:
                mails = await lease_mails(tx, MAILS_AT_ONCE)
            async with trio.open_nursery() as nursery:
                for mail in mails:
                    nursery.start_soon(self._send, mail)
            sent += len(mails)
            if len(mails) < MAILS_AT_ONCE:
                return sent

    async def _send(self, row: OnCallMailRow) -> None:
        with trio.move_on_after(LEASE_US / SECOND):
            async with self.pool.transaction("read_mail_settings", read_only=True) as tx:
                mailing = await mailing_in_force(tx, self.keyring, self.means, self.base_url)
            letter = SubscriberMail(
                uid=str(row.uid),
                to=row.email,
                subject=row.subject,
                paragraphs=tuple(row.paragraphs),
                link=f"{mailing.base_url}/projects/{row.project}/on-call",
                link_text="On-call",
            )
            try:
                await send_letter(letter, mailing.means)
            except NotDelivered as why:
                extra = {"reason": why.reason, "attempts": row.attempts}
                log.warning("on-call mail failed", extra=extra)
                async with self.pool.statement("postpone_oncall_mail") as tx:
                    await postpone_mail(tx, row)
                return
            async with self.pool.statement("delete_oncall_mail") as tx:
                await delete_mail(tx, row.id)
