"""Does what stands in deploy/Containerfile work? Runs its steps without a container engine: the build stage in a
folder, then the command as the image's user, with the image's environment and nothing else, on a read-only file system.

    python scripts/check_deploy.py [--kb PATH]       needs a package index, or --kb: a `kb` that is installed already

What needs root (the other user, the read-only file system) is left out without it, and says so. Beside it: what
systemd-analyze makes of deploy/kb.service. tests/test_deploy.py checks the other files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = "18080"


def steps(containerfile: Path) -> list[tuple[str, str]]:
    """(instruction, arguments) in order; comments and line ends with a backslash are gone."""
    lines = [line for line in containerfile.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (name, " ".join(rest.split()))
        for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def environment(found: list[tuple[str, str]]) -> dict[str, str]:
    pairs = [pair.partition("=") for name, rest in found if name == "ENV" for pair in shlex.split(rest)]
    return {name: value for name, _, value in pairs}


def command(found: list[tuple[str, str]]) -> list[str]:
    last = dict(found)
    return [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]


def build(found: list[tuple[str, str]], folder: Path) -> Path:
    """Runs the first stage with `folder` for /; returns its `kb`."""
    for name, rest in found[1:]:
        if name == "FROM":
            break
        if name == "COPY":
            *sources, target = rest.split()
            for source in sources:
                place = folder / target.strip("/")
                place = place / source if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, place)
        if name == "RUN":
            shell = re.sub(r"/(opt/kb|src)\b", rf"{folder}/\1", rest)
            shell = shell.replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(["bash", "-euc", shell], check=True, env=os.environ | {"PIP_QUIET": "1"})
    return folder / "opt/kb/bin/kb"


def confined(kb: Path, user: str) -> list[str]:
    """What goes before a command, so that it runs as in the container, as far as this is allowed here."""
    if os.geteuid() != 0:
        print("not root: as this user, on a file system that can be written to")
        return []
    uid, _, gid = user.partition(":")
    person = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    mounts = "mount --make-rprivate / && mount -o remount,bind,ro / && mount -t tmpfs -o mode=1777 tmpfs /tmp"
    inner = ["unshare", "--mount", "bash", "-c", f'{mounts} && exec "$@"', "confined", *person]
    if subprocess.run([*inner, "true"], capture_output=True).returncode == 0:
        return inner
    print("no mount namespace here: on a file system that can be written to")
    return person


def check_run(kb: Path, found: list[tuple[str, str]]) -> None:
    settings = environment(found) | {"KB_PORT": PORT, "KB_TOKEN": "0123456789abcdef0123"}
    settings["PATH"] = f"{kb.parent}:{settings['PATH']}"
    inside = confined(kb, dict(found)["USER"])
    server = subprocess.Popen([*inside, str(kb), *command(found)[1:]], env=settings, stderr=subprocess.PIPE, text=True)
    try:
        started = time.monotonic()
        while True:
            try:
                health = urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=5).read()
                break
            except urllib.error.URLError:
                if server.poll() is not None or time.monotonic() - started > 60:
                    raise SystemExit(f"it does not answer: {server.communicate(timeout=5)[1]}") from None
                time.sleep(0.1)
        print(f"answers after {time.monotonic() - started:.1f} s: {health.decode()}")
        test = json.loads(dict(found)["HEALTHCHECK"].partition("CMD ")[2])
        subprocess.run([str(kb.parent / test[0]), *test[1:]], env=settings, check=True)
        asked = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/api/search?q=pop+from+an+empty+deque",
            headers={"Authorization": f"Bearer {settings['KB_TOKEN']}"},
        )
        answer = json.load(urllib.request.urlopen(asked, timeout=10))
        assert answer["verdict"] == "known", answer["verdict"]
    finally:
        server.terminate()
        _, said = server.communicate(timeout=20)
    assert "indexed" not in said, f"the index is not inside: {said}"
    print(f"health check and a search pass; stopped with {server.returncode}")


def check_unit() -> None:
    if not shutil.which("systemd-analyze"):
        print("no systemd-analyze here")
        return
    analyze = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(ROOT / "deploy/kb.service")]
    print(subprocess.run(analyze, check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kb", type=Path, help="try this one; do not run the build stage")
    given = parser.parse_args()
    found = steps(ROOT / "deploy/Containerfile")
    with tempfile.TemporaryDirectory(prefix="kb-image-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        check_run(given.kb or build(found, Path(folder)), found)
    check_unit()


if __name__ == "__main__":
    main()
