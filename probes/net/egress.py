"""All that a probe needs to go out: the policy, the resolver, the TLS contexts, the lag watch.

One value a process and policy, made at start and passed down. Nothing here reads proxy variables or
netrc.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from ..check.canary_stages import Stages
from ..check.failure import LocalFailure
from ..check.loop_lag import LoopLag
from ..check.phase_timer import Stopwatch
from ..check.result import UnknownReason
from .connectivity import Connectivity
from .dial import DialedConnection, dial, dial_datagram, dial_echo
from .egress_policy import EgressPolicy
from .icmp_echo import Echo
from .resolver import Family, Resolver
from .resolver_files import HostFiles, Nameserver
from .tls_contexts import ClientCertificate, TlsContexts, TlsSetting, wrap

USER_AGENT = "leadline"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Egress:
    """`lag.watch` must be running in a nursery for as long as runs are made with this value.
    `threads` bounds those that checks hold at once; None leaves it to Trio. `stages` is told of
    every stage of a transaction that has ended.
    """

    policy: EgressPolicy
    resolver: Resolver
    contexts: TlsContexts
    lag: LoopLag
    connectivity: Connectivity | None = None
    user_agent: str = USER_AGENT
    threads: trio.CapacityLimiter | None = None
    stages: Stages | None = field(default=None, compare=False)
    # Held by the one thread that runs what does not let go of the interpreter.
    alone: trio.Lock = field(default_factory=trio.Lock, compare=False)

    async def in_thread_alone(self, work: Callable[[], T]) -> T:
        """For work in Python itself: of several such threads each would keep the loop waiting for
        its turn, five milliseconds at a time.
        """
        async with self.alone:
            return await self.in_thread(work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs what would hold the loop. Cancelled, it is left alone: it must end by itself soon,
        and holds its place until then. Where no place is free, that is no fault of the target's.
        """
        if self.threads is not None and self.threads.available_tokens < 1:
            raise LocalFailure(UnknownReason.LOCAL_RESOURCES)
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self.threads)

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
        return await wrap(connection.stream, context, server_name, watch)

    async def _context(self, setting: TlsSetting) -> ssl.SSLContext:
        """One is made at a time: who waits for the same finds it made."""
        context = self.contexts.made(setting)
        if context is None:
            async with self.contexts.making:
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
) -> Egress:
    """A reach with its caches. Share `lag`, `resolver` and `contexts` between the policies
    of one process.
    """
    resolver = resolver or Resolver(HostFiles(nameservers=nameservers))
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
    )
