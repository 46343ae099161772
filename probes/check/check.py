"""Definition of one run, validated against the spec of its monitor type.

Pure. `validate` returns the faults of a definition together. `make_check` reads a definition that
`validate` accepts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from .condition import BadCondition, Condition, parse, pattern_size
from .monitor_spec import MonitorType, Spec, SpecFault, TargetForm
from .registry import spec_of
from .target import BadTarget, read_host, read_host_port, read_url

T = TypeVar("T")

CONDITIONS_MOST = 20
# Patterns use a whole core while they search, so the sum of their sizes is bounded too.
PATTERNS_SIZE_MOST = 5_000
RETRIES_MOST = 10
INTERVAL_SECONDS = (5, 86_400)
# Registries limit their clients, and an expiry does not change in an hour.
DOMAIN_INTERVAL_SECONDS = (3_600, 86_400)
TIMEOUT_SECONDS_MOST = 300
CANARY_TIMEOUT_SECONDS_MOST = 3_600
DEFAULT_METHOD = "GET"


@dataclass(frozen=True, slots=True)
class Check:
    """Definition of one run.

    `config` has native types and defaults. `secrets` contains the values behind its `…_ref` keys,
    by the key without `_ref` (`password`, `token`). `host` is the only part of the target that a
    message shows.

    The caller sets `run_key` for monitor types that start something at the target. It is the same
    for one run of one window under one revision, and different for any other run.

    `show_values` permits the measured value of a false condition to contain observed content.
    """

    type: str
    target: str
    host: str
    method: str = DEFAULT_METHOD
    config: Mapping[str, object] = field(default_factory=dict, repr=False)
    conditions: tuple[Condition, ...] = ()
    retries: int = 0
    timeout_seconds: int = 10
    interval_seconds: int = 60
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_key: str = field(default="", repr=False)
    show_values: bool = False
    # What a probe makes of the definition once for all runs. A changed copy has none.
    _made: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def made(self, make: Callable[["Check"], T]) -> T:
        """Returns `make(self)`, computed once. An exception is not kept."""
        found = self._made.get(make)
        if found is None:
            found = self._made[make] = make(self)
        return cast("T", found)

    def text(self, key: str) -> str:
        value = self.config.get(key)
        return value if isinstance(value, str) else ""

    def flag(self, key: str) -> bool:
        return self.config.get(key) is True

    def wants(self, placeholder: str) -> bool:
        """Returns whether a condition reads `[placeholder]`, so that its value is needed."""
        return any(placeholder in condition.placeholders for condition in self.conditions)


def validate(
    kind: str,
    target: str,
    method: str | None,
    config: Mapping[str, object],
    conditions: Sequence[str],
    *,
    retries: int = 0,
    timeout_seconds: int = 10,
    interval_seconds: int = 60,
) -> list[SpecFault]:
    """Returns the faults of a monitor's definition, in the order of the form.

    The list is empty if the definition can be saved. The rule of the type is evaluated only if
    target, method and config have no fault. Fields have their API names.
    """
    spec = spec_of(kind)
    if spec is None:
        known = kind in MonitorType.__members__.values()
        return [
            SpecFault(
                "type",
                "is not available in this version"
                if known
                else f"must be one of {', '.join(MonitorType)}",
            )
        ]
    faults = _target_faults(spec, target)
    if method and spec.methods and method not in spec.methods:
        faults.append(SpecFault("method", f"must be one of {', '.join(spec.methods)}"))
    values, config_faults = spec.read(config)
    faults += config_faults
    if not faults and spec.rule is not None:
        faults += spec.rule(target, values)
    faults += _condition_faults(spec, conditions)
    return faults + _time_faults(kind, retries, timeout_seconds, interval_seconds)


def make_check(
    kind: str,
    target: str,
    method: str | None,
    config: Mapping[str, object],
    conditions: Sequence[str],
    *,
    retries: int = 0,
    timeout_seconds: int = 10,
    interval_seconds: int = 60,
    secrets: Mapping[str, str] | None = None,
    show_values: bool = False,
) -> Check:
    """Returns the check of a definition that `validate` accepts.

    Invalid settings, which an older version may have stored, get their defaults, if they have one.
    Raises: `BadCondition` for an invalid condition, because without it a target would be reported
    as up although it was never tested.
    """
    spec = spec_of(kind)
    return Check(
        type=kind,
        target=target,
        host=target_host(kind, target),
        method=method or DEFAULT_METHOD,
        config=spec.read(config)[0] if spec else dict(config),
        conditions=tuple(parse(text) for text in conditions),
        # An older version may have stored some for a domain.
        retries=0 if kind == MonitorType.DOMAIN else retries,
        timeout_seconds=timeout_seconds,
        interval_seconds=interval_seconds,
        secrets=dict(secrets or {}),
        show_values=show_values,
    )


def target_host(kind: str, target: str) -> str:
    """Returns the host of a target for messages, or "" if it has none or is invalid."""
    spec = spec_of(kind)
    try:
        return _read_target(spec, target) if spec else ""
    except BadTarget:
        return ""


def _read_target(spec: Spec, target: str) -> str:
    if spec.target is TargetForm.URL:
        return read_url(target, spec.schemes).host
    if spec.target is TargetForm.HOST_PORT:
        return read_host_port(target, spec.default_port)[0]
    if spec.target in (TargetForm.HOST, TargetForm.NAME):
        return read_host(target)
    if target:
        raise BadTarget("is not used by this type")
    return ""


def _target_faults(spec: Spec, target: str) -> list[SpecFault]:
    try:
        _read_target(spec, target)
    except BadTarget as bad:
        return [SpecFault("target", str(bad))]
    return []


def _condition_faults(spec: Spec, conditions: Sequence[str]) -> list[SpecFault]:
    if conditions and not spec.placeholders:
        return [SpecFault("conditions", f"are not used by {spec.type}")]
    if len(conditions) > CONDITIONS_MOST:
        return [SpecFault("conditions", f"are more than {CONDITIONS_MOST}")]
    faults: list[SpecFault] = []
    size = 0
    for number, text in enumerate(conditions, 1):
        try:
            condition = parse(text)
        except BadCondition as bad:
            faults.append(SpecFault("conditions", f"condition {number}, {bad}"))
            continue
        size += pattern_size(condition)
        unknown = sorted(condition.placeholders - spec.placeholders)
        if unknown:
            said = f"condition {number}: [{unknown[0]}] is never known for {spec.type}"
            faults.append(SpecFault("conditions", said))
    if size > PATTERNS_SIZE_MOST:
        faults.append(SpecFault("conditions", "have patterns that are too large together"))
    return faults


def _time_faults(kind: str, retries: int, timeout: int, interval: int) -> list[SpecFault]:
    canary = kind == MonitorType.ASYNC_CANARY
    longest = CANARY_TIMEOUT_SECONDS_MOST if canary else TIMEOUT_SECONDS_MOST
    least, most = DOMAIN_INTERVAL_SECONDS if kind == MonitorType.DOMAIN else INTERVAL_SECONDS
    faults = []
    if not 0 <= retries <= RETRIES_MOST:
        faults.append(SpecFault("retries", f"must be 0 to {RETRIES_MOST}"))
    elif canary and retries:
        # A submission that has a response is never repeated.
        faults.append(SpecFault("retries", "must be 0, as a transaction is made once a run"))
    elif kind == MonitorType.DOMAIN and retries:
        faults.append(SpecFault("retries", "must be 0, as a registry limits its clients"))
    if not least <= interval <= most:
        faults.append(SpecFault("interval_seconds", f"must be {least} to {most}"))
    if not 1 <= timeout <= longest:
        faults.append(SpecFault("timeout_seconds", f"must be 1 to {longest}"))
    elif timeout > interval and kind != MonitorType.PUSH:
        faults.append(SpecFault("timeout_seconds", "must not be above interval_seconds"))
    return faults
