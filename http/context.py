"""What every route is given: the parts of the house that HTTP reaches, made once at the start."""

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

import trio

from ..probes.reach.outward import Reach
from ..probes.senders import Means
from ..storage.bus import Bus
from ..storage.keyring import Keyring
from ..storage.pools import Pool
from ..storage.recorder import Recorder
from ..storage.rules.instant import Instant
from ..storage.views.push_targets import PushTarget
from .auth.passwords import Passwords
from .permits import ClientBuckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What of the configuration is HTTP's business."""

    cookie_name: str = "leadline_session"
    cookie_secure: bool = False
    session_ttl_seconds: int = 604_800
    local_enabled: bool = True
    min_password_length: int = 10
    login_rate_limit_per_minute: int = 10
    public_base_url: str = ""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    # Regions that the configuration knows; a monitor may stand in no other.
    regions: frozenset[str] = frozenset({"core"})
    heartbeat_days: int = 30
    ledger_days: int = 14
    version: str = ""
    commit: str = ""
    # What a stranger is told on the sign-in page of a first start.
    signs_in_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What readyz says: each fault in a word or two; empty when all is well."""

    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`on_edit` hastens the loops after a monitor was written; `forget` drops what the recorder
    knew of its state. `stopping` is set when open streams are to end."""

    pool: Pool
    clock: Callable[[], Instant]
    recorder: Recorder
    bus: Bus
    keyring: Keyring
    reach: Reach
    means: Means
    passwords: Passwords
    options: Options
    test_permits: trio.CapacityLimiter
    # Of signing in and changing a password: how often a client may try.
    logins: ClientBuckets = field(default_factory=ClientBuckets)
    on_edit: Callable[[], None] = lambda: None
    readiness: Callable[[], Readiness] = Readiness
    metrics: Callable[[], bytes] = lambda: b""
    stopping: trio.Event = field(default_factory=trio.Event)
    # Push tokens looked up lately, with until when that may be gone by.
    push_targets: dict[bytes, tuple[float, PushTarget]] = field(default_factory=dict)
