"""Builds the parts of a process from its settings; nothing here runs yet."""

import ipaddress
import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from uuid import UUID

from uuid_utils.compat import uuid7

from ..http.auth.passwords import Passwords
from ..http.context import Context, Options, Readiness
from ..probes.reach.outward import Reach, make_reach
from ..probes.reach.policy import Policy, notify_policy, probe_policy
from ..probes.senders import Means
from ..probes.senders.delivery import Mail
from ..storage.bus import Bus
from ..storage.clock import ProductClock, Reading
from ..storage.evaluator import Evaluator
from ..storage.keyring import Keyring
from ..storage.pools import Pool
from ..storage.recorder import Recorder
from ..storage.rules.instant import Instant
from ..storage.tables import presences
from . import limits
from .loops.attendance import Attendance, Identity
from .loops.catalogue import Catalogue
from .loops.composer import Composer
from .loops.janitor import Janitor
from .loops.listener import Listener
from .loops.prober import Prober
from .loops.repairer import Repairer
from .loops.sealer import Sealer
from .loops.ticker import Ticker
from .roles import PARTS, Part, Role
from .sections import Settings, split_address


@dataclass(slots=True)
class Pools:
    """Connections by what they are for: pages cannot starve results."""

    loops: Pool
    http: Pool


@dataclass(slots=True)
class House:
    """The parts of one process; those that its role does not run are None."""

    settings: Settings
    role: Role
    process: UUID
    pools: Pools
    clock: ProductClock
    bus: Bus
    keyring: Keyring
    reach: Reach
    means: Means
    recorder: Recorder
    attendance: Attendance
    janitor: Janitor
    ticker: Ticker | None
    composer: Composer | None
    listener: Listener | None
    sealer: Sealer | None
    repairer: Repairer | None
    prober: Prober | None


def version() -> str:
    return metadata.version("leadline")


def make_clock(pool: Pool) -> ProductClock:
    async def read() -> Reading:
        async with pool.statement("read_clock") as tx:
            return await presences.read_clock(tx)

    return ProductClock(read)


def build(
    settings: Settings, role: Role, pools: Pools, clock: ProductClock, keyring: Keyring
) -> House:
    parts = PARTS[role]
    process = uuid7()
    bus = Bus()
    recorder = Recorder(pools.loops, bus, clock.now)
    attendance = _attendance(settings, role, process, pools.loops, clock, recorder)
    recorder.on_deadline_waiting = attendance.ask
    reach = _reach(settings)
    prober = None
    if Part.PROBER in parts:
        prober = Prober(
            pools.loops,
            process,
            settings.prober.regions,
            Catalogue(pools.loops, keyring, clock.now),
            recorder,
            reach,
            limits.probing(settings.prober.concurrency),
            clock.now,
        )
    return House(
        settings=settings,
        role=role,
        process=process,
        pools=pools,
        clock=clock,
        bus=bus,
        keyring=keyring,
        reach=reach,
        means=means_of(settings, reach, clock.now),
        recorder=recorder,
        attendance=attendance,
        # Whoever stores results needs room for them, whichever process keeps house later.
        janitor=_janitor(settings, pools.loops, clock),
        ticker=_ticker(settings, pools.loops, clock, process, prober)
        if Part.TICKER in parts
        else None,
        composer=(
            Composer(Evaluator(pools.loops, bus), clock.now) if Part.TICKER in parts else None
        ),
        listener=(
            Listener(pools.loops, bus, clock.now, attendance.ask)
            if Part.LISTENER in parts
            else None
        ),
        sealer=Sealer(pools.loops, clock.now) if Part.SEALER in parts else None,
        repairer=Repairer(pools.loops) if Part.REPAIRER in parts else None,
        prober=prober,
    )


def context_of(
    house: House,
    passwords: Passwords,
    *,
    readiness: Callable[[], Readiness],
    metrics: Callable[[], bytes],
) -> Context:
    prober = house.prober

    def on_edit() -> None:
        if prober is not None:
            prober.wake.set()

    return Context(
        pool=house.pools.http,
        clock=house.clock.now,
        recorder=house.recorder,
        bus=house.bus,
        keyring=house.keyring,
        reach=house.reach,
        means=house.means,
        passwords=passwords,
        options=_options(house.settings),
        test_permits=limits.testing(),
        on_edit=on_edit,
        readiness=readiness,
        metrics=metrics,
    )


def _options(settings: Settings) -> Options:
    pulled = {region.name for region in settings.pull.regions}
    pulled |= {agent.region for agent in settings.pull.agents}
    return Options(
        cookie_name=settings.session.cookie_name,
        cookie_secure=settings.session.secure,
        session_ttl_seconds=settings.session.ttl_seconds,
        local_enabled=settings.local.enabled,
        min_password_length=settings.local.min_password_length,
        login_rate_limit_per_minute=settings.local.login_rate_limit_per_minute,
        public_base_url=settings.server.public_base_url.rstrip("/"),
        trusted_proxies=tuple(
            ipaddress.ip_network(text, strict=False) for text in settings.server.trusted_proxies
        ),
        regions=frozenset(settings.prober.regions) | pulled | {"core"},
        heartbeat_days=settings.heartbeats.retention_days,
        ledger_days=settings.ledger.retention_days,
        version=version(),
    )


def _reach(settings: Settings) -> Reach:
    prober = settings.prober
    policy = probe_policy(
        tuple(ipaddress.ip_network(text, strict=False) for text in prober.deny_networks),
        allow_private=prober.allow_private_ips,
    )
    check = split_address(prober.connectivity_check) if prober.connectivity_check else None
    return make_reach(
        policy,
        connectivity_check=check,
        user_agent=f"leadline/{version()}",
        threads=limits.working(prober.concurrency),
    )


def means_of(settings: Settings, reach: Reach, now: Callable[[], Instant]) -> Means:
    """What notifications go out by: a policy of their own, and the caches that probes have. The
    mail server is the operator's to name: it may stand where no channel may lead."""
    deny = reach.policy.deny
    threads = limits.delivering()
    egress, mail = settings.notification_egress, settings.mail

    def by(policy: Policy) -> Reach:
        return replace(reach, policy=policy, connectivity=None, threads=threads)

    server = None
    if mail.enabled:
        server = Mail(
            host=mail.smtp_host,
            port=mail.smtp_port,
            sender=mail.from_,
            username=mail.smtp_username,
            password=mail.smtp_password,
            reach=by(probe_policy(deny)),
        )
    notify = notify_policy(deny, allow_private=egress.allow_private_ips)
    return Means(reach=by(notify), now=now, mail=server)


def _attendance(
    settings: Settings,
    role: Role,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    recorder: Recorder,
) -> Attendance:
    probes = Part.PROBER in PARTS[role]
    identity = Identity(
        process=process,
        host=socket.gethostname() or platform.node(),
        roles=[role.value],
        region=settings.prober.regions[0] if probes else None,
        version=version(),
        listens=Part.HTTP in PARTS[role],
    )
    return Attendance(pool, identity, clock.now, recorder.heard_through, lambda: recorder.lost)


def _janitor(settings: Settings, pool: Pool, clock: ProductClock) -> Janitor:
    return Janitor(
        pool,
        clock.now,
        heartbeat_days=settings.heartbeats.retention_days,
        ledger_days=settings.ledger.retention_days,
    )


def _ticker(
    settings: Settings, pool: Pool, clock: ProductClock, process: UUID, prober: Prober | None
) -> Ticker:
    if prober is None:
        return Ticker(pool, clock.now)
    regions = settings.prober.regions
    return Ticker(pool, clock.now, holder=process, hand_out=prober.hand_out, regions=regions)
