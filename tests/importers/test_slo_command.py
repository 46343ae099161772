"""`leadline slo`: objectives as OpenSLO v1, and the import of OpenSLO, Sloth and Pyrra.

An objective is imported exactly or named with its file, document and path, and never changed.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from leadline.daemon.cli.slo import command
from leadline.http.importers.slo.bundle import read_objectives, slo_bundle
from leadline.http.importers.slo.openslo_export import openslo_documents
from leadline.http.importers.slo.slo_documents import percent_of
from leadline.storage.bundles.rules.bundle import read_bundle
from tests.support.run import effort

OPENSLO = """
apiVersion: openslo/v1
kind: Service
metadata: {name: shop}
spec: {description: The shop}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: queue}
spec:
  thresholdMetric:
    metricSource: {type: Prometheus, spec: {query: queue_length}}
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: queue-short, labels: {team: a}}
spec:
  service: shop
  indicatorRef: queue
  budgetingMethod: Occurrences
  timeWindow: [{duration: 30d, isRolling: true}]
  objectives: [{op: lte, value: 100, target: 0.995}]
  alertPolicies: [{alertPolicyRef: urgent}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: requests}
spec:
  service: shop
  indicator:
    metadata: {name: requests}
    spec: {ratioMetric: {counter: true, good: {metricSource: {type: Prometheus, spec: {query: g}}},
      total: {metricSource: {type: Prometheus, spec: {query: t}}}}}
  budgetingMethod: Occurrences
  timeWindow: [{duration: 1w, isRolling: true}]
  objectives: [{targetPercent: 99.9}]
---
apiVersion: openslo/v1
kind: AlertPolicy
metadata: {name: urgent}
spec: {}
"""
SLOTH = """
version: prometheus/v1
service: myservice
labels: {owner: a}
slos:
  - name: requests-availability
    objective: 99.9
    description: "Requests"
    sli:
      events:
        error_query: sum(rate(e[{{.window}}]))
        total_query: sum(rate(t[{{.window}}]))
    alerting:
      name: High
      page_alert: {labels: {severity: a}}
      ticket_alert: {disable: true}
  - name: broken
"""
PYRRA = """
apiVersion: pyrra.dev/v1alpha1
kind: ServiceLevelObjective
metadata: {name: api-errors, namespace: monitoring}
spec:
  target: '99.5'
  window: 30d
  indicator:
    ratio: {errors: {metric: e}, total: {metric: t}}
---
apiVersion: pyrra.dev/v1alpha1
kind: ServiceLevelObjective
metadata: {name: api-latency}
spec:
  target: '90'
  window: 4w
  indicator: {latency: {success: {metric: e}, total: {metric: t}}}
---
apiVersion: v1
kind: ConfigMap
"""
NAME = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9.|\/\\-]*[a-z0-9]*$", "maxLength": 255}
METRIC = {
    "required": ["metricSource"],
    "properties": {
        "metricSource": {
            "required": ["spec"],
            "properties": {"type": {"type": "string"}, "spec": {"type": "object"}},
        }
    },
}
# The rules of the published schema (openslo.com/schemas/v1) for the two kinds of an export.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "openslo/v1"},
        "kind": {"enum": ["Service", "SLO"]},
        "metadata": {
            "required": ["name"],
            "properties": {"name": NAME, "displayName": {"type": "string", "minLength": 1}},
        },
        "spec": {"properties": {"description": {"type": "string", "maxLength": 1050}}},
    },
    "if": {"properties": {"kind": {"const": "SLO"}}},
    "then": {
        "properties": {
            "spec": {
                "required": ["service", "budgetingMethod", "objectives", "indicator"],
                "properties": {
                    "service": NAME,
                    "indicator": {
                        "required": ["metadata", "spec"],
                        "properties": {
                            "metadata": {"required": ["name"], "properties": {"name": NAME}},
                            "spec": {
                                "required": ["ratioMetric"],
                                "properties": {
                                    "ratioMetric": {
                                        "required": ["counter", "good", "total"],
                                        "properties": {"good": METRIC, "total": METRIC},
                                    }
                                },
                            },
                        },
                    },
                    "timeWindow": {
                        "maxItems": 1,
                        "items": {
                            "required": ["duration"],
                            "properties": {
                                "duration": {"type": "string", "pattern": "^[1-9][0-9]*[mhdwMQY]$"},
                                "isRolling": {"const": True},
                            },
                        },
                    },
                    "budgetingMethod": {"enum": ["Occurrences", "Timeslices"]},
                    "objectives": {
                        "items": {
                            "required": ["target"],
                            "properties": {
                                "target": {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
                            },
                        }
                    },
                },
            }
        }
    },
}


def run(folder: Path, text: str | bytes, *more: str) -> tuple[Result, dict[str, Any]]:
    path = folder / "slos.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    args = ["import", str(path), "--organization", "acme", "--project", "shop", *more]
    result = CliRunner().invoke(command, args)
    found: dict[str, Any] = yaml.safe_load(result.stdout) if result.exit_code == 0 else {}
    return result, found


def lines(result: Result, folder: Path) -> list[str]:
    return result.stderr.replace(f"{folder}/", "").splitlines()


def test_what_counts_events_is_named_and_not_imported(tmp_path: Path) -> None:
    result, found = run(tmp_path, OPENSLO)
    assert found == {"format": 3, "organization": "acme", "project": "shop"}
    told = lines(result, tmp_path)
    assert told[0] == ("- slos.yaml document 5: kind AlertPolicy has no counterpart in Leadline")
    assert "- slos.yaml document 3: is a query of Prometheus: give its address with" in told[1]
    assert told[2].startswith(
        "- slos.yaml document 4: spec.indicator.spec.ratioMetric counts events, and an objective"
    )
    assert "~ slos.yaml document 3: metadata.labels is not carried over" in told
    assert "~ slos.yaml document 3: spec.alertPolicies is not carried over" in told


def test_a_query_becomes_a_monitor_and_a_named_one_measures_the_rest(tmp_path: Path) -> None:
    more = ("--prometheus", "http://prometheus.example.org:9090", "--sli", "shop/requests=front,b")
    result, found = run(tmp_path, OPENSLO, *more)
    assert found["monitors"] == {
        "shop-queue-short": {
            "name": "shop queue-short",
            "type": "promql",
            "target": "http://prometheus.example.org:9090",
            "config": {"query": "queue_length"},
            "conditions": ["[RESULT] <= 100"],
        }
    }
    assert found["services"] == {
        "shop-queue-short": {
            "name": "shop queue-short",
            "description": "The shop",
            "monitors": ["shop-queue-short"],
            "sli": ["shop-queue-short"],
            "sla_targets": {"30d": {"objective": 99.5}},
        },
        "shop-requests": {
            "name": "shop requests",
            "description": "The shop",
            "monitors": ["front", "b"],
            "sli": ["front", "b"],
            "sla_targets": {"7d": {"objective": 99.9}},
        },
    }
    read_bundle(found)
    assert lines(result, tmp_path)[-1] == "2 objectives imported, 1 left out"


def test_sloth_keeps_its_alerts_and_pyrra_its_windows(tmp_path: Path) -> None:
    result, found = run(tmp_path, SLOTH, "--sli", "requests-availability=front")
    entry = found["services"]["myservice-requests-availability"]
    assert entry["sla_targets"]["30d"]["objective"] == 99.9
    assert [one["severity"] for one in entry["sla_targets"]["30d"]["burn_rules"]] == [
        "page",
        "page",
    ]
    read_bundle(found)
    told = lines(result, tmp_path)
    assert "- slos.yaml document 1: slos[1] has a structure that the importer does not know" in told
    assert "~ slos.yaml document 1: labels is not carried over" in told
    result, found = run(tmp_path, PYRRA, "--sli", "api-errors=front")
    assert found["services"]["api-errors"]["sla_targets"] == {"30d": {"objective": 99.5}}
    told = lines(result, tmp_path)
    assert (
        "- slos.yaml document 2: spec.window '4w' is none of the windows 24h, 7d, 30d and 90d"
        in told
    )
    assert any("document 3: apiVersion 'v1' is none of" in line for line in told)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: &a [x]\nb: [" + b"*a," * 300_000 + b"]", "values"),
        (b"[" * 100, "is nested deeper than 64"),
        (b"\x00", "is no YAML"),
        (b"---\n" * 1_100, "too many documents"),
        (b"a: &a [*a]", "an alias of a value that contains it"),
        (b"\n".join([b"&a%d [*a%d,*a%d]" % (n, n - 1, n - 1) for n in range(1, 30)]), "is no YAML"),
        (b"#" * (9 << 20), "more than"),
    ],
)
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, text: bytes, said: str) -> None:
    result, _ = run(tmp_path, text)
    assert result.exit_code == 1
    assert said in result.stderr


def test_a_name_of_no_objective_and_a_wrong_option_are_refused(tmp_path: Path) -> None:
    result, _ = run(tmp_path, PYRRA, "--sli", "other=front")
    assert (result.exit_code, "'other' names no objective" in result.stderr) == (1, True)
    assert run(tmp_path, PYRRA, "--sli", "other")[0].exit_code == 2


def test_any_structure_is_a_report(tmp_path: Path) -> None:
    for head in (
        "apiVersion: openslo/v1",
        "version: prometheus/v1",
        "apiVersion: sloth.slok.dev/v1",
    ):
        for rest in (
            "",
            "kind: SLO",
            "kind: []\nspec: 7",
            "metadata: [1]\nkind: SLO\nspec: {a: b}",
        ):
            result, found = run(tmp_path, f"{head}\n{rest}")
            assert (result.exit_code, len(found)) == (0, 3), result.stderr
            assert "1 left out" in result.stderr


@pytest.mark.parametrize("seed", effort.varied(range(20), range(500)))
def test_an_export_is_valid_and_is_imported_as_it_was(seed: int) -> None:
    rnd = random.Random(seed)
    bundle = random_bundle(rnd)
    found = openslo_documents(bundle)
    for document in yaml.safe_load_all(yaml.safe_dump_all(found.documents)):
        assert list(Draft7Validator(SCHEMA).iter_errors(document)) == []
    names = [(one["kind"], one["metadata"]["name"]) for one in found.documents]
    assert len(set(names)) == len(names)
    again = slo_bundle(read_objectives({"f": found.documents}), "acme", "shop", {}, "")
    expected = {
        uid: {
            window: {"objective": one["objective"]}
            for window, one in service["sla_targets"].items()
        }
        for uid, service in bundle["services"].items()
        if service["monitors"] and service["sla_targets"]
    }
    services = again.get("services", {})
    assert {uid: one["sla_targets"] for uid, one in services.items()} == expected
    for uid, one in services.items():
        before = bundle["services"][uid]
        for name in ("name", "policies", "slug"):
            assert one.get(name) == before.get(name)
    read_bundle(again)
    other = slo_bundle(read_objectives({"f": found.documents}), "acme", "mill", {}, "")
    assert "services" not in other
    rules = sum(
        bool(one.get("burn_rules"))
        for service in bundle["services"].values()
        for one in service["sla_targets"].values()
    )
    assert len(found.lost) == rules


@pytest.mark.parametrize(
    ("metric", "name", "value", "said"),
    [
        ("good", "figure", "nonsense", "is no ratio of good_us to measured_us"),
        ("total", "monitors", ["db"], "has another source of good than of total"),
        ("total", "policies", {"missing_data": "down"}, "has another source of good than of total"),
        ("both", "policies", {"missing_data": "no"}, "has a specification that Leadline does not"),
        ("both", "monitors", [], "has a specification that Leadline does not write"),
        ("both", "other", 1, "has a specification that Leadline does not write"),
        ("both", "project", "mill", "is of the project acme/mill, not acme/shop"),
        ("both", "organization", "evil", "is of the project evil/shop, not acme/shop"),
    ],
)
def test_an_export_that_was_changed_is_left_out(
    tmp_path: Path, metric: str, name: str, value: Any, said: str
) -> None:
    targets = {"30d": {"objective": 99.5}}
    service = {"name": "Web", "monitors": ["web"], "sla_targets": targets}
    bundle = {"organization": "acme", "project": "shop", "monitors": {}, "services": {"w": service}}
    text = yaml.safe_dump(openslo_documents(bundle).documents[1])
    assert run(tmp_path, text)[1]["services"]["w"]["name"] == "Web"
    changed = yaml.safe_load(text)
    ratio = changed["spec"]["indicator"]["spec"]["ratioMetric"]
    for one in ("good", "total") if metric == "both" else (metric,):
        ratio[one]["metricSource"]["spec"][name] = value
    result, found = run(tmp_path, yaml.safe_dump(changed))
    assert "services" not in found
    assert said in result.stderr


def random_bundle(rnd: random.Random) -> dict[str, Any]:
    def targets() -> dict[str, Any]:
        return {
            window: {
                "objective": round(rnd.uniform(0.0001, 99.9999), 4),
                **({"burn_rules": [{}]} if rnd.random() < 0.3 else {}),
            }
            for window in rnd.sample(["24h", "7d", "30d", "90d"], rnd.randint(0, 4))
        }

    plain = dict.fromkeys(rnd.sample(["24h", "7d", "30d", "90d"], 2), 99.5)
    return {
        "organization": "acme",
        "project": "shop",
        "monitors": {"web": {"name": "Web", "sla_targets": {"7d": {"objective": 99.0}}}},
        "services": {
            f"s{n}": {
                "name": f"Service {n}",
                "description": "x" * rnd.choice([0, 3, 2_000]),
                "monitors": ["web"] if rnd.random() < 0.8 else [],
                "sla_targets": targets(),
                **rnd.choice([{}, {"policies": {"aggregation": {"mode": "any"}}}]),
                **rnd.choice([{}, {"slug": f"service-{n}"}]),
            }
            for n in range(4)
        },
        "project_settings": {"objectives": plain},
    }


@given(st.integers(min_value=1, max_value=999_999))
def test_an_objective_is_exact_or_none(scaled: int) -> None:
    text = f"{scaled / 10_000:.4f}"
    assert percent_of(text) == scaled / 10_000
    assert percent_of(f"{text}1") is None


@pytest.mark.parametrize("text", ["0", "100", "-1", "NaN", "Infinity", "1e400", "x", "9" * 99, ""])
def test_no_objective_is_none(text: str) -> None:
    assert percent_of(text) is None
