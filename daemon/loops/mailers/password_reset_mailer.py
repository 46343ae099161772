"""Mailer of password resets. Sends a message only if an account has the requested address.

A request is leased for longer than an attempt lasts. It is retried at growing intervals, up to a
limit. The message of each attempt invalidates the previous one.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import trio
from uuid_utils.compat import uuid7

from ....probes.senders.send_result import NotDelivered, SendContext
from ....probes.senders.subscriber_mail import SubscriberMail, send_letter
from ....storage.accounts.rows import ResetRequestRow
from ....storage.accounts.rules.password_reset import LEASE_US, TTL_WORDS, tried_again_at
from ....storage.accounts.tables.password_resets import (
    delete_request,
    lease_requests,
    postpone_request,
)
from ....storage.accounts.transactions.reset_password_by_mail import begin_reset
from ....storage.core.instant import SECOND, Instant
from ....storage.engine.keyring import Keyring
from ....storage.engine.pools import Pool, Tx
from ....storage.notifications.queries.mail_settings import Mailing, mailing_in_force
from ...runtime.wake_event import WakeEvent

log = logging.getLogger("leadline.password_reset_mailer")

PAUSE_SECONDS: Final = 1.0
AT_ONCE: Final = 5


class PasswordResetMailer:
    def __init__(
        self,
        pool: Pool,
        keyring: Keyring,
        means: SendContext,
        base_url: str,
        clock: Callable[[], Instant],
    ) -> None:
        self._pool = pool
        self._keyring = keyring
        self._means = means
        self._base_url = base_url
        self._clock = clock
        self.wake = WakeEvent()

    async def pass_once(self) -> int:
        """Leases and answers requests; returns their number."""
        async with self._pool.statement("lease_reset_requests") as tx:
            requests = await lease_requests(tx, AT_ONCE)
        async with trio.open_nursery() as nursery:
            for request in requests:
                nursery.start_soon(self._answer, request)
        return len(requests)

    async def _answer(self, request: ResetRequestRow) -> None:
        with trio.move_on_after(LEASE_US / SECOND):
            mailing, begun = await self._pool.transact(
                "begin_reset", lambda tx: self._begin(tx, request)
            )
            if begun is None:
                return
            try:
                await send_letter(begun, mailing.means)
            except NotDelivered as why:
                await self._put_off(request, why.reason)
                return
            async with self._pool.statement("delete_reset_request") as tx:
                await delete_request(tx, request.address)

    async def _begin(
        self, tx: Tx, request: ResetRequestRow
    ) -> tuple[Mailing, SubscriberMail | None]:
        mailing = await mailing_in_force(tx, self._keyring, self._means, self._base_url)
        begun = await begin_reset(tx, request)
        if begun is None:
            return mailing, None
        to, token = begun
        return mailing, reset_letter(to.email, mailing.base_url, token)

    async def _put_off(self, request: ResetRequestRow, reason: str) -> None:
        at = tried_again_at(request.attempts, self._clock())
        extra = {"reason": reason, "attempts": request.attempts}
        log.warning("password reset mail failed", extra=extra)
        change = (
            partial(delete_request, address=request.address)
            if at is None
            else partial(postpone_request, address=request.address, at=at)
        )
        async with self._pool.statement("postpone_reset_request") as tx:
            await change(tx)


def reset_address(base: str, token: str) -> str:
    return f"{base}/reset/{token}"


def reset_letter(to: str, base: str, token: str) -> SubscriberMail:
    return SubscriberMail(
        uid=str(uuid7()),
        to=to,
        subject="Reset your Leadline password",
        paragraphs=(
            "A password reset was requested for your account.",
            f"The link is valid for {TTL_WORDS} and can be used once. "
            "If this was not you, ignore this e-mail.",
        ),
        link=reset_address(base, token),
        link_text="Choose a new password",
    )
