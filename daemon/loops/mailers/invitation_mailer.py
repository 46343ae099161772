"""Mailer of invitations. It creates the link of each e-mail when it sends the e-mail.

An invitation is leased for longer than an attempt lasts. It is retried at growing intervals, up to
a limit. The link of each attempt invalidates the previous one.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import trio
from uuid_utils.compat import uuid7

from ....probes.senders.send_result import NotDelivered, SendContext
from ....probes.senders.subscriber_mail import SubscriberMail, send_letter
from ....storage.accounts.rows import InvitationRow
from ....storage.accounts.rules.invitation import LEASE_US, next_attempt_at
from ....storage.accounts.tables.invitations import lease_invitations, postpone_mail, set_mailed
from ....storage.accounts.transactions.edit_invitations import begin_mail
from ....storage.core.instant import SECOND, Instant
from ....storage.engine.keyring import Keyring
from ....storage.engine.pools import Pool, Tx
from ....storage.notifications.queries.mail_settings import Mailing, mailing_in_force
from ...runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.invitation_mailer")

# A new invitation of this process wakes the loop; the pause is for those of other processes.
PAUSE_SECONDS: Final = 5.0
AT_ONCE: Final = 5


@dataclass(frozen=True)
class InvitationMailer:
    pool: Pool
    keyring: Keyring
    means: SendContext
    base_url: str
    clock: Callable[[], Instant]
    wake: WakeEvent = field(default_factory=WakeEvent)

    async def pass_once(self) -> int:
        """Leases and sends due invitations; returns their number."""
        async with self.pool.statement("lease_invitations") as tx:
            due = await lease_invitations(tx, AT_ONCE)
        async with trio.open_nursery() as nursery:
            for uid in due:
                nursery.start_soon(self._send, uid)
        return len(due)

    async def _send(self, uid: UUID) -> None:
        with trio.move_on_after(LEASE_US / SECOND):
            mailing, row, letter = await self.pool.transact(
                "begin_invitation_mail", lambda tx: self._begin(tx, uid)
            )
            if row is None or row.mail_due_at is None or letter is None:
                return
            try:
                await send_letter(letter, mailing.means)
            except NotDelivered as why:
                extra = {"reason": why.reason, "attempts": row.attempts}
                log.warning("invitation mail failed", extra=extra)
                at = next_attempt_at(row.attempts, self.clock())
                async with self.pool.statement("postpone_invitation_mail") as tx:
                    await postpone_mail(tx, uid, row.mail_due_at, at)
                return
            async with self.pool.statement("record_invitation_mail") as tx:
                await set_mailed(tx, uid, row.mail_due_at)

    async def _begin(
        self, tx: Tx, uid: UUID
    ) -> tuple[Mailing, InvitationRow | None, SubscriberMail | None]:
        mailing = await mailing_in_force(tx, self.keyring, self.means, self.base_url)
        begun = await begin_mail(tx, uid)
        if begun is None:
            return mailing, None, None
        row, token = begun
        return mailing, row, invitation_letter(row, mailing.base_url, token)


def invitation_letter(row: InvitationRow, base: str, token: str) -> SubscriberMail:
    place = row.organization if row.project_name is None else row.project_name
    return SubscriberMail(
        uid=str(uuid7()),
        to=row.email,
        subject=f"Invitation to {place} on Leadline",
        paragraphs=(
            f"{row.inviter or 'An administrator'} invites you to {place}.",
            "The link is valid for 7 days. "
            "If you do not expect this invitation, ignore this e-mail.",
        ),
        link=f"{base}/invitations/{token}",
        link_text="Accept the invitation",
    )
