"""Files of texts: the same keys and placeholders, all used, and no fixed word elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import Final

import pytest

import leadline
from leadline.http.status_pages.public.language import texts_of
from leadline.storage.core.availability import Withheld
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from leadline.storage.status_pages.rules.component_latency import LatencyWithheld
from leadline.storage.status_pages.rules.maintenance_step import MaintenanceStep
from leadline.storage.status_pages.rules.page_language import LANGUAGES
from leadline.storage.status_pages.rules.status_page import ComponentStatus, NoDataReason

PUBLIC: Final = Path(leadline.__file__).parent / "http/status_pages/public"
TEMPLATES: Final = sorted(PUBLIC.glob("*.html"))
# Texts of a value, and those of one or of several, are not named in the code.
_OF_VALUES: Final = {
    "status": ComponentStatus,
    "incident": IncidentStatus,
    "impact": IncidentImpact,
    "reason": NoDataReason,
    "withheld": Withheld,
    "step": MaintenanceStep,
    "latency": LatencyWithheld,
}


def test_the_files_are_those_of_the_languages() -> None:
    files = {path.stem.removeprefix("texts_") for path in PUBLIC.glob("texts_*.toml")}
    assert files == set(LANGUAGES)


@pytest.mark.parametrize("code", LANGUAGES)
def test_all_languages_have_the_same_keys_and_placeholders(code: str) -> None:
    english, other = texts_of("en"), texts_of(code)
    assert list(other) == list(english)
    for key, text in other.items():
        assert _placeholders(text) == _placeholders(english[key]), key
        assert text == text.strip(), key
        assert text, key


def _placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_texts_differ_between_languages() -> None:
    english, german = texts_of("en"), texts_of("de")
    same = {key for key in english if english[key] == german[key]}
    # Units, and a few words that are both.
    assert all(
        key.startswith(("format.", "month.", "one.", "line.", "page.column")) for key in same
    )


def test_values_have_texts() -> None:
    english = texts_of("en")
    for prefix, kinds in _OF_VALUES.items():
        assert {f"{prefix}.{kind.value}" for kind in kinds} <= set(english)


def test_every_text_is_used() -> None:
    code = "\n".join(path.read_text() for path in (*PUBLIC.glob("*.py"), *TEMPLATES))
    for key in texts_of("en"):
        head, _, last = key.rpartition(".")
        base = head if last in ("one", "other") else key
        prefix = base.split(".")[0]
        dynamic = rf"""f"{re.escape(prefix)}\.\{{"""
        part = rf"\}}\.{re.escape(last)}\""
        used = (
            re.search(rf"""["']{re.escape(base)}["']""", code)
            or re.search(dynamic, code)
            or re.search(part, code)
        )
        assert used, key


class _Words(HTMLParser):
    """Collects the text and the read attributes of a template without its expressions."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shown = {"title", "alt", "placeholder", "aria-label"}
        self.found += [value or "" for name, value in attrs if name in shown]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_fixed_word(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text(), flags=re.DOTALL)
    words = _Words()
    words.feed(text)
    shown = [part for part in words.found if re.search(r"[A-Za-z]{2,}", part)]
    # The attributes of a macro.
    assert [part for part in shown if not part.strip().startswith("aria-invalid=")] == []
    # Nor in an expression, except for the name of the product.
    for expression in re.findall(r"\{\{(.*?)\}\}", path.read_text(), re.DOTALL):
        for said in re.findall(r'"([^"]*)"', expression):
            assert " " not in said.strip() or said == "Leadline", (path.name, said)


def test_the_script_has_no_fixed_word() -> None:
    script = (PUBLIC.parents[1] / "ui/static/public.js").read_text()
    strings = re.findall(r'"([^"]*)"|`([^`]*)`', script)
    assert not [one for pair in strings for one in pair if re.search(r"[A-Z][a-z]+ [a-z]", one)]
