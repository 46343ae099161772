"""Construction of the components of a process from its settings; starts no task."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from uuid import UUID

import trio
from uuid_utils.compat import uuid7

from ...http.auth.passwords import Passwords
from ...http.wire.admission_control import AdmissionControl, RateLimits
from ...http.wire.app_context import AppContext, Readiness
from ...probes.net.egress import Egress
from ...probes.net.egress_policy import EgressPolicy, notify_policy, probe_policy
from ...probes.senders.send_result import SendContext
from ...storage.alerting.rules.paging_delegation import STEADY_US
from ...storage.bulk.transactions import BulkContext
from ...storage.bundles.transactions.bundle_context import ApplyContext
from ...storage.core.instant import Instant
from ...storage.core.key import MonitorKey
from ...storage.engine.keyring import Keyring
from ...storage.engine.pools import Pool
from ...storage.engine.product_clock import ProductClock, Reading
from ...storage.notifications.queries.mail_settings import server_of
from ...storage.notifications.rules.delivery_retry import ROOMS
from ...storage.results.event_bus import Bus
from ...storage.scheduling.tables import presences
from ..config.config_schema import Settings
from ..config.egress_setup import make_egress
from ..config.roles import PARTS, DaemonPart, ProcessRole
from ..loops.alert_processor import AlertProcessor
from ..loops.bundles.bundle_applier import BundleApplier
from ..loops.cache_invalidator import CacheInvalidator
from ..loops.canary_dispatcher import CanaryDispatcher
from ..loops.check_cache import CheckCache
from ..loops.check_test_worker import CheckTestWorker
from ..loops.composite_evaluator import CompositeEvaluator, CompositeScheduler
from ..loops.due_reader import DueReader
from ..loops.figure_repairer import Repairer
from ..loops.file_provider_syncer import FileProviderConfig, FileProviderSyncer
from ..loops.janitor import Janitor
from ..loops.key_checker import KeyChecker
from ..loops.mailers import InvitationMailer, OnCallMailer, PasswordResetMailer
from ..loops.metric_samplers import InstallationSampler, RegionLoadSampler
from ..loops.monitor_sealer import MonitorSealer
from ..loops.operation_runner import OperationRunner
from ..loops.outbox_leaser import OutboxLeaser
from ..loops.presence_renewer import PresenceRenewer, ProcessIdentity, ReceptionGaps
from ..loops.prober import Prober
from ..loops.push_deadline_checker import PushDeadlineChecker
from ..loops.result_packer import ResultPacker
from ..loops.result_recorder import Recorder
from ..loops.schedule_ticker import Ticker
from ..loops.self_monitor import SelfMonitor
from ..loops.service_evaluator import ServiceEvaluator
from ..loops.service_sealer import ServiceSealer
from ..runtime import limits
from . import keepers
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
    """Connection pools by purpose, so that requests cannot starve results."""

    loops: Pool
    http: Pool


@dataclass(frozen=True, slots=True)
class Limiters:
    """Concurrency limits of the components of a process."""

    requests: trio.CapacityLimiter
    ticker: trio.CapacityLimiter
    prober: trio.CapacityLimiter
    dispatcher: trio.CapacityLimiter
    leaser: trio.CapacityLimiter


@dataclass(slots=True)
class Components:
    """Components of a process; None if only other roles have one."""

    settings: Settings
    role: ProcessRole
    process: UUID
    pools: Pools
    limiters: Limiters
    clock: ProductClock
    bus: Bus
    keyring: Keyring
    reach: Egress
    means: SendContext
    recorder: Recorder
    attendance: PresenceRenewer
    edits: CacheInvalidator
    due_reader: DueReader
    janitor: Janitor
    packer: ResultPacker | None
    sampler: InstallationSampler | None
    operations: OperationRunner | None
    ticker: Ticker | None
    composer: CompositeScheduler | None
    listener: PushDeadlineChecker | None
    sealer: MonitorSealer | None
    service_sealer: ServiceSealer | None
    repairer: Repairer | None
    prober: Prober | None
    dispatcher: CanaryDispatcher | None
    leaser: OutboxLeaser | None
    resets: PasswordResetMailer | None
    invitations: InvitationMailer | None
    oncall_mails: OnCallMailer | None
    watcher: AlertProcessor | None
    evaluator: ServiceEvaluator | None
    surveyor: RegionLoadSampler | None
    providers: FileProviderSyncer | None
    self_monitor: SelfMonitor | None
    key_checker: KeyChecker | None


def version() -> str:
    return metadata.version("leadline")


def make_clock(pool: Pool) -> ProductClock:
    async def read() -> Reading:
        async with pool.statement("read_clock") as tx:
            return await presences.read_clock(tx)

    return ProductClock(read)


def build(
    settings: Settings, role: ProcessRole, pools: Pools, clock: ProductClock, keyring: Keyring
) -> Components:
    parts = PARTS[role]
    tidies = DaemonPart.JANITOR in parts
    process = uuid7()
    bus, limiters = Bus(), _limiters(settings, parts)
    reach = make_egress(settings, f"leadline/{version()}")
    shares = keepers.may_share_rows(settings)
    stalled = reach.lag.stalled_within
    recorder = Recorder(pools.loops, bus, clock.now, may_share=shares, stalled_within=stalled)
    attendance = _attendance(settings, role, process, pools.loops, clock, recorder, reach)
    recorder.on_deadline_waiting = attendance.ask
    means = means_of(settings, reach, clock.now)
    catalogue = CheckCache(pools.loops, keyring, clock.now)
    prober, leaser, resets, invitations, oncall_mails, watcher = (None,) * 6
    if DaemonPart.PROBER in parts:
        prober = _prober(
            settings, process, pools.loops, clock, keyring, recorder, reach, catalogue, limiters
        )
    if DaemonPart.LEASER in parts:
        leaser = _leaser(settings, pools.loops, keyring, means, limiters)
        resets = _resets(settings, pools.loops, keyring, means, clock)
        mailing = (pools.loops, keyring, means, settings.server.public_base_url)
        invitations, oncall_mails = InvitationMailer(*mailing, clock.now), OnCallMailer(*mailing)
    if DaemonPart.WATCHER in parts:
        watcher = _watcher(pools.loops, clock, leaser, prober, attendance)
        bus.on_change = watcher.wake.set
    return Components(
        settings=settings,
        role=role,
        process=process,
        pools=pools,
        limiters=limiters,
        clock=clock,
        bus=bus,
        keyring=keyring,
        reach=reach,
        means=means,
        recorder=recorder,
        attendance=attendance,
        edits=CacheInvalidator(pools.http, process, bus),
        due_reader=DueReader(pools.loops, clock.now, _probed(settings, role)),
        janitor=keepers.janitor_of(settings, pools.loops, clock),
        packer=keepers.packer_of(settings, role, pools.loops, clock, recorder, version()),
        sampler=keepers.sampler_of(settings, pools.loops, clock) if tidies else None,
        operations=_operations(settings, pools.loops, clock, keyring, prober) if tidies else None,
        ticker=_ticker(settings, pools.loops, clock, process, prober)
        if DaemonPart.TICKER in parts
        else None,
        composer=_composite_scheduler(role, pools.loops, bus, clock),
        listener=_listener(role, pools.loops, bus, clock, attendance),
        sealer=MonitorSealer(pools.loops, clock.now) if DaemonPart.SEALER in parts else None,
        service_sealer=ServiceSealer(pools.loops) if DaemonPart.SERVICE_SEALER in parts else None,
        repairer=Repairer(pools.loops) if DaemonPart.REPAIRER in parts else None,
        prober=prober,
        dispatcher=_dispatcher(
            settings, role, process, pools.loops, clock, recorder, reach, catalogue, limiters
        ),
        leaser=leaser,
        resets=resets,
        invitations=invitations,
        oncall_mails=oncall_mails,
        watcher=watcher,
        evaluator=_evaluator(role, pools.loops, clock, leaser, attendance),
        surveyor=_surveyor(settings, role, pools.loops, clock),
        providers=_providers(settings, role, pools.loops, process, keyring, prober),
        self_monitor=keepers.self_monitor_of(settings, pools.loops, clock, keyring, means, watcher),
        key_checker=keepers.key_checker_of(role, pools.loops, clock, keyring, process),
    )


def _listener(
    role: ProcessRole, pool: Pool, bus: Bus, clock: ProductClock, attendance: PresenceRenewer
) -> PushDeadlineChecker | None:
    if DaemonPart.LISTENER not in PARTS[role]:
        return None
    return PushDeadlineChecker(pool, bus, clock.now, attendance.ask)


def _probed(settings: Settings, role: ProcessRole) -> tuple[str, ...]:
    """Returns the regions that the process probes in."""
    return settings.prober.regions if DaemonPart.PROBER in PARTS[role] else ()


def _watcher(
    pool: Pool,
    clock: ProductClock,
    leaser: OutboxLeaser | None,
    prober: Prober | None,
    attendance: PresenceRenewer,
) -> AlertProcessor:
    is_steady = partial(attendance.is_steady, STEADY_US)
    return AlertProcessor(pool, clock.now, _hastening(leaser), _hastening(prober), is_steady)


def _limiters(settings: Settings, parts: Collection[DaemonPart]) -> Limiters:
    regions = settings.prober.regions if DaemonPart.PROBER in parts else ()
    return Limiters(
        requests=limits.serving(),
        ticker=limits.ticking(),
        prober=limits.probing(settings.prober.concurrency),
        dispatcher=limits.running_canaries(settings.canary.concurrency_per_region, len(regions)),
        leaser=limits.sending(ROOMS.whole.both),
    )


def _composite_scheduler(
    role: ProcessRole, pool: Pool, bus: Bus, clock: ProductClock
) -> CompositeScheduler | None:
    if DaemonPart.TICKER not in PARTS[role]:
        return None
    return CompositeScheduler(CompositeEvaluator(pool, bus), clock.now)


def _prober(
    settings: Settings,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    keyring: Keyring,
    recorder: Recorder,
    reach: Egress,
    catalogue: CheckCache,
    limiters: Limiters,
) -> Prober:
    regions, permits = settings.prober.regions, limiters.prober
    return Prober(
        pool,
        process,
        regions,
        catalogue,
        recorder,
        reach,
        permits,
        clock.now,
        CheckTestWorker(pool, process, regions, keyring, reach, permits, clock.now),
    )


def _dispatcher(
    settings: Settings,
    role: ProcessRole,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    recorder: Recorder,
    reach: Egress,
    catalogue: CheckCache,
    limiters: Limiters,
) -> CanaryDispatcher | None:
    parts = PARTS[role]
    if DaemonPart.DISPATCHER not in parts:
        return None
    return CanaryDispatcher(
        pool,
        process,
        _probed(settings, role),
        settings.canary.concurrency_per_region,
        catalogue,
        recorder,
        reach,
        clock.now,
        limiters.dispatcher,
        refuses=DaemonPart.TICKER in parts,
    )


def _evaluator(
    role: ProcessRole,
    pool: Pool,
    clock: ProductClock,
    leaser: OutboxLeaser | None,
    attendance: PresenceRenewer,
) -> ServiceEvaluator | None:
    if DaemonPart.EVALUATOR not in PARTS[role]:
        return None
    return ServiceEvaluator(
        pool, clock.now, _hastening(leaser), lambda: attendance.is_steady(STEADY_US)
    )


def _surveyor(
    settings: Settings, role: ProcessRole, pool: Pool, clock: ProductClock
) -> RegionLoadSampler | None:
    if DaemonPart.SURVEYOR not in PARTS[role]:
        return None
    return RegionLoadSampler(pool, clock.now, regions_of(settings))


async def _evaluate_composite(house: Components, key: MonitorKey) -> None:
    evaluator = CompositeEvaluator(house.pools.http, house.bus)
    await evaluator.evaluate(house.clock.now(), (), [key])


def context_of(
    house: Components,
    passwords: Passwords,
    *,
    readiness: Callable[[], Readiness],
    was_ready: Callable[[], bool],
    metrics: Callable[[], bytes],
) -> AppContext:
    return AppContext(
        pool=house.pools.http,
        clock=house.clock.now,
        recorder=house.recorder,
        evaluate_composite=partial(_evaluate_composite, house),
        bus=house.bus,
        keyring=house.keyring,
        reach=house.reach,
        means=house.means,
        # The operator configures the identity providers, like the mail server.
        to_providers=house.means.to_mail_server,
        passwords=passwords,
        options=options_of(house.settings, probes=house.prober is not None, version=version()),
        requests=house.limiters.requests,
        large_requests=limits.receiving_large(),
        test_permits=limits.testing(),
        readers=limits.reading_bundles(),
        gate=AdmissionControl(gate_bounds(house.settings.gate)),
        change_records=AdmissionControl(record_bounds(house.settings.change)),
        change_reads=AdmissionControl(
            RateLimits(inflight_process=house.settings.change.read_inflight_process)
        ),
        on_edit=_hastening(house.prober),
        on_told=_hastening(house.leaser),
        on_reset_asked=_hastening(house.resets),
        on_invited=_hastening(house.invitations),
        on_written=house.edits.note,
        readiness=readiness,
        was_ready=was_ready,
        metrics=metrics,
    )


def _hastening(
    loop: Prober | OutboxLeaser | PasswordResetMailer | InvitationMailer | None,
) -> Callable[[], None]:
    """Returns a callback that wakes a loop of this process, or a no-op without a loop."""
    return (lambda: None) if loop is None else loop.wake.set


def _providers(
    settings: Settings,
    role: ProcessRole,
    pool: Pool,
    process: UUID,
    keyring: Keyring,
    prober: Prober | None,
) -> FileProviderSyncer | None:
    sources = [
        FileProviderConfig(name, Path(one.directory), one.project, take_over=one.take_over)
        for name, one in sorted(settings.providers.file.items())
    ]
    if not sources or DaemonPart.PROVIDERS not in PARTS[role]:
        return None
    ground = _apply_context(settings, keyring)
    reading = limits.reading_bundles()
    return FileProviderSyncer(pool, process, sources, ground, reading, _hastening(prober))


def _operations(
    settings: Settings, pool: Pool, clock: ProductClock, keyring: Keyring, prober: Prober | None
) -> OperationRunner:
    ground = _apply_context(settings, keyring)
    applier = BundleApplier(pool, ground, limits.reading_bundles(), _hastening(prober))
    bulk = BulkContext(keyring=keyring, raw_days=ground.raw_days)
    return OperationRunner(pool, clock.now, applier, bulk)


def _apply_context(settings: Settings, keyring: Keyring) -> ApplyContext:
    return ApplyContext(
        keyring=keyring,
        regions=regions_of(settings),
        reserved=reserved_regions(settings.pull),
        raw_days=settings.heartbeats.retention_days,
    )


def means_of(settings: Settings, reach: Egress, now: Callable[[], Instant]) -> SendContext:
    """Returns the send context, with separate egress policies and the caches of the probes.

    The operator chooses the mail server, so it can have an address that channels must not use.
    """
    deny = reach.policy.deny
    threads = limits.delivering()

    def by(policy: EgressPolicy) -> Egress:
        return replace(reach, policy=policy, connectivity=None, threads=threads)

    means = SendContext(
        reach=by(notify_policy(deny, allow_private=settings.notification_egress.allow_private_ips)),
        now=now,
        stranger=by(notify_policy(deny)),
        to_mail_server=by(probe_policy(deny)),
        base_path=settings.server.base_path,
    )
    return replace(means, mail=server_of(mail_of(settings), means))


def _attendance(
    settings: Settings,
    role: ProcessRole,
    process: UUID,
    pool: Pool,
    clock: ProductClock,
    recorder: Recorder,
    reach: Egress,
) -> PresenceRenewer:
    regions, pushes = _probed(settings, role), DaemonPart.HTTP in PARTS[role]
    identity = ProcessIdentity(
        process, keepers.host_name(), [role.value], regions, version(), accepts_pushes=pushes
    )
    return PresenceRenewer(
        pool,
        identity,
        clock.now,
        recorder.committed_through,
        ReceptionGaps(reach.lag, lambda: recorder.lost + clock.jumps).count,
        lambda tx: clock.follow(partial(presences.read_clock, tx)),
    )


def _leaser(
    settings: Settings, pool: Pool, keyring: Keyring, means: SendContext, limiters: Limiters
) -> OutboxLeaser:
    return OutboxLeaser(
        pool,
        keyring,
        means,
        max_attempts=settings.outbox.max_attempts,
        base_url=settings.server.public_base_url,
        random=random.random,
        permits=limiters.leaser,
    )


def _resets(
    settings: Settings, pool: Pool, keyring: Keyring, means: SendContext, clock: ProductClock
) -> PasswordResetMailer:
    return PasswordResetMailer(pool, keyring, means, settings.server.public_base_url, clock.now)


def _ticker(
    settings: Settings, pool: Pool, clock: ProductClock, process: UUID, prober: Prober | None
) -> Ticker:
    if prober is None:
        return Ticker(pool, clock.now)
    regions = settings.prober.regions
    ticker = Ticker(pool, clock.now, holder=process, hand_out=prober.hand_out, regions=regions)
    ticker.on_resumed = prober.wake.set
    return ticker
