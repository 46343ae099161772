"""The documents name only commands and options that the command line has."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from leadline.daemon.cli import main
from tests.house.pages import blocks, inline_codes

# The command at the beginning of a line, of a step of a build server, or after another command.
_RUNS = re.compile(
    r"(?:^\s*(?:\$ |- )?(?:run: )?|[;&|({]\s*)((?:[\w./]*/)?leadline [a-z][^\n`]*)", re.MULTILINE
)
# Ends of a command in a line of shell.
_ENDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "}"})
# In a YAML file of a build server the command is part of a script.
_LANGUAGES = ("sh", "console", "yaml", "cron")


def words(command: str) -> list[str]:
    """Returns the arguments of a shell command, without redirections and the next command."""
    # A `)` that ends `$(…)` and a comment do not count as arguments.
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>)")
    lexer.whitespace_split = True
    found = []
    for word in lexer:
        if word in _ENDS or word.startswith(")"):
            break
        found.append(word)
    return found[1:]


def commands_of_blocks() -> Iterator[tuple[str, list[str]]]:
    for block in blocks():
        if block.language in _LANGUAGES:
            joined = re.sub(r"\\\n\s*", " ", block.text)
            for line in joined.splitlines():
                if block.language == "console" and not line.startswith("$ "):
                    continue
                for command in _RUNS.findall(line):
                    yield block.page, words(command)


def resolve(arguments: list[str]) -> tuple[click.Command, list[str]]:
    """Returns the command that the first arguments name, and the arguments after it."""
    command: click.Command = main
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, f"no command {' '.join(arguments)}"
        command, rest = found, rest[1:]
    return command, rest


COMMANDS = list(commands_of_blocks())


def test_the_blocks_contain_commands() -> None:
    assert len(COMMANDS) > 25


@pytest.mark.parametrize(("page", "arguments"), COMMANDS)
def test_a_command_of_a_block_is_accepted(page: str, arguments: list[str]) -> None:
    command, rest = resolve(arguments)
    assert not isinstance(command, click.Group), f"{page}: not a command"
    context = click.Context(command)
    given, values, _ = command.make_parser(context).parse_args(rest)
    for parameter in command.get_params(context):
        name, value = parameter.name, given.get(parameter.name or "")
        if parameter.required:
            assert name in given, f"{page}: {name} is missing"
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            assert value.startswith("$") or value in parameter.type.choices, f"{page}: {value}"
    assert values is not None


def test_commands_in_the_text_exist_with_their_options() -> None:
    found = [(page, code) for page, code in inline_codes() if re.match(r"leadline [a-z-]+\b", code)]
    assert len(found) > 30
    for page, code in found:
        command, rest = resolve(words(code))
        options = {
            option
            for parameter in command.get_params(click.Context(command))
            for option in parameter.opts
        }
        for word in rest:
            if word.startswith("-"):
                assert word.partition("=")[0] in options, f"{page}: {code}"
