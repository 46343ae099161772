"""A test that needs a program is skipped with the command that installs it, or fails if skips are
forbidden."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest


def set_up(pytestconfig: pytest.Config, need: str) -> None:
    conftest: Any = next(
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if hasattr(plugin, "PROVIDED_BY")
    )
    mark = pytest.mark.needs(need).mark
    conftest.pytest_runtest_setup(SimpleNamespace(iter_markers=lambda name: [mark]))


def test_a_missing_need_is_skipped_with_the_command_that_provides_it(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEADLINE_NO_SKIPS", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(pytest.skip.Exception, match="needs nginx: apt-get install nginx"):
        set_up(pytestconfig, "nginx")


def test_where_skips_are_forbidden_a_missing_need_fails(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEADLINE_NO_SKIPS", "1")
    with pytest.raises(pytest.fail.Exception, match="needs no-such-program: put"):
        set_up(pytestconfig, "no-such-program")


def test_a_need_that_is_there_lets_the_test_run(pytestconfig: pytest.Config) -> None:
    set_up(pytestconfig, sys.executable)
