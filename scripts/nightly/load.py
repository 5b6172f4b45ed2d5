"""Clients that ask without a pause while the base is built to and fro: is every answer of one of the two states?

Six threads ask a `kb serve` over connections that are kept, of short questions and logs, and one breaks off in the
middle. Each answer names its snapshot, and must say what that state's articles say. Busy (503, with Retry-After) is
allowed, other failures of the server are not. Where wrk is installed, it asks as fast as it can at the same time.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from made_up import article, line_of
from outcome import Outcome

from kb.index.build import build

CLIENTS = 6
NAMES = [f"{kind}{n}" for kind in ("flux", "tide", "lantern") for n in range(7)]
BROKEN: Mapping[str, str] = {"another number": "wrong", "a state that nobody knows": "mixed"}
NOISE = "\n".join(f"[2026-01-01 00:00:{n % 60:02}] step {n} loss 0.{n}" for n in range(400))


def written(folder: Path, number: int) -> Path:
    for name in NAMES:
        path = folder / "en" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(article(name, number), "utf-8")
    return folder


class Asking:
    """What the clients of one server have seen."""

    def __init__(self, port: int, says: dict[str, str]) -> None:
        """`says`: snapshot -> the number that its articles name."""
        self.port, self.says = port, says
        self.ended = threading.Event()
        self.tried: Counter[str] = Counter()
        self.wrong: list[tuple[str, str]] = []
        self.lock = threading.Lock()

    def ask(self, first: int) -> None:
        connection, n = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60), first
        while not self.ended.is_set() and len(self.wrong) < 5:
            n += 1
            name = NAMES[n % len(NAMES)]
            line = line_of(name)
            body = json.dumps({"query": f"{NOISE}\n{line}" if n % 5 == 0 else line})
            try:
                connection.request("POST", "/api/search", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                status, data = answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.note("", ("crashed", f"no answer: {error!r}"))
                connection.close()
                continue
            if status == http.client.SERVICE_UNAVAILABLE and answer.headers["retry-after"]:
                self.note("busy")
            elif status != http.client.OK:
                self.note("", ("wrong", f"status {status}: {data[:300]!r}"))
            else:
                self.note("answers checked", self.fault(json.loads(data), name))

    def fault(self, answer: dict[str, object], name: str) -> tuple[str, str] | None:
        snapshot, results = answer["snapshot"], answer["results"]
        assert isinstance(results, list)
        if snapshot not in self.says:
            return "mixed", f"an unknown snapshot {snapshot}"
        first = results[0] if results else {"issue": "nothing", "fix": ""}
        right = first["issue"] == f"{name}#1" and f"{name} to {self.says[str(snapshot)]}." in first["fix"]
        return None if right else ("wrong", f"{snapshot} says of {name}: {first['issue']}, {first['fix']!r}")

    def leave_early(self) -> None:
        while not self.ended.is_set():
            with socket.create_connection(("127.0.0.1", self.port)) as one:
                one.sendall(b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
            self.note("clients that left")
            time.sleep(0.05)

    def note(self, tried: str, wrong: tuple[str, str] | None = None) -> None:
        with self.lock:
            self.tried[tried] += bool(tried)
            if wrong:
                self.wrong.append(wrong)


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """Broken, of one state the other's number is expected, or one of the states is not known."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="kb-load-") as name:
        folder = Path(name)
        states = [written(folder / f"state{number}", number) for number in (1, 2)]
        says = {build(state, folder / "index").snapshot: str(number) for number, state in enumerate(states, 1)}
        if broken == "another number":
            says = dict.fromkeys(says, "1")
        elif broken:
            says.popitem()
        server = subprocess.Popen(
            [sys.executable, "-m", "kb", "serve", "--port", "0", "--index", str(folder / "index")],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stderr
            line = next(line for line in server.stderr if "127.0.0.1:" in line)
            threading.Thread(target=server.stderr.read, daemon=True).start()  # else it waits when the pipe is full
            asking = Asking(int(line.partition("127.0.0.1:")[2].partition("/")[0]), says)
            work: list[Callable[[], None]] = [lambda n=n: asking.ask(n) for n in range(CLIENTS)]  # type: ignore[misc]
            threads = [threading.Thread(target=one) for one in [*work, asking.leave_early]]
            for thread in threads:
                thread.start()
            hurry = _hurried(asking.port, seconds) if shutil.which("wrk") else None
            until = time.monotonic() + seconds
            while time.monotonic() < until and not asking.wrong:
                for state in states:
                    build(state, folder / "index")
                    asking.note("builds")
            asking.ended.set()
            for thread in threads:
                thread.join()
            if hurry:
                outcome.tried["requests of wrk"] = int(hurry.communicate()[0].partition(" requests in")[0].split()[-1])
            outcome.tried.update(asking.tried)
            outcome.wrong += asking.wrong
            if server.poll() is not None:
                outcome.note("crashed", f"the server ended with {server.returncode}")
        finally:
            server.terminate()
            server.wait(30)
    return outcome


def _hurried(port: int, seconds: float) -> subprocess.Popen[str]:
    address = f"http://127.0.0.1:{port}/api/search?q=flux1+has+drained"
    command = ["wrk", "-t1", "-c8", f"-d{max(int(seconds) - 1, 1)}s", "-H", "Host: localhost", address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
