"""The token of `kb serve`: from the environment, a file or an option."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kb.cli.words import say

__all__ = ["token_of"]

_SHORTEST = 16  # characters; the command below makes 32
_MOST_BYTES = 4096
_MAKE = "python3 -c 'import secrets; print(secrets.token_urlsafe(24))'"
_OTHERS_READ = 0o004


def token_of(given: str | None, file: Path | None) -> str | None:
    """The token, or None where none is asked for. Raises click's errors."""
    if given is not None and file is not None:
        raise click.UsageError(say("--token ($KB_TOKEN) and --token-file ($KB_TOKEN_FILE) are given: which one?"))
    hint = "--token / $KB_TOKEN" if file is None else "--token-file"
    token = given if file is None else _read(file, hint)
    if token is None:
        return None
    if not token or not (token.isascii() and token.isprintable()) or token != token.strip():
        raise click.BadParameter(say("the token must be printable ASCII and not empty"), param_hint=hint)
    if len(token) < _SHORTEST:
        short = say("the token has {n} characters; {least} are the least", n=len(token), least=_SHORTEST)
        raise click.BadParameter(f"{short}\n    {say('this makes one:')} {_MAKE}", param_hint=hint)
    return token


def _read(file: Path, hint: str) -> str:
    """The first line of the file, which is read once. What only a supervisor of services can put somewhere may have
    any mode: systemd's and Docker's folders for secrets."""
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            raw = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        why = say("{file} cannot be read: {why}", file=str(file), why=error.strerror or str(error))
        raise click.BadParameter(why, param_hint=hint) from None
    if os.name == "posix" and mode & _OTHERS_READ and not _is_credential(file):
        why = say("everybody on this machine can read {file}", file=str(file))
        raise click.BadParameter(f"{why}\n    chmod 600 {file}", param_hint=hint)
    if len(raw) > _MOST_BYTES:
        raise click.BadParameter(say("{file} is no token", file=str(file)), param_hint=hint)
    return raw.decode("utf-8", "replace").strip("\r\n")


def _is_credential(file: Path) -> bool:
    folders = [Path("/run/secrets")]
    if named := os.environ.get("CREDENTIALS_DIRECTORY"):
        folders.append(Path(named))
    return any(file.absolute().is_relative_to(folder) for folder in folders)
