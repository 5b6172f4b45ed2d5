"""`kb completion`: prints the completion script for a shell."""

from __future__ import annotations

from typing import Literal

import click

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script for SHELL.

    \b
      bash:  kb completion bash > ~/.local/share/bash-completion/completions/kb
      zsh:   kb completion zsh > "${fpath[1]}/_kb"
      fish:  kb completion fish > ~/.config/fish/completions/kb.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "kb", "_KB_COMPLETE").source())
