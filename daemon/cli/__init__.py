"""Command line. Each command is a module, imported when the command is called."""

import importlib
from typing import Final

import click
from click.shell_completion import CompletionItem

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
    "bundle": "Keep a project in a file: plan, apply, export, import from other tools.",
    "slo": "Export and import objectives: OpenSLO, Sloth and Pyrra.",
    "backup": "Write or verify a backup of the whole installation.",
    "restore": "Restore a backup into an empty store.",
    "change": "Record changes of a service.",
    "extras": "Print the files for Prometheus, Grafana and containers.",
}
# Commands of people, who sign in with a profile: the modules of `client`.
CLIENT_COMMANDS: Final = {
    "login": "Sign in to a server and remember it as a profile.",
    "logout": "Delete a profile with its token.",
    "profiles": "List the profiles, and choose one.",
    "status": "Show what needs attention, and who is on call.",
    "monitors": "List, show, pause, resume, test and add monitors.",
    "incidents": "List, show, acknowledge, explain and resolve incidents.",
    "services": "List services, and show their health and error budget.",
    "oncall": "Show who is on call now.",
    "maintenance": "Start, list and end maintenance.",
    "events": "Follow the status changes of monitors.",
    "export": "Export results and incidents as CSV or JSON lines.",
    "audit": "Export audit logs.",
    "completion": "Print the completion script of a shell.",
}


class LazyGroup(click.Group):
    """Group that imports the module of a command when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*COMMANDS, *CLIENT_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS and cmd_name not in CLIENT_COMMANDS:
            return None
        folder = ".client" if cmd_name in CLIENT_COMMANDS else ""
        module = importlib.import_module(f"{folder}.{cmd_name.replace('-', '_')}", __name__)
        command: click.Command = module.command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns commands without their import, which takes longer than a person waits."""
        known = {**COMMANDS, **CLIENT_COMMANDS}.items()
        found = [CompletionItem(k, help=v) for k, v in known if k.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Commands that sign in with a profile"):
            formatter.write_dl(list(CLIENT_COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Leadline, a reliability platform: monitors, services, incidents and status pages.

    \b
    Exit status: 0 done, 1 failed, 2 usage error. `gate check`, `change record`, `bundle plan`,
    `status` and `monitors test` have further exit statuses: see their help.
    Shell completion: eval "$(leadline completion bash)"
    """
