"""Roles: the parts of the daemon that each role runs, and the keys that it needs."""

from enum import StrEnum

from .config_schema import ServerConfig, Settings


class ProcessRole(StrEnum):
    ALL = "all"
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    AGENT = "agent"


class DaemonPart(StrEnum):
    """Part of the daemon; `process/children` declares what each part runs."""

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
    PACKER = "packer"
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
            DaemonPart.PACKER,
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
    # An agent has no database, and therefore none of these parts: see agent/agent_main.py.
    ProcessRole.AGENT: frozenset(),
}

_SHARES_DATABASE = frozenset({ProcessRole.API, ProcessRole.SCHEDULER, ProcessRole.WORKER})


def serves_console(role: ProcessRole) -> bool:
    return DaemonPart.HTTP in PARTS[role]


def listen_address(server: ServerConfig, role: ProcessRole) -> tuple[str, str]:
    """Returns the key and the address of the API or of the health routes of `role`.

    The address is empty if `role` serves neither.
    """
    if serves_console(role):
        return "server.listen", server.listen
    return "server.ops_listen", server.ops_listen


def role_faults(settings: Settings, role: ProcessRole) -> list[str]:
    """Returns one line for each key that `role` needs and `settings` lacks.

    Each line begins with the key. Only role all runs the embedded PostgreSQL: a cluster of another
    role would be empty, and no other process could reach it.
    """
    if role in _SHARES_DATABASE and not settings.database.dsn:
        return [
            f"database.dsn: is missing, and role {role.value} needs the PostgreSQL that the other"
            " processes use; set it in the file or in the environment (LEADLINE_DATABASE__DSN)"
        ]
    return []
