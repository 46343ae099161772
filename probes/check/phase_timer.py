"""Phase timer of one attempt: duration of each finished phase, and the unfinished one."""

from time import perf_counter_ns

from .failure import LocalFailure, TargetFailure
from .result import FailureClass, Phases, ProbePhase, UnknownReason

# Share of the time of an attempt from which another party than the target is late.
LATE_SHARE = 0.1


class Stopwatch:
    """Timer of consecutive phases. A repeated phase (a redirect) adds up.

    `stands_for` is the class of a deadline that passes before the target is contacted, or the
    reason for which such a run has no result. It is None while the target is contacted. The time of
    each class is summed, since it is missing to the target.
    `waits_for` is the timer of a token request that another run makes, if any.
    `certificate` is that of the last TLS handshake, in DER, None before one.
    """

    __slots__ = (
        "_began_ns",
        "_current",
        "_first_ns",
        "_since_ns",
        "_spent_ns",
        "_stands_for",
        "_stood_ns",
        "_stood_since_ns",
        "certificate",
        "place",
        "resolver_alive",
        "waits_for",
    )

    def __init__(self) -> None:
        # Set by the resolver if a nameserver that failed for our name answered for the root. A
        # deadline that then ends the lookup is a target failure. Otherwise it is a local failure.
        self.resolver_alive = False
        # Shown in messages instead of the target's host: the current step of a scenario.
        self.place = ""
        self.waits_for: Stopwatch | None = None
        self.certificate: bytes | None = None
        self._stands_for: FailureClass | UnknownReason | None = None
        self._stood_ns: dict[FailureClass, int] = {}
        self._began_ns = self._first_ns = self._stood_since_ns = perf_counter_ns()
        self._spent_ns: dict[ProbePhase, int] = {}
        self._current: ProbePhase | None = None
        self._since_ns = 0

    @property
    def stands_for(self) -> FailureClass | UnknownReason | None:
        return self._stands_for

    @stands_for.setter
    def stands_for(self, party: FailureClass | UnknownReason | None) -> None:
        now, before = perf_counter_ns(), self._stands_for
        if isinstance(before, FailureClass):
            stood = now - self._stood_since_ns
            self._stood_ns[before] = self._stood_ns.get(before, 0) + stood
        self._stands_for, self._stood_since_ns = party, now

    def restart(self) -> None:
        """Begins again and drops all times."""
        self.proceed()
        self._stood_ns.clear()
        self._first_ns = self._began_ns

    def proceed(self) -> None:
        """Begins the time of the target. Drops the finished phases, which are of another party."""
        self.resolver_alive = False
        self.stands_for = self.waits_for = None
        self._spent_ns.clear()
        self._current = None
        self._began_ns = perf_counter_ns()

    @property
    def late_party(self) -> FailureClass | None:
        """Returns the class of the other party that took time from the target, if it matters."""
        lost = sum(self._stood_ns.values())
        if lost == 0 or lost < LATE_SHARE * (perf_counter_ns() - self._first_ns):
            return None
        return max(self._stood_ns, key=self._stood_ns.__getitem__)

    def begin(self, phase: ProbePhase) -> None:
        self._current = phase
        self._since_ns = perf_counter_ns()

    def done(self) -> None:
        """Ends the current phase. Does nothing without one."""
        phase = self._current
        if phase is not None:
            spent = perf_counter_ns() - self._since_ns
            self._spent_ns[phase] = self._spent_ns.get(phase, 0) + spent
            self._current = None

    @property
    def unfinished(self) -> ProbePhase | None:
        return self._current

    def elapsed_us(self) -> int:
        return (perf_counter_ns() - self._began_ns) // 1_000

    def elapsed_ms(self) -> int:
        return self.elapsed_us() // 1_000

    def read(self) -> Phases:
        """Returns the phases so far."""
        spent = {phase: ns // 1_000 for phase, ns in self._spent_ns.items()}
        return Phases(
            dns_us=spent.get(ProbePhase.DNS),
            connect_us=spent.get(ProbePhase.CONNECT),
            tls_us=spent.get(ProbePhase.TLS),
            first_byte_us=spent.get(ProbePhase.FIRST_BYTE),
            total_us=self.elapsed_us(),
            unfinished=self._current,
        )


def overdue(watch: Stopwatch) -> TargetFailure | LocalFailure:
    """Returns the failure for a passed deadline, by the unfinished phase.

    A silent resolver is a local failure.
    """
    if watch.waits_for is not None:
        late = overdue(watch.waits_for)
        if isinstance(late, LocalFailure) or late.failure is FailureClass.PROXY_ERROR:
            return late
    elif watch.unfinished is ProbePhase.DNS and not watch.resolver_alive:
        return LocalFailure(UnknownReason.RESOLVER_DEAD)
    if isinstance(watch.stands_for, UnknownReason):
        return LocalFailure(watch.stands_for)
    if watch.stands_for is not None:
        return TargetFailure(watch.stands_for)
    late_party = watch.late_party
    if late_party is not None:
        # The target has not had its timeout.
        return TargetFailure(late_party)
    if watch.unfinished is ProbePhase.DNS:
        return TargetFailure(FailureClass.DNS_ERROR)
    if watch.unfinished is ProbePhase.CONNECT:
        return TargetFailure(FailureClass.CONNECT_TIMEOUT)
    return TargetFailure(FailureClass.TIMEOUT)
