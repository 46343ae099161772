"""leadline extras"""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from .options import fail

# Files of the folder `extras` of the package, with their purpose.
EXTRAS: Final = {
    "prometheus-rules.yml": "Alerts of Prometheus about Leadline itself.",
    "grafana-dashboard.json": "Dashboard of Grafana: checks, deliveries, gate, processes.",
    "Containerfile": "Definition of a container image: one process, not root, read-only.",
    "compose.yaml": "The image with PostgreSQL, for Podman or Docker.",
}


@click.command("extras")
@click.argument("name", type=click.Choice(list(EXTRAS)), required=False)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Write into this folder.  [default: print]",
)
@click.option("--force", is_flag=True, help="Replace files that exist in the folder.")
def command(name: str | None, folder: Path | None, force: bool) -> None:
    """Print or write the files for other products: Prometheus, Grafana, containers.

    Without a name it lists the files, and writes all of them with --dir.

    \b
    Example:
      leadline extras
      leadline extras prometheus-rules.yml > /etc/prometheus/leadline.yml
      leadline extras --dir /srv/leadline
    Exit status: 0 done, 1 failed, 2 usage error.
    """
    if folder is None:
        click.echo(text_of(name) if name else _listing(), nl=not name)
        return
    for one in [name] if name else list(EXTRAS):
        _write(folder / one, text_of(one), force)


def text_of(name: str) -> str:
    return (files("leadline") / "extras" / name).read_text(encoding="utf-8")


def _listing() -> str:
    width = max(map(len, EXTRAS))
    return "\n".join(f"{name:{width}}  {purpose}" for name, purpose in EXTRAS.items())


def _write(path: Path, text: str, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise fail(f"{path} exists: name another folder, or replace it with --force") from None
    except OSError as error:
        raise fail(f"{path}: {error.strerror}") from error
    click.echo(f"wrote {path}")
