"""Dependencies of every outgoing connection: policy, resolver, TLS contexts, loop lag.

One value exists per process and policy. It is created at start and passed down. It reads neither
proxy variables nor netrc.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import trio

from ..check.canary_stages import Stages
from ..check.cpu_meter import current_meter, held
from ..check.cpu_share import CpuShare
from ..check.failure import LocalFailure
from ..check.loop_lag import LoopLag
from ..check.phase_timer import Stopwatch
from ..check.private_key import ClientCertificate
from ..check.rdap_traffic import RdapTraffic
from ..check.result import UnknownReason
from ..check.token_cache import TokenCache
from .connectivity import Connectivity
from .dial import DialedConnection, dial, dial_datagram, dial_echo
from .egress_policy import EgressPolicy
from .icmp_echo import Echo
from .resolver import Family, Resolver
from .resolver_files import HostFiles, Nameserver
from .tls_contexts import TlsContexts, TlsSetting, wrap

USER_AGENT = "leadline"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Egress:
    """Egress of one policy.

    `lag.watch` must run in a nursery for as long as runs use this value. `cpu` divides the event
    loop between organizations. `threads` bounds the threads that checks use concurrently; None uses
    the limiter of Trio. `stages` receives every ended stage of a transaction.
    """

    policy: EgressPolicy
    resolver: Resolver
    contexts: TlsContexts
    lag: LoopLag
    connectivity: Connectivity | None = None
    user_agent: str = USER_AGENT
    threads: trio.CapacityLimiter | None = None
    stages: Stages | None = field(default=None, compare=False)
    cpu: CpuShare = field(default_factory=CpuShare, compare=False)
    tokens: TokenCache = field(default_factory=TokenCache, compare=False)
    rdap: RdapTraffic = field(default_factory=RdapTraffic, compare=False)
    # Serializes threads whose work does not release the interpreter lock.
    alone: trio.Lock = field(default_factory=trio.Lock, compare=False)

    async def in_thread_alone(self, work: Callable[[], T]) -> T:
        """Runs pure Python work in a thread, one such thread at a time.

        Several of these threads would each delay the event loop by the switch interval of 5 ms.
        """
        async with held(self.alone):
            return await self.in_thread(work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs work in a thread that would block the event loop.

        On cancellation the thread is abandoned. It must end soon, and keeps its token until then.
        Raises: `LocalFailure` if `threads` is exhausted, because this is not a failure of the
        target.
        """
        if self.threads is not None and self.threads.available_tokens < 1:
            raise LocalFailure(UnknownReason.LOCAL_RESOURCES)
        meter = current_meter()
        if meter is None:
            return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self.threads)
        return await meter.in_thread(work, self.threads)

    async def dial(
        self, host: str, port: int, watch: Stopwatch, family: Family = Family.ANY
    ) -> DialedConnection:
        return await dial(self.resolver, self.policy, host, port, watch, family)

    async def dial_datagram(self, host: str, port: int, watch: Stopwatch) -> trio.socket.SocketType:
        return await dial_datagram(self.resolver, self.policy, host, port, watch)

    async def dial_echo(self, host: str, watch: Stopwatch) -> Echo:
        return await dial_echo(self.resolver, self.policy, host, watch)

    async def encrypt(
        self,
        connection: DialedConnection,
        server_name: str,
        watch: Stopwatch,
        *,
        verify: bool = True,
        alpn: tuple[str, ...] = (),
        identity: ClientCertificate | None = None,
    ) -> "trio.SSLStream[trio.SocketStream]":
        context = await self._context(TlsSetting(verify, alpn, identity))
        return await wrap(connection.carrier, context, server_name, watch)

    async def _context(self, setting: TlsSetting) -> ssl.SSLContext:
        """Returns the context of a setting.

        One context is created at a time, so that tasks waiting for the same setting share it.
        """
        context = self.contexts.made(setting)
        if context is None:
            async with held(self.contexts.making):
                context = self.contexts.made(setting)
                if context is None:
                    context = await self.in_thread(partial(self.contexts.make, setting))
                    self.contexts.keep(setting, context)
        return context


def make_reach(
    policy: EgressPolicy,
    *,
    lag: LoopLag | None = None,
    resolver: Resolver | None = None,
    nameservers: tuple[Nameserver, ...] | None = None,
    contexts: TlsContexts | None = None,
    authorities: Path | None = None,
    connectivity_check: tuple[str, int] | None = None,
    user_agent: str = USER_AGENT,
    threads: trio.CapacityLimiter | None = None,
    stages: Stages | None = None,
    cpu: CpuShare | None = None,
) -> Egress:
    """Returns an `Egress` with its caches.

    Share `lag`, `cpu`, `resolver` and `contexts` between the policies of one process.
    """
    if resolver is None:
        # The first lookup would wait for this import.
        import_module(".address_query", __package__)
        resolver = Resolver(HostFiles(nameservers=nameservers))
    connectivity = None
    if connectivity_check is not None:
        host, port = connectivity_check
        connectivity = Connectivity(host, port, resolver, policy)
    return Egress(
        policy=policy,
        resolver=resolver,
        contexts=contexts or TlsContexts(authorities),
        lag=lag or LoopLag(),
        connectivity=connectivity,
        user_agent=user_agent,
        threads=threads,
        stages=stages,
        cpu=cpu or CpuShare(),
    )
