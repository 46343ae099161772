"""The style sheets of the console: both ways to the dark theme are equal, and no class is dead."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "http" / "ui" / "static"
# Classes whose names Python or a script puts together, such as `p1` and `k-r-late`.
COMPOSED = re.compile(r"p\d|k-r-\w+|of-\w+|w\d+(_\d+)?|m-\w+")


def declarations(block: str) -> list[str]:
    return re.findall(r"--[\w-]+: [^;]+;", block)


def test_the_chosen_dark_theme_is_that_of_the_system() -> None:
    text = (STATIC / "tokens.css").read_text()
    system = text.partition("prefers-color-scheme: dark")[2].partition('[data-theme="light"] {')[0]
    chosen = text.partition(':root[data-theme="dark"]')[2]
    assert len(declarations(chosen)) > 30
    assert declarations(system) == declarations(chosen)


def test_every_class_of_the_console_is_used() -> None:
    style = re.sub(r"/\*.*?\*/|url\([^)]*\)", "", (STATIC / "console.css").read_text(), flags=re.S)
    sources = [
        path.read_text()
        for path in (ROOT / "http").rglob("*")
        if path.suffix in {".html", ".py", ".js"} and "public" not in path.parts
    ]
    words = set(re.findall(r"[A-Za-z_][\w-]*", " ".join(sources)))
    classes = set(re.findall(r"\.([A-Za-z][\w-]*)", style))
    dead = sorted(name for name in classes - words if not COMPOSED.fullmatch(name))
    assert dead == []
