"""The documents say what is true: every key of the configuration stands in its page, links lead
somewhere, and nothing names the machine it was written on."""

import re
from pathlib import Path

import msgspec
import pytest

from leadline.daemon.sections import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


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
    text = (ROOT / "docs" / "configuration.md").read_text()
    missing = [key for key in keys() if f"`{key}`" not in text]
    assert missing == []
    sections = {key.split(".")[0] for key in keys()}
    named = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", text))
    unknown = {n for n in named if n.split(".")[0] in sections} - set(keys())
    assert unknown == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_names_the_test_command_that_ci_runs() -> None:
    assert "make test" in (ROOT / "README.md").read_text()
    assert "\nmake test\n" in (ROOT / ".ci" / "run").read_text() + "\n"
