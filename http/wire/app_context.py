"""Context of every route: the components that HTTP uses, built once at the start."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import trio

from ...probes.check.domain_evidence import DomainEvidence
from ...probes.domain_proof import HostNames, look_at_domain
from ...probes.net.egress import Egress
from ...probes.senders.send_result import SendContext
from ...storage.accounts.queries.principals import TokenUsed
from ...storage.accounts.rules.access import Scope
from ...storage.core.instant import Instant
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.results.event_bus import Bus
from ...storage.results.queries.push_targets import PushTarget
from ..auth.oidc_providers import ProviderCache
from ..auth.passwords import Passwords
from ..auth.rights_cache import RightsCache
from .admission_control import AdmissionControl, ClientBuckets, LoginAttempts, RateLimits
from .custom_domains import Domains
from .longpoll import LongPoll
from .options import HttpOptions
from .project_cache import ProjectCache
from .request_metrics import ChangeCounts, GateCounts
from .response_cache import ResponseCache
from .result_sink import EvaluateComposite, ResultSink
from .shared_reads import SharedReads

# Defaults of the public interface. The concurrency limit per principal is a quarter of the
# process's, so that one pipeline cannot exclude the others.
GATE: Final = RateLimits(
    inflight_process=8, inflight_principal=2, principal_per_minute=10, process_per_minute=60
)
CHANGE_RECORDS: Final = RateLimits(
    inflight_process=32, inflight_principal=8, principal_per_minute=30, process_per_minute=300
)
SUBSCRIBE_PER_MINUTE: Final = 5
SUBSCRIBE_PER_HOUR: Final = 20
CHANGE_READS: Final = RateLimits(inflight_process=64)
# Per organization. A check takes up to 10 s of the name servers and of a web server.
DOMAIN_CHECKS: Final = RateLimits(
    inflight_process=4, inflight_principal=1, principal_per_minute=10, process_per_minute=60
)
# Public histories of status pages that are computed concurrently.
HISTORIES: Final = RateLimits(inflight_process=8, busy="history_busy")


# A monitor uses 1 to 2 KB in each form of its list, with and without secrets.
LIST_BYTES_MOST: Final = 24 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Content of readyz: one or two words per fault. Empty if the process is ready."""

    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """Components and callbacks of the routes.

    `on_edit` wakes the loops after a monitor was written. `forget` drops the cached answers and
    rights. `stopping` is set when open streams must end.
    """

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
    large_requests: trio.CapacityLimiter
    test_permits: trio.CapacityLimiter
    # The threads that read bundles: a large one takes seconds.
    readers: trio.CapacityLimiter
    # Egress to providers of single sign-on, if it differs from the egress of checks.
    to_providers: Egress | None = None
    # Attempts per client to sign in or to change a password.
    logins: ClientBuckets = field(default_factory=ClientBuckets)
    # Tracebacks of requests without a credential.
    tracebacks: ClientBuckets = field(default_factory=ClientBuckets)
    # Attempts per client to start single sign-on.
    flows: ClientBuckets = field(default_factory=ClientBuckets)
    # Cached documents of the providers of single sign-on.
    providers: ProviderCache = field(init=False)
    gate: AdmissionControl = field(default_factory=lambda: AdmissionControl(GATE))
    gate_counts: GateCounts = field(default_factory=GateCounts)
    change_records: AdmissionControl = field(
        default_factory=lambda: AdmissionControl(CHANGE_RECORDS)
    )
    change_reads: AdmissionControl = field(default_factory=lambda: AdmissionControl(CHANGE_READS))
    histories: AdmissionControl = field(default_factory=lambda: AdmissionControl(HISTORIES))
    # Attempts per client to subscribe to a status page, and to confirm.
    subscribing: LoginAttempts = field(
        default_factory=lambda: LoginAttempts(SUBSCRIBE_PER_MINUTE, SUBSCRIBE_PER_HOUR)
    )
    confirming: LoginAttempts = field(
        default_factory=lambda: LoginAttempts(SUBSCRIBE_PER_MINUTE, SUBSCRIBE_PER_HOUR)
    )
    # Public answers that are reused for a short time.
    kept: ResponseCache = field(default_factory=ResponseCache)
    # What API tokens may do, by digest, and the scopes of projects and organizations.
    tokens: RightsCache[TokenUsed] = field(init=False)
    scopes: RightsCache[Scope] = field(default_factory=RightsCache)
    # Lists that concurrent requests read together.
    shared_reads: SharedReads[Any] = field(default_factory=SharedReads)
    # Statuses of the monitors of a project, see monitors/console/project_statuses.py.
    statuses: ProjectCache[Any] = field(default_factory=ProjectCache)
    # JSON of the monitors of a project, see monitors/routes/kept_lists.py. The weight is bytes.
    lists: ProjectCache[Any] = field(default_factory=lambda: ProjectCache(LIST_BYTES_MOST))
    # Host names of status pages, and the checks of their proofs.
    domains: Domains = field(init=False)
    domain_checks: AdmissionControl = field(default_factory=lambda: AdmissionControl(DOMAIN_CHECKS))
    look_at_domain: Callable[[str], Awaitable[DomainEvidence]] = field(init=False)
    host_names: HostNames = field(default_factory=HostNames)
    change_counts: ChangeCounts = field(default_factory=ChangeCounts)
    on_edit: Callable[[], None] = lambda: None
    # Called after a commit that wrote a notification: wakes the sender.
    on_told: Callable[[], None] = lambda: None
    # Called after a password reset was requested.
    on_reset_asked: Callable[[], None] = lambda: None
    # Called after an invitation was created or sent again.
    on_invited: Callable[[], None] = lambda: None
    # Called after a write: other processes may have cached the old data.
    on_written: Callable[[Scope | None], None] = lambda _: None
    readiness: Callable[[], Readiness] = Readiness
    # Stays true after the first readiness, even if the database fails later.
    was_ready: Callable[[], bool] = lambda: True
    metrics: Callable[[], bytes] = lambda: b""
    stopping: trio.Event = field(default_factory=trio.Event)
    # Claims of agents that wait for work.
    lookout: LongPoll = field(init=False)
    # Recently used push tokens, each with the Trio instant until which it is valid here.
    push_targets: dict[bytes, tuple[float, PushTarget]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lookout", LongPoll(self.stopping))
        object.__setattr__(self, "domains", Domains(self.pool))
        object.__setattr__(
            self, "tokens", RightsCache(lambda used: used.token.is_valid_at(self.clock()))
        )
        # Not the egress of checks: it reaches private networks, and this process can be in another
        # one than those that run checks.
        look = partial(look_at_domain, reach=self.means.reach)
        object.__setattr__(self, "look_at_domain", look)
        object.__setattr__(self, "providers", ProviderCache(self.to_providers or self.reach))

    def forget(self) -> None:
        """Drops all cached answers and rights after a write in this or another process."""
        self.kept.forget()
        self.tokens.forget()
        self.scopes.forget()
        self.domains.forget()
