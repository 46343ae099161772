"""leadline openapi"""

import click

from ...http.server.openapi_document import document_bytes


@click.command("openapi")
def command() -> None:
    """Print the OpenAPI 3.1 document. Needs neither a database nor a configuration.

    \b
    Example:
      leadline openapi > leadline.openapi.json
    """
    click.echo(document_bytes().decode())
