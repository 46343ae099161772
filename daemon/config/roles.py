"""Which role has which parts of the daemon."""

from enum import StrEnum


class ProcessRole(StrEnum):
    ALL = "all"
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    AGENT = "agent"


class DaemonPart(StrEnum):
    """`process/children` declares what each part runs."""

    HTTP = "http"
    OPS = "ops"
    RECORDER = "recorder"
    TICKER = "ticker"
    LISTENER = "listener"
    PROBER = "prober"
    DISPATCHER = "dispatcher"
    SEALER = "sealer"
    SERVICE_SEALER = "service_sealer"
    REPAIRER = "repairer"
    JANITOR = "janitor"
    LEASER = "leaser"
    WATCHER = "watcher"
    EVALUATOR = "evaluator"
    SURVEYOR = "surveyor"
    PROVIDERS = "providers"


PARTS: dict[ProcessRole, frozenset[DaemonPart]] = {
    ProcessRole.ALL: frozenset(set(DaemonPart) - {DaemonPart.OPS}),
    ProcessRole.API: frozenset(
        {
            DaemonPart.HTTP,
            DaemonPart.RECORDER,
            DaemonPart.LEASER,
            DaemonPart.WATCHER,
            DaemonPart.EVALUATOR,
            DaemonPart.SURVEYOR,
        }
    ),
    ProcessRole.SCHEDULER: frozenset(
        {
            DaemonPart.OPS,
            DaemonPart.RECORDER,
            DaemonPart.TICKER,
            DaemonPart.DISPATCHER,
            DaemonPart.LISTENER,
            DaemonPart.SEALER,
            DaemonPart.SERVICE_SEALER,
            DaemonPart.REPAIRER,
            DaemonPart.JANITOR,
            DaemonPart.LEASER,
            DaemonPart.WATCHER,
            DaemonPart.EVALUATOR,
            DaemonPart.SURVEYOR,
            DaemonPart.PROVIDERS,
        }
    ),
    ProcessRole.WORKER: frozenset(
        {DaemonPart.OPS, DaemonPart.RECORDER, DaemonPart.PROBER, DaemonPart.DISPATCHER}
    ),
    # An agent has no store, and so none of these: see agent/service.py.
    ProcessRole.AGENT: frozenset(),
}
