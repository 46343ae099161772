"""Records the certificates that an agent saw. Those of other regions are left out."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import UnsetType

from ....probes.jobs.agent_protocol import AgentCertificate
from ...core.instant import EARLIEST, LATEST, SECOND, Instant, from_datetime
from ...engine.pools import Tx
from ...monitors.rows import CertificateReport
from ...monitors.tables.certificates import record_certificates
from ..queries.agent_monitors import select_watched


async def accept_certificates(tx: Tx, region: str, items: Sequence[AgentCertificate]) -> int:
    """Returns how many of them are of the present revision of a monitor of the region."""
    monitors = await select_watched(tx, sorted({item.monitor_id for item in items}))
    reports = [
        CertificateReport(
            monitor.key,
            item.revision,
            None if isinstance(item.ends_at, UnsetType) else _end(item.ends_at),
            from_datetime(item.seen_at),
        )
        for item in items
        if (monitor := monitors.get(item.monitor_id)) is not None and monitor.region == region
    ]
    return await record_certificates(tx, reports) if reports else 0


def _end(stated: datetime) -> Instant:
    """Returns the end in the range of instants: one with an offset can be beyond it.

    As in a certificate, it is a whole second, which the database stores exactly in all years.
    """
    return Instant(min(max(from_datetime(stated), EARLIEST), LATEST) // SECOND * SECOND)
