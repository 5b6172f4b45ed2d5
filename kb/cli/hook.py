"""`kb hook`: prints what lets `kb last` know which command failed last."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

__all__ = ["hook"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def hook(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the lines by which SHELL remembers the last command that failed, for `kb last`.

    \b
      bash:  eval "$(kb hook bash)"      in ~/.bashrc
      zsh:   eval "$(kb hook zsh)"       in ~/.zshrc
      fish:  kb hook fish | source       in ~/.config/fish/config.fish

    They print, write and send nothing, and leave exit codes and other hooks as they are. What the command printed is
    asked of tmux or screen when you run `kb last`.
    """
    click.echo((Path(__file__).parent / "hooks" / f"hook.{shell}").read_text("utf-8"), nl=False)
