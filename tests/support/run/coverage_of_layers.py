# ruff: noqa: T201
"""Prints the line and branch coverage of the four layers, in percent.

    python -m tests.support.run.coverage_of_layers [data file]

Reads the result of `coverage combine`: `.coverage`, or the file that is named. `make coverage` runs
this at its end.
"""

import json
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from coverage import Coverage

LAYERS: Final = ("storage", "probes", "http", "daemon")
_PROJECT: Final = Path(__file__).parents[3] / "pyproject.toml"
_COUNTED: Final = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def counts_of(data_file: str) -> dict[str, Counter[str]]:
    """Returns for each layer the sums of `_COUNTED` over its files."""
    measured = Coverage(data_file=data_file, config_file=str(_PROJECT))
    measured.load()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        measured.json_report(outfile=report.name)
        files = json.load(report)["files"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for file, found in files.items():
        # The innermost folder, because a folder above the measured tree may have the same name.
        layer = next((part for part in reversed(Path(file).parts) if part in LAYERS), None)
        if layer is not None:
            counts[layer].update({name: found["summary"][name] for name in _COUNTED})
    return counts


def main() -> None:
    counts = counts_of(sys.argv[1] if len(sys.argv) > 1 else ".coverage")
    print(f"{'layer':<8} {'lines':>15} {'%':>6} {'branches':>15} {'%':>6}")
    for layer in LAYERS:
        statements, lines, branches, taken = (counts[layer][name] for name in _COUNTED)
        print(
            f"{layer:<8} {f'{lines}/{statements}':>15} {_percent(lines, statements):6.2f}"
            f" {f'{taken}/{branches}':>15} {_percent(taken, branches):6.2f}"
        )


def _percent(covered: int, total: int) -> float:
    return 100 * covered / total if total else 100.0


if __name__ == "__main__":
    main()
