"""Builds the wheel of the tree, from a copy and without a network."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
# The layers, and the files that `leadline install` and `leadline extras` read.
FOLDERS: Final = ("daemon", "http", "storage", "probes", "systemd", "extras")
FILES: Final = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "MANIFEST.in",
    "py.typed",
    "__init__.py",
    "docs/glossary.md",
)


def build_wheel(folder: Path) -> Path:
    """Builds it in `folder`, and returns its path."""
    tree = folder / "tree"
    tree.mkdir()
    for name in FILES:
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    shutil.rmtree(tree)
    (built,) = folder.glob("*.whl")
    return built
