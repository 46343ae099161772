"""Outbox leaser: leases due events, sends them and settles the outcomes.

A send ends before its lease. The process keeps each outcome until it is settled, also while the
database is unavailable. A settlement without a valid lease has no effect. The leases of a killed
process expire, so that every event is sent at least once.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import trio

from ...probes.senders.answer_buttons import BUTTON_KINDS
from ...probes.senders.phone import PHONE_KINDS
from ...probes.senders.send_result import SendContext
from ...storage.core.instant import SECOND
from ...storage.core.refusal import Unavailable
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool, Rejected, Tx
from ...storage.notifications.queries.answer_secrets import select_answer_secrets
from ...storage.notifications.queries.gateway import gateway_in_force
from ...storage.notifications.queries.mail_settings import Mailing, mailing_in_force
from ...storage.notifications.rows import Backlog
from ...storage.notifications.rules.delivery_retry import (
    CLAIM_MOST,
    LEASE_LOST,
    LEASE_US,
    SLOW_AFTER_US,
    CapacityLimits,
    DeliveryOutcome,
    DeliveryStatus,
    InFlight,
    rooms_beside,
)
from ...storage.notifications.tables.outbox_claims import is_delivery_due, select_backlog
from ...storage.notifications.transactions.lease_deliveries import (
    LeasedDeliveries,
    LeasedDelivery,
    lease_deliveries,
)
from ...storage.notifications.transactions.settle_deliveries import Settled, settle_deliveries
from ..runtime.wake_event import WakeEvent
from .delivery_sender import carry, kind_of
from .subscriber_sender import pass_on_all, record_end

log = logging.getLogger("leadline.outbox_leaser")

PAUSE_SECONDS: Final = 1.0
# Pause before events that another transaction had locked are settled again.
BUSY_SECONDS: Final = 0.05
BACKLOG_SECONDS: Final = 15.0
# Two failed samples.
BACKLOG_FRESH_US: Final = 30 * SECOND
# Time limit at the stop for outcomes that are not settled yet.
LAST_SETTLE_SECONDS: Final = 3.0
# Characters of an exception in the log.
CAUSE_LONGEST: Final = 500


class OutboxLeaser:
    """Leases, sends and settles events.

    `random` returns numbers in [0, 1). `base_url` is the address of the console, or empty. The
    stored mail and link settings take precedence over `means` and `base_url`.
    """

    def __init__(
        self,
        pool: Pool,
        keyring: Keyring,
        means: SendContext,
        *,
        max_attempts: int,
        base_url: str,
        random: Callable[[], float],
        permits: trio.CapacityLimiter,
    ) -> None:
        self._pool = pool
        self._keyring = keyring
        self._means = means
        self._max_attempts = max_attempts
        self._base_url = base_url
        self._random = random
        self._permits = permits
        # Deliveries that are being sent, or sent and not settled, with their start (Trio clock).
        self._held: dict[LeasedDelivery, float] = {}
        self._ended: list[tuple[LeasedDelivery, DeliveryOutcome]] = []
        self._sending: trio.Nursery | None = None
        self._closed = trio.Event()
        self._backlog_at = 0.0
        # True if more events can be due: the next pass then leases without a check.
        self._is_busy = False
        self.wake = WakeEvent()
        # By (kind, outcome): "failed" counts attempts, "dead" counts dead letters.
        self.counts: Counter[tuple[str, str]] = Counter()
        self.backlog: Backlog | None = None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Sends the deliveries that the passes lease; ends after `close` with the last of them.

        After a cancellation, the unfinished deliveries stay leased.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._sending = nursery
                task_status.started()
                try:
                    await self._closed.wait()
                finally:
                    # A running pass must not start tasks: after its last task the nursery accepts
                    # none.
                    self._sending = None
        finally:
            with trio.move_on_after(LAST_SETTLE_SECONDS, shield=True):
                await self._settle_at_last()

    async def _settle_at_last(self) -> None:
        try:
            await self._settle()
            while self._ended:
                # Another transaction had locked the event.
                await trio.sleep(BUSY_SECONDS)
                await self._settle()
        except Unavailable as error:
            # The events are sent again after their leases have expired.
            log.warning("deliveries not settled", extra={"cause": str(error)})

    def close(self) -> None:
        """Stops leasing; deliveries in progress finish."""
        self._closed.set()

    def rest_seconds(self) -> float:
        """Returns the time until the backlog is counted again."""
        return max(self._backlog_at - trio.current_time(), 0.0)

    async def pass_once(self) -> int:
        """Settles the outcomes and leases due events; returns the number of leased events."""
        await self._settle()
        leased = 0
        while claimed := await self._lease():
            leased += claimed
            if claimed < CLAIM_MOST:
                break
        await self._look_at_backlog()
        return leased

    async def _lease(self) -> int:
        if self._sending is None or self._closed.is_set() or not await self._is_due():
            return 0
        self._is_busy = False
        rooms = self._rooms()
        # Read before the lease, so that the deadline is not later than the expiry in the database.
        began = trio.current_time()
        claim, mailing = await self._pool.transact(
            "lease_deliveries", lambda tx: self._claim(tx, rooms)
        )
        if claim.lost:
            self.counts[LEASE_LOST, "dead"] += claim.lost
            log.error("events failed without an answer", extra={"count": claim.lost})
        self._is_busy = bool(claim.deliveries)
        for delivery in claim.deliveries:
            if self._sending is None:
                # Leased and not started: the lease expires.
                break
            self._held[delivery] = trio.current_time()
            self._sending.start_soon(self._send, delivery, mailing, began + LEASE_US / SECOND)
        return len(claim.deliveries)

    async def _claim(self, tx: Tx, rooms: CapacityLimits) -> tuple[LeasedDeliveries, Mailing]:
        """Claims deliveries; also returns the mail server and links to send them with."""
        claim = await lease_deliveries(tx, rooms, self._max_attempts)
        mailing = await mailing_in_force(tx, self._keyring, self._means, self._base_url)
        if any(one.channel and one.channel.type in PHONE_KINDS for one in claim.deliveries):
            mailing = mailing.with_gateway(await gateway_in_force(tx, self._keyring))
        if any(one.channel and one.channel.type in BUTTON_KINDS for one in claim.deliveries):
            secrets = await select_answer_secrets(tx, self._keyring)
            means = replace(
                mailing.means,
                slack_buttons=bool(secrets.slack_signing_secret),
                telegram_buttons=bool(secrets.telegram_secret),
            )
            mailing = replace(mailing, means=means)
        return claim, mailing

    async def _is_due(self) -> bool:
        if self._is_busy:
            return True
        async with self._pool.statement("is_delivery_due") as tx:
            return await is_delivery_due(tx)

    def _rooms(self) -> CapacityLimits:
        slow_since = trio.current_time() - SLOW_AFTER_US / SECOND
        return rooms_beside(
            InFlight(delivery.is_page, delivery.is_failing, since <= slow_since)
            for delivery, since in self._held.items()
        )

    async def _send(self, delivery: LeasedDelivery, mailing: Mailing, deadline: float) -> None:
        outcome = DeliveryOutcome("timeout")
        with trio.CancelScope(deadline=deadline):
            async with self._permits:
                try:
                    outcome = await self._carry(delivery, mailing)
                except Exception as error:
                    # A fault in one event must not end the delivery loop.
                    extra = {"outbox_event": str(delivery.event.uid), "cause": _cause(error)}
                    log.exception("delivery raised an exception", extra=extra)
                    outcome = DeliveryOutcome("internal_error", is_ours=True)
        self._ended.append((delivery, outcome))
        self.wake.set()

    async def _carry(self, delivery: LeasedDelivery, mailing: Mailing) -> DeliveryOutcome:
        if delivery.event.page is not None:
            outcome = await pass_on_all(self._pool, delivery)
            # The new events of subscribers are due immediately.
            self._is_busy = True
            return outcome
        outcome = await carry(delivery, self._keyring, mailing.means, mailing.base_url)
        if delivery.subscriber is not None:
            return await record_end(
                self._pool, self._keyring, delivery, outcome, self._max_attempts
            )
        return outcome

    async def _settle(self) -> None:
        """Settles all outcomes together, or one by one if that transaction fails."""
        left, self._ended = self._ended, []
        try:
            if left:
                await self._settle_some(left)
                left = []
        except Unavailable:
            raise
        except Exception as error:
            log.warning("deliveries are settled one by one", extra={"cause": _cause(error)})
            while left:
                await self._settle_alone(left[0])
                left = left[1:]
        finally:
            # Outcomes that were not stored are stored when the database is available again.
            self._ended += left

    async def _settle_alone(self, one: tuple[LeasedDelivery, DeliveryOutcome]) -> None:
        try:
            await self._settle_some([one])
        except Unavailable:
            raise
        except Exception as error:
            # A fault in one event must not end the delivery loop. The event is leased again after
            # its lease has expired, and becomes a dead letter after its last attempt.
            extra = {"outbox_event": str(one[0].event.uid), "cause": _cause(error)}
            is_refused = isinstance(error, Rejected)
            log.error("delivery result not stored", extra=extra, exc_info=not is_refused)
            self._held.pop(one[0], None)

    async def _settle_some(self, batch: list[tuple[LeasedDelivery, DeliveryOutcome]]) -> None:
        settled = await self._pool.transact(
            "settle_deliveries",
            lambda tx: settle_deliveries(tx, batch, self._max_attempts, self._random),
        )
        busy = [item for item in batch if item[0].event.key in settled.busy]
        self._is_busy = self._is_busy or settled.readied > 0
        for delivery, outcome in batch:
            self._count(delivery, outcome, settled)
        for item in batch:
            if item not in busy:
                del self._held[item[0]]
        if busy:
            self._ended += busy
            if self._sending is not None:
                self._sending.start_soon(self._wake_soon)

    def _count(self, delivery: LeasedDelivery, outcome: DeliveryOutcome, settled: Settled) -> None:
        became = settled.became.get(delivery.event.key)
        if became is None:
            return
        kind = kind_of(delivery)
        self.counts[kind, "delivered" if outcome.is_delivered else "failed"] += 1
        beside = settled.dead_beside[delivery.event.key]
        if beside:
            self.counts[kind, "dead"] += beside
            extra = {"reason": outcome.reason, "kind": kind, "count": beside}
            log.error("events that waited moved to the dead letters", extra=extra)
        if became is DeliveryStatus.DEAD:
            self.counts[kind, "dead"] += 1
            extra = {"outbox_event": str(delivery.event.uid), "reason": outcome.reason}
            log.error("event moved to the dead letters", extra=extra | {"kind": kind})

    async def _wake_soon(self) -> None:
        with trio.move_on_after(BUSY_SECONDS):
            await self._closed.wait()
        self.wake.set()

    async def _look_at_backlog(self) -> None:
        if trio.current_time() < self._backlog_at:
            return
        # Set first: if the count times out, the deliveries do not wait for it in every pass.
        self._backlog_at = trio.current_time() + BACKLOG_SECONDS
        async with self._pool.transaction("count_backlog", read_only=True) as tx:
            self.backlog = await select_backlog(tx)


def _cause(error: Exception) -> str:
    return (str(error) if isinstance(error, Rejected) else repr(error))[:CAUSE_LONGEST]
