"""What every route is given: the parts of the house that HTTP reaches, made once at the start."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import trio

from ...probes.net.egress import Egress
from ...probes.senders import SendContext
from ...storage.core.instant import Instant
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.results.event_bus import Bus
from ...storage.results.queries.push_targets import PushTarget
from ..auth.oidc_providers import ProviderCache
from ..auth.passwords import Passwords
from .admission_control import AdmissionControl, ClientBuckets, LoginAttempts, RateLimits
from .custom_domains import Domains
from .longpoll import LongPoll
from .options import HttpOptions
from .request_metrics import ChangeCounts, GateCounts
from .response_cache import ResponseCache
from .result_sink import EvaluateComposite, ResultSink

# What the interface states, where the configuration says nothing else. Of one principal's records
# at once it says nothing: a quarter of all, so that one pipeline cannot keep out the others.
GATE: Final = RateLimits(
    inflight_process=8, inflight_principal=2, principal_per_minute=10, process_per_minute=60
)
CHANGE_RECORDS: Final = RateLimits(
    inflight_process=32, inflight_principal=8, principal_per_minute=30, process_per_minute=300
)
SUBSCRIBE_PER_MINUTE: Final = 5
SUBSCRIBE_PER_HOUR: Final = 20
CHANGE_READS: Final = RateLimits(inflight_process=64)
# Public histories of status pages that are told at once, whoever asks.
HISTORIES: Final = RateLimits(inflight_process=8, busy="history_busy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What readyz says: each fault in a word or two; empty when all is well."""

    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """`on_edit` hastens the loops after a monitor was written; `forget` drops what the recorder
    knew of its state. `stopping` is set when open streams are to end."""

    pool: Pool
    clock: Callable[[], Instant]
    recorder: ResultSink
    evaluate_composite: EvaluateComposite
    bus: Bus
    keyring: Keyring
    reach: Egress
    means: SendContext
    passwords: Passwords
    options: HttpOptions
    requests: trio.CapacityLimiter
    test_permits: trio.CapacityLimiter
    # The threads that read bundles: a large one takes seconds.
    readers: trio.CapacityLimiter
    # The way to providers of single sign-on, where it is another than that of checks.
    to_providers: Egress | None = None
    # Of signing in and changing a password: how often a client may try.
    logins: ClientBuckets = field(default_factory=ClientBuckets)
    # Of beginning to sign in elsewhere.
    flows: ClientBuckets = field(default_factory=ClientBuckets)
    # Of single sign-on, as they were last asked.
    providers: ProviderCache = field(init=False)
    gate: AdmissionControl = field(default_factory=lambda: AdmissionControl(GATE))
    gate_counts: GateCounts = field(default_factory=GateCounts)
    change_records: AdmissionControl = field(
        default_factory=lambda: AdmissionControl(CHANGE_RECORDS)
    )
    change_reads: AdmissionControl = field(default_factory=lambda: AdmissionControl(CHANGE_READS))
    histories: AdmissionControl = field(default_factory=lambda: AdmissionControl(HISTORIES))
    # Of asking to be told of a status page, and of confirming it, each: how often a client may.
    subscribing: LoginAttempts = field(
        default_factory=lambda: LoginAttempts(SUBSCRIBE_PER_MINUTE, SUBSCRIBE_PER_HOUR)
    )
    confirming: LoginAttempts = field(
        default_factory=lambda: LoginAttempts(SUBSCRIBE_PER_MINUTE, SUBSCRIBE_PER_HOUR)
    )
    # Public answers, told again for a moment.
    kept: ResponseCache = field(default_factory=ResponseCache)
    # Host names of status pages.
    domains: Domains = field(init=False)
    change_counts: ChangeCounts = field(default_factory=ChangeCounts)
    on_edit: Callable[[], None] = lambda: None
    # After a commit that told somebody: what sends it need not wait for its next look.
    on_told: Callable[[], None] = lambda: None
    # After somebody asked for a new password.
    on_reset_asked: Callable[[], None] = lambda: None
    # After somebody wrote something: other processes may have kept what it changes.
    on_written: Callable[[], None] = lambda: None
    readiness: Callable[[], Readiness] = Readiness
    # True from the first readiness on, also while the database fails later.
    was_ready: Callable[[], bool] = lambda: True
    metrics: Callable[[], bytes] = lambda: b""
    stopping: trio.Event = field(default_factory=trio.Event)
    # Agents' claims that wait for work.
    lookout: LongPoll = field(init=False)
    # Push tokens looked up lately, with until when that may be gone by.
    push_targets: dict[bytes, tuple[float, PushTarget]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lookout", LongPoll(self.stopping))
        object.__setattr__(self, "domains", Domains(self.pool))
        object.__setattr__(self, "providers", ProviderCache(self.to_providers or self.reach))

    def forget(self) -> None:
        """Somebody wrote something, here or elsewhere: nothing that the public was told before is
        told any more."""
        self.kept.forget()
        self.domains.forget()
