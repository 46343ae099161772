"""Begin and end of a warning that a certificate ends soon, with the notices."""

from enum import StrEnum

from uuid_utils.compat import uuid7

from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.rules.certificate import SeenCertificate
from ..queries.certificate_warnings import select_candidate
from ..queries.quiet_monitors import select_quiet
from ..rules.outage_text import (
    certificate_ended_title,
    certificate_text,
    certificate_title,
)
from ..tables.certificate_warnings import open_warning, pop_warning
from ..tables.outages import LockedMonitor, lock_free_subjects
from .notify_warning import DELETED, STATUS_UNCHANGED, notify_begin, notify_end

TURNED_OFF = "The setting was removed."
NO_TLS = "The checks use no TLS any more."


class CertificateOutcome(StrEnum):
    BEGAN = "began"
    ENDED = "ended"
    # Another transaction has locked the monitor or decided, or the begin has to wait: the monitor
    # is silenced, muted or in maintenance.
    LATER = "later"


async def tell_certificate(tx: Tx, key: MonitorKey) -> CertificateOutcome:
    """Decides about the warning of a monitor under its lock, and queues the notices."""
    subject = (await lock_free_subjects(tx, [key]))[0].get(key)
    one = await select_candidate(tx, key)
    if subject is None or one is None:
        return CertificateOutcome.LATER
    if not one.is_due(tx.now):
        return CertificateOutcome.LATER
    seen = one.watched(tx.now).certificate
    if one.since is not None:
        await _end(tx, subject, _why_ended(one.days, seen))
        return CertificateOutcome.ENDED
    if seen is None or await select_quiet(tx, [key]):
        return CertificateOutcome.LATER
    thread = uuid7()
    await open_warning(tx, key, tx.now, thread)
    title = certificate_title(subject.name, seen.ends_at, tx.now)
    why = certificate_text(seen.ends_at, seen.seen_at, one.days)
    await notify_begin(tx, subject, thread, title, why, tx.now, STATUS_UNCHANGED)
    return CertificateOutcome.BEGAN


def _why_ended(days: int, seen: SeenCertificate | None) -> str:
    if not days:
        return TURNED_OFF
    return NO_TLS if seen is None else certificate_text(seen.ends_at, seen.seen_at, days)


async def end_of_deleted(tx: Tx, subject: LockedMonitor) -> None:
    """Ends the warning of a locked monitor that is deleted or retired, if it has one."""
    await _end(tx, subject, DELETED)


async def _end(tx: Tx, subject: LockedMonitor, why: str) -> None:
    popped = await pop_warning(tx, subject.key)
    if popped is not None:
        since, thread = popped
        title = certificate_ended_title(subject.name)
        await notify_end(tx, subject, thread, title, why, since, STATUS_UNCHANGED)
