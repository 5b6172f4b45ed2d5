"""Records a session at a terminal as a picture: search, run, scan and review, as they really answer.

    python scripts/session.py docs/img/session.svg

Every command runs in a terminal of its own (a pty) of 100 columns in a temporary folder, with the base that is part of
kb. Needs a system with pty, and rich, which draws the picture.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 100, 50
THREAD = {
    "number": 7,
    "title": "RuntimeError: NCCL error: remote process exited, only on the second node",
    "body": "Two nodes, the second one stops at once.\n\n```\nncclRemoteError: A call failed possibly due to a network "
    "error\n```",
    "state": "CLOSED",
    "url": "https://github.com/acme/trainkit/issues/7",
    "author": {"login": "asker"},
    "createdAt": "2026-03-01",
    "labels": [],
    "comments": [
        {
            "author": {"login": "other"},
            "body": "Same here.",
            "createdAt": "2026-03-02",
            "url": "",
            "reactionGroups": [],
        },
        {
            "author": {"login": "member"},
            "authorAssociation": "MEMBER",
            "body": "Name the interface that both nodes have:\n\n```bash\nexport NCCL_SOCKET_IFNAME=eth0\n```",
            "createdAt": "2026-03-02",
            "url": "https://github.com/acme/trainkit/issues/7#c2",
            "reactionGroups": [],
        },
        {"author": {"login": "asker"}, "body": "That solved it, thanks!", "createdAt": "2026-03-03", "url": ""},
    ],
}
LOG = "".join(f"step {n} loss {2 - n / 999:.3f}\n" for n in range(1, 900))
FAILURE = "[rank0]: RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that "
FAILURE += "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
TRAIN = f"import sys\nprint('step 1 loss 1.99')\nsys.stderr.write({FAILURE!r})\nsys.exit(1)\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    picture = parser.parse_args().picture.absolute()
    kb = shutil.which("kb", path=str(Path(sys.executable).parent)) or "kb"
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("train.log").write_text(LOG + FAILURE)
        Path("torch_train.py").write_text(TRAIN)
        Path("threads.json").write_text(json.dumps([THREAD]))
        shown([kb, "projects"], "")  # a source checkout makes its index at first use
        for told, arguments, keys in (
            ('kb search "pop from an empty deque"', [kb, "search", "pop from an empty deque"], ""),
            ("kb run -- python torch_train.py", [kb, "run", "--", sys.executable, "torch_train.py"], ""),
            ("kb scan train.log", [kb, "scan", "train.log"], ""),
            ("kb import github threads.json", [kb, "import", "github", "threads.json", "--articles", "articles"], ""),
            ("kb review", [kb, "review", "--articles", "articles"], "aa"),
        ):
            console.print(Text(f"$ {told}", style="bold"))
            console.print(Text.from_ansi(shown(arguments, keys)))
            console.print()
    picture.write_text(console.export_svg(title="kb"), "utf-8")
    return 0


def shown(arguments: list[str], keys: str) -> str:
    """What the command writes to a terminal, its colours included. Of `keys`, one is typed whenever it has waited."""
    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "KB_PAGER": "", "COLUMNS": str(COLUMNS)}
        os.execve(arguments[0], arguments, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    data, waited, typed = b"", time.monotonic(), list(keys)
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                piece = os.read(terminal, 1 << 16)
            except OSError:  # the command has ended
                break
            if not piece:
                break
            data, waited = data + piece, time.monotonic()
        elif typed and time.monotonic() - waited > 5:
            os.write(terminal, typed.pop(0).encode())
            waited = time.monotonic()
    os.waitpid(child, 0)
    return data.decode("utf-8", "replace").replace("\r\n", "\n").strip("\n")


if __name__ == "__main__":
    sys.exit(main())
