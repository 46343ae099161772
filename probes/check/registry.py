"""Registry."""

import importlib
from types import ModuleType
from typing import cast

from .monitor_spec import MonitorType, Spec

# Types to files. A type of the interface that is missing here cannot be saved yet.
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
    MonitorType.SYNTHETIC: "synthetic.synthetic_probe",
    MonitorType.ASYNC_CANARY: "canary.canary_probe",
    MonitorType.PUSH: "push",
    MonitorType.COMPOSITE: "composite",
}

_specs: dict[str, Spec] = {}


def spec_of(kind: str) -> Spec | None:
    """The spec of a type, or None where this build does not have it."""
    spec = _specs.get(kind)
    if spec is None and kind in FILES:
        spec = _specs[kind] = cast("Spec", file_of(kind).SPEC)
    return spec


def file_of(kind: str) -> ModuleType:
    """The file of a type that is in `FILES`."""
    return importlib.import_module(f"..kinds.{FILES[kind]}", __package__)
