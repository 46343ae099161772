# ruff: noqa: T201
"""Changes the product in one place at a time and counts the changes that no test detects.

    python -m tests.support.run.mutations [--at COMMIT] [--same-as COMMIT] [--area AREA]
                                          [--map FILE] [--again REPORT] REPORT

A fixed seed draws the places. Each change is made in a checkout of its own and run against the
tests that execute its line; REPORT (JSON) contains the result of each. `make mutations` does this
for HEAD.

To compare commit A with commit B: run `--at A --same-as B`, which draws only from files that are
the same in both, then `--at B --same-as A --again REPORT_OF_A`, which repeats those that the tests
of A let pass.

The map from lines to tests is the data of a run under coverage (`tests/support/run/contexts.py`).
This run takes longer than the changes. `--map FILE` keeps its data, and uses the file if it exists.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any, Final, NamedTuple

from coverage import CoverageData

from tests.support.run.kinds import TESTS, kind_of
from tests.support.run.mutated import Place, places

ROOT: Final = Path(__file__).parents[3]
_SEED: Final = 20_260_105
_WORKERS: Final = 2
# The second batch runs if the first detects no change. The report has the number of tests of each
# batch: if a change survives two full batches, run every test of the kinds against it.
_BATCHES: Final = (30, 270)
_FILES_OF_IMPORTERS: Final = 5
# A change can make a test wait without end. A run that exceeds its time is counted apart, because
# a slow test is not a detection.
_SECONDS_OF_RUN: Final = 120
_SECONDS_OF_TEST: Final = 4
_SECONDS_OF_FILES: Final = 900
_PYTEST: Final = (
    *("pytest", "-x", "-q", "-n", "0"),
    *("-p", "no:cacheprovider", "-p", "leadline_contexts"),
)
_PYTEST_OF_MAP: Final = (
    *("pytest", "-q", "-p", "leadline_contexts"),
    *("-n", "4", "--dist", "loadgroup", "--no-loadscope-reorder"),
)
# pytest's exit codes. A module that cannot be imported ends the collection.
_PASSED, _FAILED, _INTERRUPTED, _USAGE, _NO_TESTS = 0, 1, 2, 4, 5


class Area(NamedTuple):
    """`drawn` places of these files of the product; the kinds of `tests` run in this order."""

    name: str
    files: tuple[str, ...]
    drawn: int
    tests: tuple[str, ...]


# Without the console: most of its tests need a browser.
AREAS: Final = (
    Area(
        "rules",
        ("storage/core/*.py", "storage/*/rules.py", "storage/*/rules/*.py"),
        40,
        ("rule", "storage", "loop", "api"),
    ),
    Area(
        "storage",
        ("storage/*/tables.py", "storage/*/tables/*.py", "storage/*/transactions/*.py"),
        35,
        ("storage", "loop", "api"),
    ),
    Area("probes", ("probes/**/*.py",), 30, ("probes", "rule")),
    Area(
        "http",
        (
            "http/auth/*.py",
            "http/wire/*.py",
            "http/server/*.py",
            "http/*/schemas.py",
            "http/*/schemas/*.py",
            "http/*/routes.py",
            "http/*/routes/*.py",
            "http/status_pages/public/*.py",
        ),
        25,
        ("api", "public"),
    ),
)
KINDS: Final = tuple(dict.fromkeys(kind for area in AREAS for kind in area.tests))


class Drawn(NamedTuple):
    area: Area
    file: str
    place: Place

    @property
    def key(self) -> list[Any]:
        return [self.file, self.place.start, self.place.end, self.place.kind, self.place.text]


def draw(tree: Path, left_out: set[str]) -> list[Drawn]:
    """Draws the same places from the same text in each run, and skips the files `left_out`."""
    drawn: list[Drawn] = []
    for area in AREAS:
        files = sorted(
            path.relative_to(tree).as_posix()
            for pattern in area.files
            for path in tree.glob(pattern)
        )
        found = [
            Drawn(area, file, place)
            for file in files
            if file not in left_out
            for place in places((tree / file).read_bytes())
        ]
        drawn += Random(_SEED).sample(found, area.drawn)
    return drawn


class Coverers:
    """The tests that execute each line, by the data of a run under coverage."""

    def __init__(self, data_file: Path, tree: Path) -> None:
        data = CoverageData(str(data_file))
        data.read()
        # The run was in another checkout, which is named `leadline` as well.
        by_file = {name.rpartition("/leadline/")[2]: name for name in data.measured_files()}
        self._tree = tree
        self._tests: dict[str, dict[int, set[str]]] = {}
        # The number of lines that each test executes. A test with few lines is quick and specific.
        self._lines: Counter[str] = Counter()
        for file, name in by_file.items():
            self._tests[file] = {
                line: {_without_group(test) for test in tests}
                for line, tests in data.contexts_by_lineno(name).items()
            }
            for tests in self._tests[file].values():
                self._lines.update(tests)

    def batches(self, drawn: Drawn) -> list[list[str]]:
        """The arguments of each run of pytest for this place."""
        place, lines = drawn.place, self._tests.get(drawn.file, {})
        spanned = range(place.line, place.end_line + 1)
        executed = set[str]().union(*(lines.get(line, ()) for line in spanned))
        executed = executed or lines.get(place.statement_line, set())
        if executed == {""}:
            # A constant: any test that executes a line of its file may read it.
            executed = set[str]().union(*lines.values())
        rank = {kind: number for number, kind in enumerate(drawn.area.tests)}
        tests = sorted(
            (test for test in executed if test and _kind(test) in rank),
            key=lambda test: (rank[_kind(test)], self._lines[test], test),
        )
        first, second = _BATCHES
        found = [tests[:first], tests[first : first + second]]
        # Lines that run at import or fill a cache belong to no test, or to the first only.
        found.append(self._importers(drawn, rank))
        return [batch for batch in found if batch]

    def _importers(self, drawn: Drawn, rank: dict[str, int]) -> list[str]:
        module = "leadline." + drawn.file.removesuffix(".py").replace("/", ".")
        package, _, name = module.rpartition(".")
        found = []
        for kind in rank:
            for file in test_files(self._tree, [kind]):
                text = (self._tree / file).read_text()
                if f"{module} import" in text or f"{package} import {name}" in text:
                    found.append(file)
        return found[:_FILES_OF_IMPORTERS]


def test_files(tree: Path, kinds: Iterable[str]) -> list[str]:
    """Returns the files of tests of these kinds in a checkout, relative to it."""
    chosen = set(kinds)
    files = sorted(path.relative_to(tree).as_posix() for path in tree.glob("tests/**/test_*.py"))
    return [file for file in files if _kind(file) in chosen]


def _kind(test: str) -> str:
    return kind_of(TESTS.parent / test.partition("::")[0])


def _without_group(test: str) -> str:
    """Removes the group of the test, which pytest-xdist appends after the parameters."""
    name, at, group = test.rpartition("@")
    return name if at and "]" not in group else test


class Checkout:
    """A commit in a folder of its own, whose `leadline` hides the one that is installed."""

    def __init__(self, above: Path, commit: str) -> None:
        self.tree = above / "leadline"
        self._above = above
        self._failed = above / "failed.txt"
        above.mkdir()
        _git("worktree", "add", "--quiet", "--detach", str(self.tree), commit)
        modules = TESTS / "support/openid/node_modules"
        if modules.is_dir():
            (self.tree / "tests/support/openid/node_modules").symlink_to(modules)
        shutil.copy(Path(__file__).with_name("contexts.py"), above / "leadline_contexts.py")
        where = "import leadline.storage.core.instant as m; print(m.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", where],
            cwd=self.tree,
            env=self._environment(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert Path(found.strip()).is_relative_to(self.tree), found

    def _environment(self) -> dict[str, str]:
        # With CI set, Hypothesis draws the same examples in each run.
        return {**os.environ, "PYTHONPATH": str(self._above), "CI": "true"}

    def map(self, data_file: Path) -> None:
        """Runs the tests of KINDS under coverage, and leaves which tests executed each line."""
        coverage = [sys.executable, "-m", "coverage"]
        config = f"--rcfile={ROOT / 'pyproject.toml'}"
        data = f"--data-file={data_file}"
        files = test_files(self.tree, KINDS)
        subprocess.run(
            [*coverage, "run", config, data, "-m", *_PYTEST_OF_MAP, *files],
            cwd=self.tree,
            env=self._environment(),
            check=True,
        )
        subprocess.run([*coverage, "combine", "-q", config, data], cwd=self.tree, check=True)

    def result(self, drawn: Drawn, batches: list[list[str]]) -> str:
        """Returns how the tests end while the place is changed.

        The test that fails must fail again alone, and pass without the change, because on a busy
        machine one test in some thousands fails without a cause in the product.
        """
        with self._changed(drawn):
            results = (self._pytest(batch) for batch in batches)
            result = _first_that_tells(results)
            failed = self._failed.read_text() if self._failed.exists() else ""
            if result != "detected" or not failed:
                return result
            again = self._pytest([failed])
        if again == "survived" or self._pytest([failed]) != "survived":
            return f"unsteady: {failed}"
        return result

    @contextmanager
    def _changed(self, drawn: Drawn) -> Iterator[None]:
        path = self.tree / drawn.file
        compiled = Path(cache_from_source(str(path)))
        source, stat = path.read_bytes(), path.stat()
        try:
            path.write_bytes(drawn.place.applied(source))
            compiled.unlink(missing_ok=True)
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            compiled.unlink(missing_ok=True)

    def _pytest(self, tests: list[str]) -> str:
        """Runs either tests or whole files, and leaves the test that failed in `_failed`."""
        self._failed.unlink(missing_ok=True)
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        environment = {**self._environment(), "LEADLINE_FAILED_TEST": str(self._failed)}
        seconds = _SECONDS_OF_FILES
        if any("::" in test for test in tests):
            only = self._above / "only.json"
            only.write_text(json.dumps(tests))
            environment["LEADLINE_ONLY_TESTS"] = str(only)
            seconds = _SECONDS_OF_RUN + _SECONDS_OF_TEST * len(tests)
        # In a session of its own, so that what its tests started ends with it.
        process = subprocess.Popen(
            [sys.executable, "-m", *_PYTEST, *files],
            cwd=self.tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "timed out"
        if process.returncode == _NO_TESTS:
            return "no test"
        if process.returncode == _PASSED:
            return "survived"
        assert process.returncode in {_FAILED, _INTERRUPTED, _USAGE}, output
        return "detected"


def _first_that_tells(results: Iterator[str]) -> str:
    """Returns the first result other than "survived", or "survived" if any batch ran its tests."""
    seen = set()
    for result in results:
        if result not in {"survived", "no test"}:
            return result
        seen.add(result)
    return "survived" if "survived" in seen else "no test"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


@contextmanager
def _checkouts(commit: str) -> Iterator[list[Checkout]]:
    with tempfile.TemporaryDirectory(prefix="leadline-mutations-") as folder:
        try:
            yield [Checkout(Path(folder) / str(number), commit) for number in range(_WORKERS)]
        finally:
            for number in range(_WORKERS):
                tree = Path(folder) / str(number) / "leadline"
                if tree.exists():
                    _git("worktree", "remove", "--force", str(tree))


def run(given: argparse.Namespace) -> None:
    """Makes the changes, and writes the whole report after each of them."""
    unlike = _git("diff", "--name-only", given.at, given.same_as).split() if given.same_as else []
    data_file, report = given.map.absolute(), given.report.absolute()
    report.parent.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    with _checkouts(given.at) as checkouts:
        if not data_file.exists():
            checkouts[0].map(data_file)
        coverers = Coverers(data_file, checkouts[0].tree)
        chosen = draw(checkouts[0].tree, set(unlike))
        if given.area:
            chosen = [drawn for drawn in chosen if drawn.area.name == given.area]
        if given.again is not None:
            passed = [it["key"] for it in json.loads(given.again.read_text()) if _is_survivor(it)]
            chosen = [drawn for drawn in chosen if drawn.key in passed]
        free: SimpleQueue[Checkout] = SimpleQueue()
        for checkout in checkouts:
            free.put(checkout)

        def one(drawn: Drawn) -> None:
            batches = coverers.batches(drawn)
            checkout = free.get()
            try:
                source = (checkout.tree / drawn.file).read_bytes()
                result = checkout.result(drawn, batches) if batches else "no test"
            finally:
                free.put(checkout)
            results.append(_report(drawn, source, batches, result))
            report.write_text(json.dumps(results, indent=1))
            print(result, *_line(results[-1]), flush=True)

        with ThreadPoolExecutor(_WORKERS) as threads:
            list(threads.map(one, chosen))
    _print(results)


def _report(drawn: Drawn, source: bytes, batches: list[list[str]], result: str) -> dict[str, Any]:
    place = drawn.place
    return {
        "area": drawn.area.name,
        "place": f"{drawn.file}:{place.line}",
        "kind": place.kind,
        "was": source[place.start : place.end].decode(),
        "is": place.text,
        "tests": [len(batch) for batch in batches],
        "result": result,
        "key": drawn.key,
    }


def _is_survivor(result: dict[str, Any]) -> bool:
    return bool(result["result"] != "detected")


def _line(result: dict[str, Any]) -> list[str]:
    return [result["place"], result["kind"], f"{result['was']!r} -> {result['is']!r}"]


def _print(results: list[dict[str, Any]]) -> None:
    print()
    for area in AREAS:
        of = [result["result"] for result in results if result["area"] == area.name]
        detected, timed_out = of.count("detected"), of.count("timed out")
        print(
            f"{area.name:<8} {len(of):4} drawn {detected:4} detected {timed_out:4} timed out"
            f" {len(of) - detected - timed_out:4} not detected"
        )
    for result in results:
        if result["result"] != "detected":
            print(result["result"], *_line(result))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.run.mutations")
    parser.add_argument("--at", default="HEAD")
    parser.add_argument("--same-as", default="")
    parser.add_argument("--area", choices=[area.name for area in AREAS])
    parser.add_argument("--map", type=Path, default=Path(tempfile.gettempdir()) / "leadline-map")
    parser.add_argument("--again", type=Path)
    parser.add_argument("report", type=Path)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
