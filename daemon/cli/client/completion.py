"""leadline completion"""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LEADLINE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      leadline completion bash > ~/.local/share/bash-completion/completions/leadline
      leadline completion fish > ~/.config/fish/completions/leadline.fish
      # zsh: a file named _leadline in a folder of $fpath
      leadline completion zsh > ~/.zsh/completions/_leadline
    Exit status: 0 printed, 2 usage error.
    """
    found = get_completion_class(shell)
    assert found is not None, "click has all of them"
    click.echo(found(context.find_root().command, {}, "leadline", VARIABLE).source())
