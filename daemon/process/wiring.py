"""Builds the parts of a process from its settings; nothing here runs yet."""

import platform
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from uuid import UUID

from uuid_utils.compat import uuid7

from ...http.auth.passwords import Passwords
from ...http.wire.admission_control import Admission, Bounds
from ...http.wire.app_context import Context, Readiness
from ...probes.net.egress import Reach
from ...probes.net.egress_policy import Policy, notify_policy, probe_policy
from ...probes.senders import Means
from ...storage.alerting.rules.paging_delegation import STEADY_US
from ...storage.core.instant import Instant
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.engine.product_clock import ProductClock, Reading
from ...storage.notifications.queries.mail_settings import server_of
from ...storage.results.event_bus import Bus
from ...storage.scheduling.tables import presences
from ..config.config_schema import Settings
from ..config.egress_setup import way_out
from ..config.roles import PARTS, Part, Role
from ..loops.alert_processor import Watcher
from ..loops.cache_invalidator import Edits
from ..loops.canary_dispatcher import Dispatcher
from ..loops.check_cache import Catalogue
from ..loops.check_test_worker import Trials
from ..loops.composite_evaluator import Composer
from ..loops.composite_evaluator import Evaluator as CompositeEvaluator
from ..loops.figure_repairer import Repairer
from ..loops.file_provider_syncer import Ground, Providers, Source
from ..loops.janitor import Janitor
from ..loops.monitor_sealer import Sealer
from ..loops.outbox_leaser import Leaser
from ..loops.password_reset_mailer import Resets
from ..loops.presence_renewer import Attendance, Identity
from ..loops.prober import Prober
from ..loops.push_deadline_checker import Listener
from ..loops.region_load_sampler import Surveyor
from ..loops.result_recorder import Recorder
from ..loops.schedule_ticker import Ticker
from ..loops.service_evaluator import Evaluator
from ..loops.service_sealer import ServiceSealer
from ..runtime import limits
from .http_options import (
    gate_bounds,
    mail_of,
    options_of,
    record_bounds,
    regions_of,
    reserved_regions,
)


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
    edits: Edits
    janitor: Janitor
    ticker: Ticker | None
    composer: Composer | None
    listener: Listener | None
    sealer: Sealer | None
    service_sealer: ServiceSealer | None
    repairer: Repairer | None
    prober: Prober | None
    dispatcher: Dispatcher | None
    leaser: Leaser | None
    resets: Resets | None
    watcher: Watcher | None
    evaluator: Evaluator | None
    surveyor: Surveyor | None
    providers: Providers | None


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
    reach = way_out(settings, f"leadline/{version()}")
    means = means_of(settings, reach, clock.now)
    catalogue = Catalogue(pools.loops, keyring, clock.now)
    prober = None
    if Part.PROBER in parts:
        prober = _prober(settings, process, pools.loops, clock, keyring, recorder, reach, catalogue)
    resets = _resets(settings, pools.loops, keyring, means, clock) if Part.LEASER in parts else None
    leaser = _leaser(settings, pools.loops, keyring, means) if Part.LEASER in parts else None
    watcher = None
    if Part.WATCHER in parts:
        watcher = Watcher(
            pools.loops,
            clock.now,
            _hastening(leaser),
            _hastening(prober),
            lambda: attendance.is_steady(STEADY_US),
        )
        bus.on_change = watcher.wake.set
    return House(
        settings=settings,
        role=role,
        process=process,
        pools=pools,
        clock=clock,
        bus=bus,
        keyring=keyring,
        reach=reach,
        means=means,
        recorder=recorder,
        attendance=attendance,
        edits=Edits(pools.http),
        # Whoever stores results needs room for them, whichever process keeps house later.
        janitor=_janitor(settings, pools.loops, clock),
        ticker=_ticker(settings, pools.loops, clock, process, prober)
        if Part.TICKER in parts
        else None,
        composer=(
            Composer(CompositeEvaluator(pools.loops, bus), clock.now)
            if Part.TICKER in parts
            else None
        ),
        listener=(
            Listener(pools.loops, bus, clock.now, attendance.ask)
            if Part.LISTENER in parts
            else None
        ),
        sealer=Sealer(pools.loops, clock.now) if Part.SEALER in parts else None,
        service_sealer=ServiceSealer(pools.loops) if Part.SERVICE_SEALER in parts else None,
        repairer=Repairer(pools.loops) if Part.REPAIRER in parts else None,
        prober=prober,
        dispatcher=_dispatcher(
            settings, role, process, pools.loops, clock, recorder, reach, catalogue
        ),
        leaser=leaser,
        resets=resets,
        watcher=watcher,
        evaluator=_evaluator(role, pools.loops, clock, leaser, attendance),
        surveyor=_surveyor(settings, role, pools.loops, clock),
        providers=_providers(settings, role, pools.loops, process, keyring, prober),
    )


def _prober(
    settings: Settings,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    keyring: Keyring,
    recorder: Recorder,
    reach: Reach,
    catalogue: Catalogue,
) -> Prober:
    regions, permits = settings.prober.regions, limits.probing(settings.prober.concurrency)
    return Prober(
        pool,
        process,
        regions,
        catalogue,
        recorder,
        reach,
        permits,
        clock.now,
        Trials(pool, process, regions, keyring, reach, permits, clock.now),
    )


def _dispatcher(
    settings: Settings,
    role: Role,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    recorder: Recorder,
    reach: Reach,
    catalogue: Catalogue,
) -> Dispatcher | None:
    parts = PARTS[role]
    if Part.DISPATCHER not in parts:
        return None
    return Dispatcher(
        pool,
        process,
        settings.prober.regions if Part.PROBER in parts else (),
        settings.canary.concurrency_per_region,
        catalogue,
        recorder,
        reach,
        clock.now,
        refuses=Part.TICKER in parts,
    )


def _evaluator(
    role: Role, pool: Pool, clock: ProductClock, leaser: Leaser | None, attendance: Attendance
) -> Evaluator | None:
    if Part.EVALUATOR not in PARTS[role]:
        return None
    return Evaluator(pool, clock.now, _hastening(leaser), lambda: attendance.is_steady(STEADY_US))


def _surveyor(settings: Settings, role: Role, pool: Pool, clock: ProductClock) -> Surveyor | None:
    if Part.SURVEYOR not in PARTS[role]:
        return None
    return Surveyor(pool, clock.now, regions_of(settings))


async def _evaluate_composite(house: House, key: tuple[int, int]) -> None:
    evaluator = CompositeEvaluator(house.pools.http, house.bus)
    await evaluator.evaluate(house.clock.now(), (), [key])


def context_of(
    house: House,
    passwords: Passwords,
    *,
    readiness: Callable[[], Readiness],
    metrics: Callable[[], bytes],
) -> Context:
    return Context(
        pool=house.pools.http,
        clock=house.clock.now,
        recorder=house.recorder,
        evaluate_composite=partial(_evaluate_composite, house),
        bus=house.bus,
        keyring=house.keyring,
        reach=house.reach,
        means=house.means,
        # Whoever runs the installation names them, as they do the mail server.
        to_providers=house.means.to_mail_server,
        passwords=passwords,
        options=options_of(house.settings, probes=house.prober is not None, version=version()),
        test_permits=limits.testing(),
        readers=limits.reading_bundles(),
        gate=Admission(gate_bounds(house.settings.gate)),
        change_records=Admission(record_bounds(house.settings.change)),
        change_reads=Admission(
            Bounds(inflight_process=house.settings.change.read_inflight_process)
        ),
        on_edit=_hastening(house.prober),
        on_told=_hastening(house.leaser),
        on_reset_asked=_hastening(house.resets),
        on_written=house.edits.note,
        readiness=readiness,
        metrics=metrics,
    )


def _hastening(loop: Prober | Leaser | Resets | None) -> Callable[[], None]:
    """What makes a loop of this process look for work at once; where it has none, nothing does."""
    return (lambda: None) if loop is None else loop.wake.set


def _providers(
    settings: Settings,
    role: Role,
    pool: Pool,
    process: UUID,
    keyring: Keyring,
    prober: Prober | None,
) -> Providers | None:
    sources = [
        Source(name, Path(one.directory), one.project)
        for name, one in sorted(settings.providers.file.items())
    ]
    if not sources or Part.PROVIDERS not in PARTS[role]:
        return None
    ground = Ground(
        keyring=keyring,
        regions=regions_of(settings),
        reserved=reserved_regions(settings.pull),
        raw_days=settings.heartbeats.retention_days,
    )
    reading = limits.reading_bundles()
    return Providers(pool, process, sources, ground, reading, _hastening(prober))


def means_of(settings: Settings, reach: Reach, now: Callable[[], Instant]) -> Means:
    """What notifications go out by: a policy of their own, and the caches that probes have. The
    mail server is the operator's to name: it may stand where no channel may lead."""
    deny = reach.policy.deny
    threads = limits.delivering()

    def by(policy: Policy) -> Reach:
        return replace(reach, policy=policy, connectivity=None, threads=threads)

    means = Means(
        reach=by(notify_policy(deny, allow_private=settings.notification_egress.allow_private_ips)),
        now=now,
        stranger=by(notify_policy(deny)),
        to_mail_server=by(probe_policy(deny)),
    )
    return replace(means, mail=server_of(mail_of(settings), means))


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
        regions=settings.prober.regions if probes else (),
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
        gate_days=settings.gate.decision_retention_days,
    )


def _leaser(settings: Settings, pool: Pool, keyring: Keyring, means: Means) -> Leaser:
    return Leaser(
        pool,
        keyring,
        means,
        max_attempts=settings.outbox.max_attempts,
        base_url=settings.server.public_base_url,
        random=random.random,
    )


def _resets(
    settings: Settings, pool: Pool, keyring: Keyring, means: Means, clock: ProductClock
) -> Resets:
    return Resets(pool, keyring, means, settings.server.public_base_url, clock.now)


def _ticker(
    settings: Settings, pool: Pool, clock: ProductClock, process: UUID, prober: Prober | None
) -> Ticker:
    if prober is None:
        return Ticker(pool, clock.now)
    regions = settings.prober.regions
    ticker = Ticker(pool, clock.now, holder=process, hand_out=prober.hand_out, regions=regions)
    ticker.on_resumed = prober.wake.set
    return ticker
