"""Definitions, jobs and results as tests of agents need them."""

import os
from typing import Any
from uuid import UUID, uuid4

import msgspec

from leadline.daemon.agent.job_parser import SECOND
from leadline.daemon.agent.offline_schedule import KnownCheck
from leadline.probes.check.check import make_check
from leadline.probes.jobs.agent_protocol import Job, generation_of, window_job_id
from leadline.probes.jobs.envelope import NONCE_BYTES, SALT_BYTES, Contents, seal
from leadline.storage.core.instant import Instant, to_text

# 2026-01-05T00:00:00Z.
T0 = 1_767_571_200_000_000
TOKEN = "leadline_agent_" + "a" * 43
REGION = "hut"


def definition(
    interval_seconds: int = 60,
    anchor: int = T0,
    revision: int = 1,
    kind: str = "tcp",
    monitor: UUID | None = None,
) -> KnownCheck:
    return KnownCheck(
        monitor=monitor or uuid4(),
        revision=revision,
        anchor=anchor,
        interval=interval_seconds * SECOND,
        timeout=5 * SECOND,
        check=make_check(kind, "127.0.0.1:1", None, {}, []),
    )


def job(
    due: int = T0,
    *,
    monitor: UUID | None = None,
    kind: str = "tcp",
    target: str = "127.0.0.1:1",
    secret: Contents | None = None,
    is_window: bool = True,
    revision: int = 1,
    interval_seconds: int = 60,
    anchor: int = T0,
    lease_until: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """As an agent receives it: the JSON of it, decoded."""
    monitor = monitor or uuid4()
    made = Job(
        job_id=window_job_id(monitor, due, revision) if is_window else uuid4(),
        monitor_id=monitor,
        due_at=to_text(Instant(due)),
        type=kind,
        target=target,
        revision=revision,
        timeout_seconds=5,
        interval_seconds=interval_seconds,
        anchor=to_text(Instant(anchor)),
        lease_expires_at=to_text(
            Instant(due + 15 * SECOND if lease_until is None else lease_until)
        ),
        carrier=generation_of(kind, has_secrets=secret is not None),
        **more,
    )
    if secret is not None:
        made = seal(made, secret, TOKEN, os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES))
    raw: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return raw
