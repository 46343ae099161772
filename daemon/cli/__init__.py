"""Command line. Each command is a module, imported when the command is called."""

import importlib
from typing import Final

import click

# Name and one-line help. Kept here so that `leadline --help` imports no command module.
COMMANDS: Final = {
    "run": "Run the daemon.",
    "install": "Create the user, the folders, the systemd unit and an example configuration.",
    "migrate": "Apply database migrations.",
    "check-config": "Validate the configuration.",
    "openapi": "Print the OpenAPI document of the HTTP API.",
    "version": "Print the version.",
    "admin": "Create users, reset passwords and remove second factors.",
    "keys": "Generate and rotate encryption keys.",
    "gate": "Query the release gate.",
    "bundle": "Keep a project's monitors and services in a file: plan, apply, export, import.",
    "backup": "Write or verify a backup of the whole installation.",
    "restore": "Restore a backup into an empty store.",
    "change": "Record changes of a service.",
}


class LazyGroup(click.Group):
    """Group that imports the module of a command when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name.replace('-', '_')}", __name__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Leadline, a reliability platform: monitors, services, incidents and status pages.

    \b
    Exit status: 0 done, 1 failed, 2 usage error. `gate check`, `change record` and `bundle plan`
    have further exit statuses: see their help.
    Shell completion: eval "$(_LEADLINE_COMPLETE=bash_source leadline)"
    """
