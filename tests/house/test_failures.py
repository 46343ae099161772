"""A failed test is reported in about 40 lines, with the reason in the summary."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

FAILING = """
import trio

def test_long():
    print("\\n".join(map(str, range(500))))
    assert list(range(500)) == list(range(1, 501)), "x" * 5_000

async def _boom():
    raise ValueError("deep")

def test_group():
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_boom)
    trio.run(main)
"""


def test_a_failure_takes_at_most_forty_lines(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEADLINE_WHOLE_FAILURES", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess(
        "-p", "tests.support.run.failures", "-p", "no:trio", "-ra"
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["FAILED *test_long - AssertionError: xxx*"])
    result.stdout.fnmatch_lines(["FAILED *test_group - ValueError: deep"])
    body = result.stdout.str().partition("= FAILURES =")[2].partition("short test summary")[0]
    long, _, group = body.partition(" test_group _")
    assert len(long.splitlines()) <= 40
    assert len(group.splitlines()) <= 40
    assert max(map(len, body.splitlines())) <= 400
