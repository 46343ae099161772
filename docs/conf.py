"""Configuration of `make site`, which builds the documentation as a website with Sphinx."""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]

project = "Leadline"
release = version = _PROJECT["version"]
extensions = ["myst_parser"]
exclude_patterns = ["shots"]
html_theme = "furo"
html_title = f"Leadline {release}"
# The sources are in the repository; a copy of each in the site is not needed.
html_copy_source = False
# Headings that a link can name: those of the levels 1 to 3.
myst_heading_anchors = 3
nitpicky = True
html_show_copyright = False
# Examples of JSON may contain an ellipsis.
suppress_warnings = ["misc.highlighting_failure"]

# The order of the navigation. A page that is missing here is an error of the build.
_NAVIGATION = {
    "Tutorial": ["tutorial/first-steps"],
    "How to": [
        f"how-to/{page}"
        for page in (
            "install",
            "containers",
            "watch-leadline",
            "back-up",
            "upgrade",
            "troubleshoot",
            "agents",
            "console",
            "bundles",
            "move-on-call",
            "pipelines",
        )
    ],
    "Reference": [
        f"reference/{page}"
        for page in (
            "configuration",
            "api",
            "commands",
            "checks",
            "canaries",
            "alerting",
            "oncall",
            "notifications",
            "incidents",
            "services",
            "gate",
            "changes",
            "status-pages",
            "metrics",
        )
    ]
    + ["glossary"],
    "Explanation": [
        f"explanation/{page}"
        for page in (
            "runs",
            "alerting",
            "agents",
            "scaling",
            "performance",
            "features",
            "invariants",
        )
    ],
    "Decisions": sorted(f"adr/{page.stem}" for page in (_ROOT / "docs" / "adr").glob("*.md")),
}


def _add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends the navigation to the index, whose file stays plain Markdown."""
    if page == "index":
        for title, pages in _NAVIGATION.items():
            options = f":hidden:\n:maxdepth: 1\n:caption: {title}\n\n"
            source[0] += f"\n```{{toctree}}\n{options}" + "\n".join(pages) + "\n```\n"


def _outdated(*_event: object) -> list[str]:
    """Returns the index, which Sphinx must read again: its navigation can name new pages."""
    return ["index"]


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_navigation)
    app.connect("env-get-outdated", _outdated)
