"""Row structs of changes that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from .rules.change import ChangeKind, ChangePhaseName, RecordedPhase


class ChangeRow(msgspec.Struct, frozen=True):
    """Change of a service. `started_at` is the instant of its start phase, or else its end."""

    org: int
    id: int
    service: int
    source: str
    external_id: str
    kind: ChangeKind
    started_at: Instant
    latest_at: Instant


class PhaseRow(msgspec.Struct, frozen=True):
    """Phase of a change. `actor_user` is None without a known user; see `actor_label`."""

    org: int
    change: int
    uid: UUID
    phase: ChangePhaseName
    occurred_at: Instant
    ref: str
    url: str
    decision: UUID | None
    actor_label: str
    actor_user: UUID | None
    via_token: bool
    recorded_at: Instant

    @property
    def known(self) -> RecordedPhase:
        return RecordedPhase(
            phase=self.phase,
            occurred_at=self.occurred_at,
            ref=self.ref,
            url=self.url,
            decision=self.decision,
        )
