"""The documents say what is true: every key of the configuration stands in its page, links lead
somewhere, and nothing names the machine it was written on."""

import re
from pathlib import Path

import msgspec

from leadline.daemon.config.config_schema import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])


def keys() -> list[str]:
    found = []
    for section in msgspec.structs.fields(Settings):
        if isinstance(section.type, type) and issubclass(section.type, msgspec.Struct):
            fields = msgspec.structs.fields(section.type)
            found += [f"{section.name}.{field.encode_name}" for field in fields]
        else:
            found.append(section.name)
    return found


def test_every_key_of_the_configuration_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    missing = [key for key in keys() if f"`{key}`" not in text]
    assert missing == []
    sections = {key.split(".")[0] for key in keys()}
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", text))
    unknown = {n for n in named if n.split(".")[0] in sections} - set(keys())
    assert unknown == set()


def test_links_between_pages_lead_somewhere() -> None:
    assert [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ] == []


def test_the_readme_names_the_test_command_that_ci_runs() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text() + "\n"
