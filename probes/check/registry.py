"""Registry of monitor types: the spec and the module of each."""

import importlib
from types import ModuleType
from typing import cast

from .monitor_spec import MonitorType, Spec

# Module of each type. A type of the API that is missing here cannot be saved yet.
FILES: dict[str, str] = {
    MonitorType.HTTP: "http",
    MonitorType.TCP: "tcp",
    MonitorType.DNS: "dns",
    MonitorType.TLS: "tls",
    MonitorType.REDIS: "redis",
    MonitorType.POSTGRES: "postgres",
    MonitorType.MYSQL: "mysql",
    MonitorType.RABBITMQ: "rabbitmq",
    MonitorType.PROMQL: "promql",
    MonitorType.WEBSOCKET: "websocket",
    MonitorType.ICMP: "icmp",
    MonitorType.GRPC: "grpc",
    MonitorType.SSH: "ssh",
    MonitorType.SMTP: "smtp",
    MonitorType.DOMAIN: "domain",
    MonitorType.SYNTHETIC: "synthetic.synthetic_probe",
    MonitorType.ASYNC_CANARY: "canary.canary_probe",
    MonitorType.PUSH: "push",
    MonitorType.COMPOSITE: "composite",
}

_specs: dict[str, Spec] = {}


def spec_of(kind: str) -> Spec | None:
    """Returns the spec of a type, or None if this build does not have it."""
    spec = _specs.get(kind)
    if spec is None and kind in FILES:
        spec = _specs[kind] = cast("Spec", file_of(kind).SPEC)
    return spec


def file_of(kind: str) -> ModuleType:
    """Returns the module of a type in `FILES`."""
    return importlib.import_module(f"..kinds.{FILES[kind]}", __package__)
