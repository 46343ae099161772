"""The files for other products: alerts, the dashboard, and the container definitions."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from leadline.daemon.cli import main
from leadline.daemon.cli.extras import EXTRAS, text_of
from tests.house.test_docs import metrics_of_the_code

ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\bleadline_[a-z_]+")
LOCAL = {"instance": "a:8080", "job": "leadline"}
# Of each alert: series that raise it, series that do not, and the minute of the question.
# "+60x30" adds 60 in each of 30 steps of a minute.
CASES: dict[str, tuple[dict[str, str], dict[str, str], int]] = {
    "LeadlineDown": ({"up": "0x30"}, {"up": "1x30"}, 10),
    "LeadlineAbsent": ({}, {"up": "0x30"}, 10),
    "LeadlineSchedulingLate": (
        {"leadline_reservation_lag_seconds": "31x30"},
        {"leadline_reservation_lag_seconds": "2x30"},
        10,
    ),
    "LeadlineRunsWithoutProber": (
        {'leadline_pull_agent_lag_seconds{region="eu"}': "61x30"},
        {'leadline_pull_agent_lag_seconds{region="eu"}': "5x30"},
        10,
    ),
    "LeadlineRunsMissed": (
        {'leadline_windows_missed_total{reason="never_published"}': "0+1x30"},
        {'leadline_windows_missed_total{reason="never_published"}': "7x30"},
        20,
    ),
    "LeadlineLocalFailures": (
        {
            'leadline_runs_unknown_total{reason="network"}': "0+6x30",
            "leadline_runs_started_total": "0+100x30",
        },
        {
            'leadline_runs_unknown_total{reason="network"}': "0+4x30",
            "leadline_runs_started_total": "0+100x30",
        },
        29,
    ),
    "LeadlineResultsNotStored": (
        {"leadline_recorder_queue_length": "5001x30"},
        {"leadline_recorder_queue_length": "5000x30"},
        10,
    ),
    "LeadlineLoopStalled": (
        {"leadline_loops_stalled": "1x30"},
        {"leadline_loops_stalled": "0x30"},
        10,
    ),
    "LeadlineRestarting": (
        {"leadline_component_restarts_total": "0+1x30"},
        {"leadline_component_restarts_total": "3x30"},
        20,
    ),
    "LeadlineEventLoopBlocked": (
        {
            'leadline_event_loop_lag_seconds_bucket{le="0.25"}': "0+90x30",
            'leadline_event_loop_lag_seconds_bucket{le="1.0"}': "0+100x30",
            'leadline_event_loop_lag_seconds_bucket{le="+Inf"}': "0+100x30",
        },
        {
            'leadline_event_loop_lag_seconds_bucket{le="0.25"}': "0+100x30",
            'leadline_event_loop_lag_seconds_bucket{le="1.0"}': "0+100x30",
            'leadline_event_loop_lag_seconds_bucket{le="+Inf"}': "0+100x30",
        },
        25,
    ),
    "LeadlineDatabaseFailing": (
        {
            'leadline_transactions_total{name="read_clock",outcome="unavailable"}': "0+2x30",
            'leadline_transactions_total{name="read_clock",outcome="committed"}': "0+10x30",
        },
        {
            # A refusal is an answer: it does not count.
            'leadline_transactions_total{name="read_clock",outcome="refused"}': "0+9x30",
            'leadline_transactions_total{name="read_clock",outcome="committed"}': "0+10x30",
        },
        20,
    ),
    "LeadlineConnectionsExhausted": (
        {'leadline_pool_connections{pool="http",state="waiting"}': "2x30"},
        {'leadline_pool_connections{pool="http",state="open"}': "2x30"},
        20,
    ),
    "LeadlineClocksDiffer": (
        {"leadline_clock_ahead_seconds": "-3x30"},
        {"leadline_clock_ahead_seconds": "1x30"},
        20,
    ),
    "LeadlineDeliveriesLate": (
        {"leadline_outbox_oldest_due_seconds": "121x30"},
        {"leadline_outbox_oldest_due_seconds": "10x30"},
        10,
    ),
    "LeadlineDeadLetters": (
        {"leadline_outbox_dead": "3x10 4x80"},
        {"leadline_outbox_dead": "3x90"},
        30,
    ),
    "LeadlineDestinationsFailing": (
        {"leadline_outbox_destinations_failing": "1x60"},
        {"leadline_outbox_destinations_failing": "1x10 0x50"},
        45,
    ),
    "LeadlineConditionReported": (
        {'leadline_self_conditions{kind="store_lags"}': "1x30"},
        {'leadline_self_conditions{kind="store_lags"}': "0x30"},
        20,
    ),
    "LeadlineSelfMonitoringStalled": (
        # The starts of two processes that never succeed.
        {
            'leadline_self_monitor_last_success_timestamp_seconds{role="api"}': "0x30",
            'leadline_self_monitor_last_success_timestamp_seconds{role="scheduler"}': "60x30",
        },
        {"leadline_self_monitor_last_success_timestamp_seconds": "0+60x30"},
        20,
    ),
    "LeadlineHeartbeatFailing": (
        {'leadline_external_heartbeats_total{outcome="failed"}': "0+1x30"},
        {'leadline_external_heartbeats_total{outcome="failed"}': "0x5 1x25"},
        20,
    ),
    "LeadlineGateErrors": (
        {'leadline_gate_errors_total{reason="database"}': "0x5 1x25"},
        {'leadline_gate_errors_total{reason="database"}': "1x30"},
        10,
    ),
    "LeadlineGateLedgerEnds": (
        {"leadline_gate_ledger_ahead_seconds": "172799x60"},
        {"leadline_gate_ledger_ahead_seconds": "518400x60"},
        45,
    ),
    "LeadlineHistoryNotPacked": (
        {"leadline_packing_backlog": "4x420"},
        {"leadline_packing_backlog": "3x420"},
        400,
    ),
    "LeadlineResultsPackedApart": (
        {"leadline_packing_failures": "2x60 3x360"},
        # Failures of earlier days stay counted until their days are deleted.
        {"leadline_packing_failures": "3x420"},
        90,
    ),
    "LeadlineBackupOld": (
        {"leadline_backup_verified_age_seconds": "130000x30"},
        {"leadline_backup_verified_age_seconds": "129000x30"},
        20,
    ),
}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(text_of("prometheus-rules.yml"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def series(name: str, values: str) -> dict[str, str]:
    bare, _, labels = name.partition("{")
    own = ",".join(f'{key}="{value}"' for key, value in LOCAL.items())
    first = re.split(r"[x+]", values)[0]
    # promtool reads "5x3" as four times 5.
    spelt = values if "+" in values else re.sub(r"(-?\d+)x", r"\1+0x", values)
    assert first
    return {"series": f"{bare}{{{own},{labels.rstrip('}')}}}".replace(",}", "}"), "values": spelt}


def promtool_test(folder: Path, cases: list[tuple[str, dict[str, str], int, bool]]) -> str:
    """Returns the output of `promtool test rules`, empty if all cases hold."""
    (folder / "rules.yml").write_text(text_of("prometheus-rules.yml"))

    # The alerts are asked by their series, since an expected alert needs all its annotations.
    def fired(alert: str) -> str:
        return f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'

    tests = [
        {
            "interval": "1m",
            "input_series": [series(*one) for one in given.items()],
            "promql_expr_test": [
                {
                    "expr": fired(alert),
                    "eval_time": f"{minute}m",
                    "exp_samples": [{"labels": "{}", "value": int(fires)}],
                }
            ],
        }
        for alert, given, minute, fires in cases
    ]
    given = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yml").write_text(yaml.safe_dump(given))
    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.needs("promtool")
def test_each_alert_fires_for_its_fault_and_only_then(tmp_path: Path) -> None:
    assert set(CASES) == {rule["alert"] for rule in alerts()}
    cases = [
        (alert, given, minute, fires)
        for alert, (bad, good, minute) in CASES.items()
        for given, fires in ((bad, True), (good, False))
    ]
    assert promtool_test(tmp_path, cases) == ""
    wrong = [(alert, good, minute, True) for alert, (_, good, minute) in CASES.items()]
    failures = promtool_test(tmp_path, wrong)
    assert [alert for alert in CASES if alert not in failures] == [], "the test can fail"


def test_each_alert_states_a_severity_and_an_action() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert set(rule["annotations"]) == {"summary", "action"}, rule["alert"]


@pytest.mark.parametrize("name", ["prometheus-rules.yml", "grafana-dashboard.json"])
def test_metrics_of_alerts_and_dashboard_exist(name: str) -> None:
    named = {re.sub(r"_(bucket|count|sum)$", "", one) for one in METRIC.findall(text_of(name))}
    assert named - metrics_of_the_code() == set()


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text_of("grafana-dashboard.json"))["panels"]
    return found


@pytest.mark.needs("promtool")
def test_each_query_of_the_dashboard_is_valid(tmp_path: Path) -> None:
    queries = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    assert len(queries) > 30
    spelt = [
        query.replace("$__rate_interval", "5m").replace("$instance", ".*") for query in queries
    ]
    rules = [{"record": f"query_{n}", "expr": query} for n, query in enumerate(spelt)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_container_definition_has_no_finding() -> None:
    done = subprocess.run(
        [ROOT / ".venv/bin/hadolint", ROOT / "extras/Containerfile"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_container_runs_one_process_without_privileges() -> None:
    lines = text_of("Containerfile").splitlines()
    assert "USER 10001:10001" in lines
    assert 'ENTRYPOINT ["leadline"]' in lines
    assert 'CMD ["run"]' in lines
    compose = yaml.safe_load(text_of("compose.yaml"))
    service = compose["services"]["leadline"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "healthcheck" in compose["services"]["postgres"]
    named = {
        volume.split(":")[0] for one in compose["services"].values() for volume in one["volumes"]
    }
    assert named == set(compose["volumes"])


def test_the_commands_of_the_compose_file_write_a_valid_configuration(tmp_path: Path) -> None:
    comment = [
        line.removeprefix("#")
        for line in text_of("compose.yaml").splitlines()
        if line.startswith("#   ")
    ]
    done = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(comment)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    password = (tmp_path / "postgres-password").read_text().strip()
    lines = (tmp_path / "leadline.env").read_text().splitlines()
    environment = dict(line.partition("=")[::2] for line in lines)
    assert environment["LEADLINE_DATABASE__DSN"] == (
        f"postgresql://leadline:{password}@postgres/leadline"
    )
    assert (tmp_path / "leadline.env").stat().st_mode & 0o777 == 0o600
    result = CliRunner().invoke(
        main,
        ["check-config"],
        env={**environment, "LEADLINE_SERVER__LISTEN": "0.0.0.0:8080", "LEADLINE_DATA_DIR": "/x"},
    )
    assert result.exit_code == 0, result.output


def test_the_files_are_listed_printed_and_written(tmp_path: Path) -> None:
    listed = CliRunner().invoke(main, ["extras"])
    assert [line.split("  ")[0] for line in listed.output.splitlines()] == list(EXTRAS)
    for name in EXTRAS:
        printed = CliRunner().invoke(main, ["extras", name])
        assert printed.output == (ROOT / "extras" / name).read_text()
    written = CliRunner().invoke(main, ["extras", "--dir", str(tmp_path)])
    assert written.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == set(EXTRAS)


def test_a_file_that_exists_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text("mine")
    arguments = ["extras", "compose.yaml", "--dir", str(tmp_path)]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 1
    assert "compose.yaml exists" in refused.output
    assert path.read_text() == "mine"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0
    assert path.read_text() == text_of("compose.yaml")


def test_an_unknown_file_is_refused() -> None:
    assert CliRunner().invoke(main, ["extras", "passwords"]).exit_code == 2
