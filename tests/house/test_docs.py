"""The documents name only keys, metrics, files, tables and tests that exist.

They name every key and every metric.
The pages about the code have a chapter for each feature and name each table once.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.daemon.config.config_schema import Settings
from leadline.probes.check.monitor_spec import MonitorType
from leadline.probes.check.registry import spec_of
from leadline.storage.monitors.rules.organization_limits import LIMIT_BOUNDS, OrganizationLimits
from tests.house.order import FEATURES
from tests.house.pages import PAGES, blocks, inline_codes, name_of
from tests.house.sources import LAYERS, ROOT, files, text

# Names that have the form of a metric but are not metrics: the session cookie.
NO_METRICS = {"leadline_session"}
# A file of a backup, which has the form of a key.
NO_KEYS = {"database.dump"}
METRIC = re.compile(r"\bleadline_[a-z_]+[a-z]\b")
FEATURE_PAGE = ROOT / "docs" / "explanation" / "features.md"
INVARIANT_PAGE = ROOT / "docs" / "explanation" / "invariants.md"
PATH = re.compile(rf"(?:{'|'.join(LAYERS)}|tests|docs|systemd|extras)/[\w./-]+(?:::\w+)?")
CREATED_TABLE = re.compile(r"^\s*create table (?:if not exists )?([a-z_]+)", re.MULTILINE)


def keys() -> dict[str, Any]:
    """Returns the keys of the configuration with their defaults."""
    found: dict[str, Any] = {}
    for section in msgspec.structs.fields(Settings):
        if isinstance(section.type, type) and issubclass(section.type, msgspec.Struct):
            for field in msgspec.structs.fields(section.type):
                value = field.default
                if value is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
                    value = field.default_factory()
                found[f"{section.name}.{field.encode_name}"] = value
        else:
            found[section.name] = section.default
    return found


def is_key(name: str) -> bool:
    """True also for a key of a table whose names are free, such as a file provider."""
    return name in keys() or name.startswith("providers.file.")


def key_rows() -> list[tuple[str, str]]:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    return re.findall(r"^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \| ([^|]+) \|", page, re.MULTILINE)


def test_every_key_of_the_configuration_is_documented_once() -> None:
    rows = [key for names, _ in key_rows() for key in re.findall(r"`([^`]+)`", names)]
    assert sorted(rows) == sorted(keys())


@pytest.mark.parametrize(("names", "default"), key_rows())
def test_a_documented_default_is_the_default(names: str, default: str) -> None:
    documented = re.sub(r"`| ", "", default)
    for name in re.findall(r"`([^`]+)`", names):
        value = keys()[name]
        if isinstance(value, bool) or re.fullmatch(r"[\d ]+", default):
            assert documented == str(value).lower(), name
        elif default.startswith("`") and default.endswith("`") and isinstance(value, str) and value:
            assert documented == value, name
        elif default == "–":
            assert value in ("", (), {}), name


def test_documented_limits_of_organizations_are_the_defaults() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    rows = re.findall(
        r"^\| [^|`]+ \| `([a-z_]+)` \| ([\d ]+) \| ([\d ]+) to ([\d ]+) \|", page, re.M
    )
    found = {name: [int(one.replace(" ", "")) for one in numbers] for name, *numbers in rows}
    limits = msgspec.structs.asdict(OrganizationLimits())
    assert found == {
        name: [limits[name], bounds.least, bounds.most] for name, bounds in LIMIT_BOUNDS.items()
    }


def test_keys_that_the_documents_name_exist() -> None:
    sections = {key.partition(".")[0] for key in keys() if "." in key}
    assert [
        f"{page}: {code}"
        for page, code in inline_codes()
        if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", code)
        if code.partition(".")[0] in sections and not is_key(code) and code not in NO_KEYS
    ] == []


def test_keys_of_examples_exist() -> None:
    found = [
        f"{name}.{field}"
        for block in blocks()
        if block.language == "toml"
        for name, section in tomllib.loads(block.text).items()
        for field in section
    ]
    assert found
    assert [key for key in found if not is_key(key)] == []


def test_variables_of_keys_exist() -> None:
    known = {"LEADLINE_" + key.upper().replace(".", "__") for key in keys()}
    assert [
        f"{name_of(page)}: {variable}"
        for page in PAGES
        for variable in re.findall(r"\bLEADLINE_[A-Z_]+__[A-Z_]+", page.read_text())
        if variable not in known
    ] == []


@pytest.mark.parametrize("kind", list(MonitorType))
def test_every_setting_of_a_type_is_documented_in_its_section(kind: MonitorType) -> None:
    page = "canaries.md" if kind is MonitorType.ASYNC_CANARY else "checks.md"
    section = (ROOT / "docs" / "reference" / page).read_text()
    if page == "checks.md":
        section = section.partition(f"\n## {kind.value}\n")[2].partition("\n## ")[0]
    spec = spec_of(kind.value)
    assert spec is not None
    assert section
    assert [field.name for field in spec.fields if f"`{field.name}`" not in section] == []


def metrics_of_the_code() -> set[str]:
    code = "".join(text(path) for path in files() if path.name.endswith("metrics.py"))
    return set(re.findall(r'"(leadline_[a-z_]+)"', code))


def test_metrics_that_the_documents_name_exist() -> None:
    known = metrics_of_the_code() | NO_METRICS
    assert [
        f"{page}: {metric}"
        for page, code in [*inline_codes(), *((one.page, one.text) for one in blocks())]
        for metric in METRIC.findall(code)
        if metric not in known and not metric.startswith("leadline_push")
    ] == []


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert sorted(metrics_of_the_code() - set(METRIC.findall(page))) == []


def anchors(page: Path) -> set[str]:
    """Returns the names under which a link can reach the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_between_pages_lead_to_a_page_and_a_heading() -> None:
    """`make check-site` checks those of `docs` again, in the site."""
    wrong = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text()):
            path, _, heading = target.partition("#")
            place = page.parent / path if path else page
            if not place.exists() or (heading and heading not in anchors(place)):
                wrong.append(f"{name_of(page)}: {target}")
    assert wrong == []


def is_there(name: str) -> bool:
    """True if the file or folder exists, and for `file::test` also the test."""
    path, _, test = name.partition("::")
    place = ROOT / path
    if test:
        return (
            place.is_file()
            and re.search(rf"^(async )?def {test}\(", place.read_text(), re.M) is not None
        )
    return place.exists()


def test_files_and_tests_that_the_documents_name_exist() -> None:
    named = [(page, code) for page, code in inline_codes() if PATH.fullmatch(code)]
    assert named
    assert [f"{page}: {code}" for page, code in named if not is_there(code)] == []


def test_each_feature_has_a_chapter_in_order() -> None:
    in_order = [(layer, name) for layer in LAYERS for name in FEATURES[layer]]
    folders = [name for layer, name in in_order if (ROOT / layer / name).is_dir()]
    chapters = re.findall(r"^### (\w+)$", FEATURE_PAGE.read_text(), re.MULTILINE)
    assert chapters == list(dict.fromkeys(folders))


def test_the_overview_lists_each_feature() -> None:
    overview = (ROOT / "ARCHITECTURE.md").read_text()
    assert [
        name
        for names in FEATURES.values()
        for name in names
        if not re.search(rf"\b{name}\b", overview)
    ] == []


def test_each_table_is_in_one_chapter() -> None:
    migrations = sorted((ROOT / "storage" / "engine" / "migrations").glob("*.sql"))
    created = [name for path in migrations for name in CREATED_TABLE.findall(path.read_text())]
    lists = re.findall(r"^- \*\*Tables\*\*:((?:.|\n  )+)", FEATURE_PAGE.read_text(), re.MULTILINE)
    named = [name for one in lists for name in re.findall(r"`(\w+)`", one)]
    # `migrate` creates this table itself.
    assert sorted(named) == sorted([*created, "schema_migrations"])


def test_invariants_are_numbered_and_have_tests() -> None:
    rows = re.findall(
        r"^\| I(\d+) \| [^|]+ \| ([^|]+) \|$", INVARIANT_PAGE.read_text(), re.MULTILINE
    )
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert [
        number
        for number, tests in rows
        if not re.fullmatch(r"`[\w/.]+::\w+`(, `[\w/.]+::\w+`)*", tests)
    ] == []


def test_decisions_are_short() -> None:
    """The first 18 records are older than this bound."""
    assert [
        f"{page.name}: {len(page.read_text().split())} words"
        for page in sorted((ROOT / "docs" / "adr").glob("*.md"))
        if int(page.name[:4]) > 18 and len(page.read_text().split()) > 300
    ] == []


def test_the_readme_names_the_test_command_that_ci_runs() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text() + "\n"


def test_the_readme_names_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"Version {version}" in (ROOT / "README.md").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
