"""Which role runs which children."""

from enum import StrEnum


class Role(StrEnum):
    ALL = "all"
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    AGENT = "agent"


class Part(StrEnum):
    """A child of the supervisor, by the name it is logged and counted under."""

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


PARTS: dict[Role, frozenset[Part]] = {
    Role.ALL: frozenset(set(Part) - {Part.OPS}),
    Role.API: frozenset(
        {
            Part.HTTP,
            Part.RECORDER,
            Part.LEASER,
            Part.WATCHER,
            Part.EVALUATOR,
            Part.SURVEYOR,
        }
    ),
    Role.SCHEDULER: frozenset(
        {
            Part.OPS,
            Part.RECORDER,
            Part.TICKER,
            Part.DISPATCHER,
            Part.LISTENER,
            Part.SEALER,
            Part.SERVICE_SEALER,
            Part.REPAIRER,
            Part.JANITOR,
            Part.LEASER,
            Part.WATCHER,
            Part.EVALUATOR,
            Part.SURVEYOR,
            Part.PROVIDERS,
        }
    ),
    Role.WORKER: frozenset({Part.OPS, Part.RECORDER, Part.PROBER, Part.DISPATCHER}),
    # An agent has no store, and so none of these: see agent/service.py.
    Role.AGENT: frozenset(),
}
