"""Service entries: settings as in a bundle, and values to write.

The settings are compared, reported and exported.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from ...alerting.rows import AlertingRow
from ...core.availability import OBJECTIVE_SCALE
from ...core.instant import SECOND
from ...core.refusal import Refused
from ...gate.rules.gate_policy import Document
from ...objectives.rows import BurnRuleRow, ServiceTargetRow
from ...objectives.rules import BurnRule, BurnSeverity, threshold_of
from ...services.rows import ServiceRow
from ...services.rules.epoch import Revision
from ...services.rules.service_health import Policies
from ...services.rules.service_policy import read_policies, written_policies
from ..rules.bundle import ServiceEntry
from ..rules.bundle_settings import (
    BurnRuleEntry,
    GatePolicyEntry,
    TargetEntry,
    policy_document,
    policy_in_words,
)
from .bundle_context import BundleContext, resolve, resolve_named, word_for
from .oncall_entries import hours_in_words, hours_of_entry, windows_in_words


class StoredService(msgspec.Struct, frozen=True, kw_only=True):
    """Existing service. `revision` is the newest declaration, None without one."""

    row: ServiceRow
    alerting: AlertingRow
    revision: Revision | None
    declared: int
    upstreams: Sequence[int]
    targets: Mapping[str, ServiceTargetRow]
    rules: Mapping[str, Sequence[BurnRuleRow]]
    gate_policy: Document | None


def entry_in_words(
    uid: str,
    entry: ServiceEntry,
    monitors: Mapping[str, UUID],
    monitor_words: Mapping[UUID, str],
    service_words: Mapping[str, str],
    place: BundleContext,
) -> dict[str, Any]:
    """Returns the settings of an entry.

    Raises:
        Refused invalid with an unknown reference.
    """
    path = f"services.{uid}"
    policy = resolve_named(f"{path}.escalation_policy", entry.escalation_policy, place.policies)
    schedule = resolve_named(f"{path}.oncall_schedule", entry.oncall_schedule, place.schedules)

    def named(name: str, words: Sequence[str]) -> list[str]:
        return [monitor_words[one] for one in resolve(f"{path}.{name}", words, monitors)]

    upstreams = resolve(f"{path}.depends_on", entry.depends_on, service_words)
    zone, windows = hours_of_entry(entry)
    hours = {"timezone": zone, "windows": windows_in_words(windows)}
    return {
        "name": entry.name if isinstance(entry.name, str) else uid,
        "description": entry.description,
        "runbook_url": entry.runbook_url,
        "escalation_policy": word_for(policy, place.policies),
        "oncall_schedule": word_for(schedule, place.schedules),
        "depends_on": sorted(upstreams),
        "monitors": named("monitors", entry.monitors),
        "sli": named("sli", entry.sli),
        "policies": msgspec.to_builtins(written_policies(policies_of(path, entry))),
        "alerting": {
            **msgspec.to_builtins(entry.alerting),
            "page_on": [one for one in ("down", "degraded") if one in entry.alerting.page_on],
        },
        "sla_targets": targets_in_words(entry.sla_targets),
        # Without them, the service keeps the stored ones, also those of people.
        **({} if entry.support_hours is UNSET else {"support_hours": hours}),
        **({} if entry.gate_policy is UNSET else {"gate_policy": _gate_of(entry.gate_policy)}),
    }


def standing_in_words(
    standing: StoredService,
    monitor_words: Mapping[int, str],
    service_words: Mapping[int, str],
    place: BundleContext,
    *,
    with_hours: bool = True,
    with_gate: bool = True,
) -> dict[str, Any]:
    """Returns the settings of a service, without what its entry leaves alone."""
    row, revision = standing.row, standing.revision
    policies = written_policies(Policies() if revision is None else revision.policies)
    alerting = standing.alerting
    hours = hours_in_words(row.support_zone, row.support_hours)
    return {
        "name": row.name,
        "description": row.description,
        "runbook_url": row.runbook_url,
        "escalation_policy": word_for(row.escalation_policy_uid, place.policies),
        "oncall_schedule": word_for(row.oncall_schedule_uid, place.schedules),
        "depends_on": sorted(service_words[key] for key in standing.upstreams),
        "monitors": [monitor_words[key] for key in (revision.monitors if revision else ())],
        "sli": [monitor_words[key] for key in (revision.sli if revision else ())],
        "policies": msgspec.to_builtins(policies),
        "alerting": {
            "owns_paging": alerting.owns_paging,
            "page_on": [one for one in ("down", "degraded") if one in alerting.page_on],
            "page_on_unknown": alerting.page_on_unknown,
            "confirm_evaluations": alerting.confirm_evaluations,
            "renotify_seconds": alerting.renotify_seconds,
        },
        "sla_targets": {
            window: {
                "objective": target.objective / OBJECTIVE_SCALE,
                "burn_alert_enabled": target.burn_enabled,
                "burn_rules": [rule_in_words(one.rule) for one in standing.rules.get(window, ())],
            }
            for window, target in sorted(standing.targets.items())
        },
        **({"support_hours": hours} if with_hours else {}),
        **({"gate_policy": policy_in_words(standing.gate_policy)} if with_gate else {}),
    }


def _gate_of(entry: GatePolicyEntry | None) -> dict[str, Any] | None:
    return policy_in_words(None if entry is None else policy_document(entry))


def targets_in_words(targets: Mapping[Any, TargetEntry]) -> dict[str, Any]:
    """Returns the objectives of an entry by window."""
    return {
        window: {
            "objective": float(target.objective),
            "burn_alert_enabled": target.burn_alert_enabled,
            "burn_rules": [rule_in_words(rule_of(one)) for one in target.burn_rules],
        }
        for window, target in sorted(targets.items())
    }


def policies_of(path: str, entry: ServiceEntry) -> Policies:
    """Returns the policies of an entry.

    Raises:
        Refused invalid if the freshness floor is not whole microseconds.
    """
    policies = read_policies(entry.policies)
    if policies is None:
        rule = "must be whole microseconds"
        raise Refused("invalid", f"{path}.policies.freshness.active_floor", rule)
    return policies


def rule_of(entry: BurnRuleEntry) -> BurnRule:
    return BurnRule(
        entry.long_window_seconds * SECOND,
        entry.short_window_seconds * SECOND,
        threshold_of(entry.threshold),
        BurnSeverity(entry.severity),
        entry.runbook_url,
    )


def rule_in_words(rule: BurnRule) -> dict[str, Any]:
    return {
        "long_window_seconds": rule.long_us // SECOND,
        "short_window_seconds": rule.short_us // SECOND,
        "threshold": float(rule.threshold),
        "severity": rule.severity.value,
        **({"runbook_url": rule.runbook_url} if rule.runbook_url else {}),
    }
