"""leadline version"""

from importlib import metadata

import click


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(metadata.version("leadline"))
