"""The command that takes over on-call: the bundle and the report that it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from leadline.daemon.cli import bundle_import, main
from leadline.http.importers import CannotImport
from leadline.http.importers.on_call import read_on_call
from leadline.http.importers.on_call.bundle import on_call_bundle
from leadline.http.importers.on_call.document import OnCallImport, layer_of
from leadline.storage.bundles.rules.bundle import read_bundle
from leadline.storage.bundles.rules.bundle_oncall import OVERRIDES_MOST
from leadline.storage.bundles.rules.bundle_yaml import read_text
from leadline.storage.core.instant import HOUR, Instant, from_text, to_text
from tests.importers.test_on_call_models_rule import TOOLS, mail

WHERE = ["--organization", "acme", "--project", "shop"]


@pytest.mark.parametrize("tool", TOOLS)
def test_the_bundle_and_the_report_are_printed(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_import, "_now", lambda: Instant(0))
    path = tmp_path / "export.json"
    path.write_text(json.dumps(TOOLS[tool][0]))
    done = CliRunner().invoke(main, ["bundle", "import", tool, str(path), *WHERE])
    assert done.exit_code == 0
    document = read_text(done.stdout).document
    bundle = read_bundle(document)
    assert bundle.stated <= {"people", "schedules", "escalation_policies", "routes"}
    assert "4 people, " in done.stderr
    if tool != "grafana-oncall":
        assert f"{mail('mara')} confirms sms " in done.stderr
    # The schedules of the bundle are those that the models of the tools were compared with.
    found = read_on_call(tool, path)
    assert [
        {"name": "", "contact_methods": [], **one} for one in document["people"].values()
    ] == found.people
    assert bundle.schedules
    assert [whole(one) for one in document["schedules"].values()] == found.schedules
    policies = document["escalation_policies"].values()
    names = {uid: one["name"] for uid, one in document["schedules"].items()}
    assert [
        {
            "name": one["name"],
            "steps": [
                {**step, "targets": [named(target, names) for target in step["targets"]]}
                for step in one["steps"]
            ],
        }
        for one in policies
    ] == found.policies


def whole(given: dict[str, Any]) -> dict[str, Any]:
    """Returns a schedule of a bundle as the importer describes it."""
    found = layer(given)
    layers = [layer(one) for one in given.get("layers", [])]
    return {**found, "layers": layers, "overrides": given.get("overrides", [])}


def layer(given: dict[str, Any]) -> dict[str, Any]:
    assert all(list(one) == ["person"] for one in given["participants"])
    people = [one["person"] for one in given["participants"]]
    return {"timezone": "", "restrictions": [], **given, "participants": people}


def named(target: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    return target if "person" in target else {"schedule": names[target["schedule"]]}


def test_names_become_distinct_uids_and_only_one_route_is_the_default() -> None:
    found = OnCallImport()
    made = [layer_of("Layer", [mail("mara")], Instant(0), 86_400, "UTC")]
    for name in ("Shop!", "Shop?", "…"):
        found.add_schedule(name, made)
        found.add_policy(name, {0: [{"schedule": name}]})
    found.routes += [{"matchers": "", "policy": name} for name in ("Gone", "Shop?", "…", "…")]
    bundle = on_call_bundle(found, "acme", "shop", Instant(0))
    assert list(bundle["schedules"]) == ["shop", "shop-2", "schedule"]
    assert bundle["escalation_policies"]["shop-2"]["steps"] == [
        {"after_seconds": 0, "targets": [{"schedule": "shop-2"}]}
    ]
    assert bundle["routes"] == {"default": {"escalation_policy": "shop-2"}}
    assert found.lost == ["default route to …: a project has one, to Shop?"]
    read_bundle(bundle)


def test_ended_overrides_and_those_beyond_the_limit_are_reported() -> None:
    found, now = OnCallImport(), from_text("2026-06-01T00:00:00Z")
    made = found.add_schedule("Shop", [layer_of("Layer", [mail("mara")], now, 86_400, "UTC")])
    assert made is not None
    # The newest first, as the last one precedes.
    starts = [Instant(now + at * HOUR) for at in range(OVERRIDES_MOST + 2, -4, -1)]
    for at in starts:
        found.add_override(made, mail("mara"), to_text(at), to_text(Instant(at + HOUR)))
    bundle = on_call_bundle(found, "acme", "shop", now)
    kept = [to_text(at) for at in starts if now <= at < now + OVERRIDES_MOST * HOUR]
    assert [one["starts_at"] for one in bundle["schedules"]["shop"]["overrides"]] == kept
    assert found.lost == [
        "schedule Shop: overrides that have ended are left out: 3",
        f"schedule Shop: overrides beyond the first {OVERRIDES_MOST} are left out: 3",
    ]
    read_bundle(bundle)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schedules": 7}', '{"schedules": {"a": 1}}'])
@pytest.mark.parametrize("tool", TOOLS)
def test_other_files_are_refused(tool: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(CannotImport):
        read_on_call(tool, path)


def test_schedules_of_one_name_stay_apart_and_lost_targets_are_reported(tmp_path: Path) -> None:
    document: Any = json.loads(json.dumps(TOOLS["pagerduty"][0]))
    (schedule,), (policy,) = document["schedules"], document["escalation_policies"]
    document["schedules"].append({**schedule, "id": "S2"})
    document["schedules"].append({**schedule, "id": "S3", "schedule_layers": []})
    rule = {"escalation_delay_in_minutes": 5}
    policy["escalation_rules"] = [
        {**rule, "targets": [{"id": key, "type": "schedule_reference"}]} for key in ("S2", "S3")
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    made = read_on_call("pagerduty", path)
    assert [one["name"] for one in made.schedules] == ["Shop", "Shop 2"]
    (imported,) = made.policies
    assert imported["steps"] == [{"after_seconds": 0, "targets": [{"schedule": "Shop 2"}]}]
    assert "escalation policy Night: target schedule_reference S3" in made.lost
    assert "schedule Shop: has no layer that can be imported" in made.lost


@pytest.mark.parametrize(
    ("zone", "start", "is_kept"),
    [
        ("America/New_York", "2026-02-02T03:00:00", False),
        ("America/New_York", "2026-02-02T12:00:00", True),
        ("Europe/Berlin", "2026-02-02T17:00:00", True),
        ("Europe/Berlin", "2026-02-02T16:00:00", False),
    ],
)
def test_shifts_of_one_level_that_can_overlap_are_reported(
    zone: str, start: str, is_kept: bool, tmp_path: Path
) -> None:
    shift: dict[str, Any] = {
        "type": "rolling_users",
        "frequency": "daily",
        "rolling_users": [["mara"]],
    }
    shift |= {"time_zone": "Europe/Berlin", "start": "2026-02-02T09:00:00", "duration": 28_800}
    document = {
        "users": [{"id": "mara", "username": "mara", "email": mail("mara")}],
        "schedules": [{"id": "S", "name": "Shop", "type": "web", "shifts": ["A", "B"]}],
        "on_call_shifts": [
            {**shift, "id": "A", "name": "A"},
            {**shift, "id": "B", "name": "B", "time_zone": zone, "start": start},
        ],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    made = read_on_call("grafana-oncall", path)
    assert (made.lost == []) == is_kept
    assert len(made.schedules[0]["layers"]) == is_kept
