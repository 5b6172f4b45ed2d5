"""Several workers, and the files in deploy/: each runs here as far as a machine without containers can run it."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from conftest import port_of, running

from kb.cli.serve import serve
from kb.cli.token import token_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and fork")
needs_uvicorn = pytest.mark.skipif(
    importlib.util.find_spec("uvicorn") is None, reason='needs the extra: pip install -e ".[serve,dev]"'
)
ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
TOKEN = "a-token-of-some-length"
QUESTION = "/api/search?q=pop+from+an+empty+deque&k=1"
BIG = 1536 << 10  # more than nginx takes by default, less than kb does


@contextmanager
def serving(index: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "kb", "serve", "--index", str(index), *options]
    environment = {"KB_PORT": "0"} | environment
    with running(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment) as server:
        yield server, port_of(server)
        server.terminate()
        server.communicate(timeout=20)


def children(server: subprocess.Popen[str]) -> list[int]:
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.pid)], capture_output=True, text=True).stdout
    return [int(pid) for pid in told.split()]


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def ask(port: int, path: str = QUESTION, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Host": "localhost", **headers})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Load:
    """Two clients that ask without a pause, a new connection each time; `lost` counts what got no answer."""

    def __init__(self, port: int) -> None:
        self.answered, self.lost, self.wrong = 0, 0, 0
        self._port, self._on = port, True
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]

    def _work(self) -> None:
        while self._on:
            try:
                status, _ = ask(self._port)
                self.answered += status == 200
                self.wrong += status != 200
            except (OSError, http.client.HTTPException):
                self.lost += 1

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False
        for thread in self._threads:
            thread.join()


# --- workers --------------------------------------------------------------------------------------------------------


@needs_uvicorn
def test_a_worker_that_is_killed_takes_no_more_than_its_own_requests(index: Path) -> None:
    with serving(index, "--workers", "2") as (server, port):
        first = wait_for(lambda: len(found := children(server)) == 2 and found)
        with Load(port) as load:
            wait_for(lambda: load.answered > 20)
            os.kill(first[0], signal.SIGKILL)
            before = load.answered
            wait_for(lambda: load.answered > before + 20)  # the other one goes on
            wait_for(lambda: len(children(server)) == 2)
            before = load.answered
            wait_for(lambda: load.answered > before + 20)
        assert load.lost <= 2  # at most what it was answering: there are two clients
        assert load.wrong == 0
        assert first[0] not in children(server)
        assert first[1] in children(server)


@needs_uvicorn
def test_hup_replaces_the_workers_and_loses_nothing(index: Path) -> None:
    with serving(index, "--workers", "2") as (server, port):
        old = set(wait_for(lambda: len(found := children(server)) == 2 and found))
        with Load(port) as load:
            wait_for(lambda: load.answered > 20)
            server.send_signal(signal.SIGHUP)
            wait_for(lambda: len(found := children(server)) == 2 and not old & set(found))
            before = load.answered
            wait_for(lambda: load.answered > before + 20)
        assert (load.lost, load.wrong) == (0, 0)


@needs_uvicorn
def test_the_counts_of_all_workers_are_added(index: Path) -> None:
    with serving(index, "--workers", "2") as (server, port):
        wait_for(lambda: len(children(server)) == 2)
        for _ in range(30):
            assert ask(port)[0] == 200
        os.kill(children(server)[0], signal.SIGKILL)  # what it has counted stays
        wait_for(lambda: len(children(server)) == 2)
        for _ in range(10):
            _, body = ask(port, "/metrics")
            assert b'kb_questions_total{verdict="known"} 30.0' in body
            assert body.count(b"kb_snapshot_info{") == 1


@needs_uvicorn
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_workers_after_what_they_are_answering(index: Path, number: int) -> None:
    log = "step 3 loss 0.4 and some more words of a line\n" * 30_000 + "IndexError: pop from an empty deque\n"
    body = json.dumps({"query": log, "k": 1}).encode()
    with serving(index, "--workers", "2") as (server, port):
        workers = wait_for(lambda: len(found := children(server)) == 2 and found)
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        client.request("POST", "/api/search", body, {"Host": "localhost", "Content-Type": "application/json"})
        time.sleep(0.03)  # it is being answered now, or nearly
        server.send_signal(number)
        status = client.getresponse().status
        client.close()
        assert status in (200, 503)  # 503: the body had not come yet
        _, err = server.communicate(timeout=20)
        assert server.returncode in (-number, 128 + number)
        assert err == ""
        for pid in workers:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        with pytest.raises(OSError, match="refused"):
            ask(port)


@needs_uvicorn
def test_workers_do_not_outlive_the_parent(index: Path) -> None:
    with serving(index, "--workers", "2") as (server, port):
        wait_for(lambda: len(children(server)) == 2)
        server.kill()
        server.wait(10)

        def refused() -> bool:
            try:
                return ask(port)[0] == 0
            except OSError:
                return True

        wait_for(refused)


@needs_uvicorn
def test_a_base_that_cannot_be_opened_ends_it_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kb", "serve", "--port", "0", "--workers", "2", "--index", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 66
    assert "no index" in ended.stderr


# --- the token's file -----------------------------------------------------------------------------------------------


def written(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_token_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert token_of(None, written(tmp_path, f"{TOKEN}\n")) == TOKEN
    assert token_of(TOKEN, None) == TOKEN
    assert token_of(None, None) is None
    assert token_of(None, written(tmp_path, TOKEN, 0o640)) == TOKEN
    with pytest.raises(click.UsageError, match="everybody on this machine"):
        token_of(None, written(tmp_path, TOKEN, 0o644))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert token_of(None, written(tmp_path, TOKEN, 0o644)) == TOKEN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short", "5 characters"),
        ("a" * 15, "15 characters"),
        ("", "not be? empty|not empty"),
        ("\n", "not empty"),
        (f"{TOKEN}\n{TOKEN}", "printable"),
        ("令牌" * 10, "ASCII"),
        ("a" * 5000, "no token"),
    ],
)
def test_a_file_with_no_token(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        token_of(None, written(tmp_path, text))


def test_a_short_token_is_refused_with_a_way_to_make_one() -> None:
    with pytest.raises(click.UsageError, match="token_urlsafe"):
        token_of("x" * 15, None)
    with pytest.raises(click.UsageError, match="which one"):
        token_of(TOKEN, Path("x"))
    with pytest.raises(click.UsageError, match="cannot be read"):
        token_of(None, Path("/no/such/file"))


# --- nginx ----------------------------------------------------------------------------------------------------------

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
needs_nginx = pytest.mark.skipif(not NGINX or not shutil.which("openssl"), reason="needs nginx: apt-get install nginx")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


@contextmanager
def proxied(folder: Path, upstream: int) -> Iterator[int]:
    """Our own block on a free port, with a certificate of its own and a few lines that nginx wants around it."""
    port = free_port()
    key, certificate = folder / "kb.key", folder / "kb.pem"
    subject = ["-subj", "/CN=kb.example.com", "-days", "1", "-keyout", str(key), "-out", str(certificate)]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run(["openssl", "req", "-x509", "-nodes", *curve, *subject], check=True, capture_output=True)
    block = (DEPLOY / "nginx.conf").read_text("utf-8")
    for ours, here in [
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/certs/kb.pem", str(certificate)),
        ("/etc/ssl/private/kb.key", str(key)),
        ("http://127.0.0.1:8080;", f"http://127.0.0.1:{upstream};"),
    ]:
        assert block.count(ours) == 1
        block = block.replace(ours, here)
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    kinds = " ".join(f"{name}_temp_path {folder / name};" for name in names)
    user = "user root;" if os.geteuid() == 0 else ""
    whole = folder / "nginx.conf"
    whole.write_text(f"{user} daemon off; pid {folder}/pid; events {{}} http {{ {kinds}\n{block}\n}}\n")
    command = [str(NGINX), "-e", str(folder / "errors"), "-c", str(whole)]
    with running(command, stderr=subprocess.DEVNULL) as nginx:
        wait_for(lambda: nginx.poll() is not None or _listens(port))
        assert nginx.poll() is None, (folder / "errors").read_text()
        yield port
        nginx.terminate()
        nginx.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Browser:
    """Asks over TLS as kb.example.com, and says what browsers say of the asking page."""

    def __init__(self, port: int) -> None:
        self.home = f"kb.example.com:{port}"
        self._port = port
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self.cookie = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=20, context=self._tls)
        own = {"Host": self.home, "Sec-Fetch-Site": "same-origin", "Cookie": self.cookie}
        if body is not None:
            own |= {"Origin": f"https://{self.home}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {**own, **headers})
            response = connection.getresponse()
            return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()


@needs_uvicorn
@needs_nginx
def test_behind_our_nginx_block_on_any_port(index: Path, tmp_path: Path) -> None:
    file = written(tmp_path, TOKEN)
    options = ["--workers", "2", "--behind-proxy", "--allow-host", "kb.example.com", "--access-log"]
    log: list[str] = []
    with serving(index, *options, KB_TOKEN_FILE=str(file)) as (server, upstream), proxied(tmp_path, upstream) as port:
        reader = threading.Thread(target=lambda: log.extend(server.stderr or ()))
        reader.start()
        browser = Browser(port)
        status, page, headers = browser.ask("GET", "/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert b"kb.js" in page
        assert browser.ask("GET", "/api/projects")[0] == 401
        status, _, headers = browser.ask("POST", "/api/session", {"token": TOKEN})
        assert status == 204
        assert headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Secure")
        browser.cookie = headers["set-cookie"].partition(";")[0]
        for _ in range(8):  # whichever worker answers
            assert browser.ask("GET", "/api/projects")[0] == 200

        question = {"query": "x" * BIG + "\nIndexError: pop from an empty deque", "k": 1}
        status, answer, _ = browser.ask("POST", "/api/search", question)
        assert (status, json.loads(answer)["verdict"]) == (200, "known")
        status, refused, _ = browser.ask("POST", "/api/search", {"query": "x" * (5 << 20)})
        assert status == 413
        assert "MiB" in json.loads(refused)["error"]  # kb's own words, not a page of nginx

        status, refused, _ = browser.ask("POST", "/api/search", {"query": "x" * BIG}, Cookie="")
        assert (status, json.loads(refused)["error"]) == (401, "a token is needed")

        wrong_port = f"https://kb.example.com:{port + 1}"
        for foreign in ("https://evil.example", f"http://{browser.home}", "https://kb.example.com", wrong_port):
            assert browser.ask("POST", "/api/search", {"query": "deque"}, Origin=foreign)[0] == 403, foreign
        assert browser.ask("GET", "/", Host="evil.example")[0] == 421
        claimed = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example"}
        assert browser.ask("GET", "/api/projects", **claimed)[0] == 200  # nginx writes its own
        assert ask(upstream, "/api/projects", **{"X-Forwarded-For": "203.0.113.9"})[0] == 401  # believed, on loopback
        wait_for(lambda: any("203.0.113.9 GET none 401" in line for line in log))
    reader.join(10)
    assert sum(" 127.0.0.1 POST /api/search 200 " in line for line in log) == 1
    assert "deque" not in "".join(log)


# --- the other files ------------------------------------------------------------------------------------------------


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


image = load(ROOT / "scripts/check_deploy.py")
IMAGE = image.steps(DEPLOY / "Containerfile")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
CLUSTER = {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))}


def settings(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """What `kb serve` makes of a command line and an environment. Every KB_ variable must be one that it knows."""
    assert arguments[0] == "serve"
    known = {option.envvar for option in serve.params if isinstance(option, click.Option)} | {"KB_BASES", "KB_INDEX"}
    assert {name for name in environment if name.startswith("KB_")} <= known
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("KB_"):
                patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        return serve.make_context("serve", list(arguments[1:])).params


def test_the_image() -> None:
    given = settings(image.command(IMAGE)[1:], image.environment(IMAGE))
    assert (given["host"], given["port"]) == ("0.0.0.0", 8080)
    steps = dict(IMAGE)
    assert steps["EXPOSE"] == str(given["port"])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", steps["USER"])  # a number, so that a cluster can see that it is not root
    for name, rest in IMAGE:
        if name == "COPY" and not rest.startswith("--from"):
            assert all((ROOT / source).exists() for source in rest.split()[:-1])


def test_compose_agrees_with_the_image() -> None:
    kb, proxy = COMPOSE["services"]["kb"], COMPOSE["services"]["proxy"]
    environment = image.environment(IMAGE) | {name: str(value) for name, value in kb["environment"].items()}
    given = settings(kb["command"], environment)
    assert str(given["token_file"]) == f"/run/secrets/{kb['secrets'][0]}"
    assert kb["secrets"][0] in COMPOSE["secrets"]
    assert (ROOT / "deploy" / kb["build"]["context"] / kb["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
    subnet = COMPOSE["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert given["proxies"] == subnet
    assert COMPOSE["networks"]["inside"]["internal"]
    assert kb["read_only"]
    assert any(one.startswith("/tmp") for one in kb["tmpfs"])
    assert "ports" not in kb  # only the proxy can be reached
    assert f"reverse_proxy kb:{given['port']}" in (DEPLOY / "Caddyfile").read_text("utf-8")
    assert any(one.startswith("./Caddyfile:") for one in proxy["volumes"])


def test_the_cluster_agrees_with_the_image() -> None:
    pod = CLUSTER["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    environment = image.environment(IMAGE) | {one["name"]: one["value"] for one in container["env"]}
    given = settings(container["args"], environment)
    (port,) = container["ports"]
    assert port["containerPort"] == given["port"]
    assert CLUSTER["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert CLUSTER["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    rule = CLUSTER["Ingress"]["spec"]["rules"][0]
    assert rule["host"] == " ".join(given["names"])
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == CLUSTER["Service"]["metadata"]["name"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert str(given["token_file"].parent) == mounts["token"]
    assert {one["name"] for one in pod["spec"]["volumes"]} == mounts.keys()
    assert "/tmp" in mounts.values()
    assert pod["spec"]["enableServiceLinks"] is False  # a service named kb would set KB_PORT
    user, _, group = dict(IMAGE)["USER"].partition(":")
    context = pod["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (int(user), int(group), int(group))
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_proxies_take_more_than_kb() -> None:
    """Else it is the proxy's answer that a client reads, which is no JSON."""
    from kb.serve.guards import MAX_BODY_BYTES

    nginx = re.findall(r"client_max_body_size (\d+)m;", (DEPLOY / "nginx.conf").read_text("utf-8"))
    caddy = re.findall(r"max_size (\d+)MB", (DEPLOY / "Caddyfile").read_text("utf-8"))
    ingress = CLUSTER["Ingress"]["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    for most in (*nginx, *caddy, ingress.rstrip("m")):
        assert int(most) << 20 > 2 * MAX_BODY_BYTES


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "kb.service").read_text("utf-8").splitlines():
        name, mark, value = line.partition("=")
        if mark and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit() -> None:
    given = unit()
    environment = dict(pair.split("=", 1) for line in given["Environment"] for pair in line.split())
    program, *arguments = given["ExecStart"][0].split()
    assert program.endswith("/bin/kb")
    asked = settings(arguments, environment)
    credential = given["LoadCredential"][0].partition(":")[0]
    assert str(asked["token_file"]) == f"%d/{credential}"
    assert environment["XDG_CACHE_HOME"] == f"%C/{given['CacheDirectory'][0]}"
    assert asked["proxies"] == "loopback"


needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


@needs_systemd
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    """With another program in it, for /opt/kb is not here."""
    copy = tmp_path / "kb.service"
    copy.write_text((DEPLOY / "kb.service").read_text("utf-8").replace("/opt/kb/bin/kb", "/bin/true"))
    told = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert (told.returncode, [line for line in told.stderr.splitlines() if "kb.service" in line]) == (0, [])


@needs_systemd
def test_the_unit_is_hardened() -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15"]
    told = subprocess.run([*command, str(DEPLOY / "kb.service")], capture_output=True, text=True)
    if "unrecognized option" in told.stderr:
        pytest.skip("this systemd-analyze is too old")
    assert told.returncode == 0, told.stdout[-300:]
