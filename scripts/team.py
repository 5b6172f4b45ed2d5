"""A team at work: does the base grow where it has gaps, and can one person turn it?

    python scripts/team.py

Starts `kb serve --feedback FILE` on a base of its own in a temporary folder (the articles of tests/corpus), and lets
three programs and an agent (the SDK of the Model Context Protocol, over `kb mcp`) ask 200 questions: known ones, noise,
and three failures that no article tells, each in several wordings and with other numbers. In the middle an article
about the first of them is written and built. Then people vote. Exits with 1 where something is not as it should be.

The three programs ask from addresses of their own (127.0.0.2 ...), which takes Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KB = [sys.executable, "-m", "kb"]
QUESTIONS = 200
AGENT = 20  # of them
PLANTED = {
    "vocabulary": [
        "ValueError: tokenizer shard {n} of {m} has a different vocabulary than shard 0",
        "[rank{n}]: ValueError: tokenizer shard {n} of {m} has a different vocabulary than shard 0",
        "2026-03-1{d} 10:0{d}:12 ERROR tokenizer shard {n} has a different vocabulary than shard 0",
        'Traceback (most recent call last):\n  File "/home/u{n}/prep.py", line {m}, in merge\n    check(shards)\n'
        "ValueError: tokenizer shard {n} of {m} has a different vocabulary than shard 0",
        "tokenizer shards have a different vocabulary than shard 0, how to merge them?",
    ],
    "lease": [
        "OSError: checkpoint lease on /mnt/store{n}/run-{m}/ckpt was stolen by node-{n}:29{d}00 after {m} s",
        "node-{d}: OSError: checkpoint lease on /data/u{n}/ckpt was stolen by gpu{n}.cluster.local:2940{d} after {m} s",
        "checkpoint lease stolen by another node after {m} seconds, OSError when saving",
    ],
    "signature": [
        "打分服务 10.0.{d}.{n}:80{d}0 返回的签名已过期，采样器拒收第 {n} 批",
        "采样器拒收第 {n} 批，说打分服务返回的签名已过期，重启 node-{d} 也没用",
        "打分服务的签名过期 {m} 秒，采样器拒收",
    ],
}
ARTICLE = """---
project: Prep
---
# Shards of a tokenizer
## Tokenizer shards with different vocabularies cannot be merged
### In short
One shard was made with another tokenizer; make it again: `prep shard --tokenizer tok.json`.
### Symptom
```
ValueError: tokenizer shard <n> of <n> has a different vocabulary than shard 0
```
Merging the shards stops: one of them has a different vocabulary than shard 0.
### Cause
The shard was made with an older tokenizer.
### Fix
1. Make the shard again with the tokenizer of shard 0: `prep shard --tokenizer tok.json`. *(reasoned)*
### Asked as
- tokenizer shards have a different vocabulary, how to merge them
- tokenizer shard has a different vocabulary than shard 0
"""


class Client:
    """Somebody who asks over HTTP, from an address of their own."""

    def __init__(self, port: int, address: str) -> None:
        self._port, self._address = port, address

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, 30, source_address=(self._address, 0))
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        connection.close()
        if answer.status not in (200, 429):
            raise RuntimeError(f"{path}: {answer.status} {found}")
        return found

    def ask(self, question: str) -> dict[str, Any]:
        return self.post("/api/search", {"query": question, "k": 3})

    def vote(self, issue: str, verdict: str, question: str) -> dict[str, Any]:
        return self.post("/api/feedback", {"issue": issue, "verdict": verdict, "question": question})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=16)
    chosen = random.Random(parser.parse_args().seed)
    wrong: list[str] = []

    def expect(what: str, holds: bool) -> None:
        print(f"{'ok   ' if holds else 'WRONG'}  {what}", flush=True)
        wrong.extend([] if holds else [what])

    with tempfile.TemporaryDirectory() as folder:
        articles, index, file = Path(folder, "articles"), Path(folder, "index"), Path(folder, "team.sqlite")
        shutil.copytree(ROOT / "tests" / "corpus", articles)
        environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache", "PYTHONPATH": str(ROOT)}
        run(environment, "build", "--articles", str(articles), "--index", str(index))
        asked, (first, second) = questions(environment, articles, chosen), (QUESTIONS // 2, QUESTIONS)
        with serving(environment, index, file) as port:
            clients = [Client(port, f"127.0.0.{n}") for n in (2, 3, 4)]
            people(clients, asked[:first], chosen)
            gaps = gaps_of(environment, index, file)
            show(gaps)
            found = [named(gap) for gap in gaps[:3]]
            expect("after half of the questions kb gaps names the three failures first", {*found} == {*PLANTED})
            expect("each is one gap", not {*map(named, gaps[3:])} & {*PLANTED})

            (articles / "en" / "prep-shards.md").write_text(ARTICLE, "utf-8")
            run(environment, "build", "--articles", str(articles), "--index", str(index))
            wait_for(clients[0], "prep-shards#1")
            verdicts = asyncio.run(agent(environment, index, asked[first : first + AGENT]))
            people(clients, asked[first + AGENT : second], chosen)
            expect("the agent got an answer to each of its questions", len(verdicts) == AGENT)
            gaps = gaps_of(environment, index, file)
            expect("after the build two are open", {*map(named, gaps[:2])} == {"lease", "signature"})
            every = gaps_of(environment, index, file, "--all")
            closed = [gap for gap in every if named(gap) == "vocabulary"]
            expect("and one is known by now", [gap["verdict"] for gap in closed] == ["known"])
            show(every)
            votes(port, clients[0], environment, file, expect)
        size = sum(path.stat().st_size for path in Path(folder).glob("team.sqlite*"))
        kept = b"".join(path.read_bytes() for path in Path(folder).glob("team.sqlite*"))
        expect(
            "no name of a machine or user is in the file",
            not re.search(rb"node-\d|cluster\.local|/home/u|127\.0", kept),
        )
        print(f"{QUESTIONS} questions, {size / 1024:.0f} KiB kept")
    return int(bool(wrong))


def questions(environment: dict[str, str], articles: Path, chosen: random.Random) -> list[str]:
    """200: a fifth about each of the planted failures in turn, two fifths noise, the rest known."""
    noise = [json.loads(line)["query"] for line in (ROOT / "tests/cases/stock.jsonl").read_text("utf-8").splitlines()]
    known: list[str] = []
    for path in sorted((articles / "en").glob("*.md")):
        parsed = json.loads(run(environment, "parse", str(path), "--json"))
        known += [record["errors"][0] if record["errors"] else record["title"] for record in parsed]
    asked: list[str] = []
    chosen.shuffle(noise)
    for half in range(2):
        some = noise[40 * half : 40 * half + 40]
        for n in range(7):
            for wordings in PLANTED.values():
                numbers = {"n": chosen.randrange(64), "m": chosen.randrange(65, 4000), "d": chosen.randrange(10)}
                some.append(wordings[n % len(wordings)].format(**numbers))
        some += [chosen.choice(known) for _ in range(QUESTIONS // 2 - len(some))]
        chosen.shuffle(some)
        asked += some
    return asked


def people(clients: list[Client], asked: list[str], chosen: random.Random) -> None:
    for question in asked:
        chosen.choice(clients).ask(question)


def votes(port: int, one: Client, environment: dict[str, str], file: Path, expect: Any) -> None:
    question = "IndexError: pop from an empty deque"
    before = one.ask(question)
    issue = before["results"][0]["issue"]
    for _ in range(40):
        one.vote(issue, "did_not_fit", question)
    after = one.ask(question)
    expect("40 votes of one person change nothing", core(after) == core(before))
    for n in range(5, 16):
        Client(port, f"127.0.0.{n}").vote(issue, "did_not_fit", question)
    after = one.ask(question)
    expect("12 people make a known issue a likely one", (before["verdict"], after["verdict"]) == ("known", "likely"))
    print(f"       {issue}: {before['results'][0]['confidence']:.2f} -> {confidence(after, issue):.2f}")
    run(environment, "feedback", "forget", "--all", "--file", str(file))
    expect("forgotten, it is as before", core(one.ask(question)) == core(before))


def core(answer: dict[str, Any]) -> Any:
    return answer["verdict"], [(one["issue"], one["confidence"]) for one in answer["results"]]


def confidence(answer: dict[str, Any], issue: str) -> float:
    return next((float(one["confidence"]) for one in answer["results"] if one["issue"] == issue), 0.0)


async def agent(environment: dict[str, str], index: Path, asked: list[str]) -> list[str]:
    """Asks over stdio; the verdicts."""
    from mcp import Client as Agent
    from mcp import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=KB[0], args=[*KB[1:], "mcp", "--index", str(index)], env=environment)
    answers = []
    async with Agent(stdio_client(server)) as client:
        for question in asked:
            result = await client.call_tool("search_issues", {"query": question})
            answers += [] if result.is_error else [str(result.content)]
    return answers


def gaps_of(environment: dict[str, str], index: Path, file: Path, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        run(environment, "gaps", "--json", "--index", str(index), "--file", str(file), *more)
    )
    return found


def named(gap: dict[str, Any]) -> str:
    """Which of the planted failures it is; empty for noise."""
    lines = " ".join(line for question in gap["questions"] for line in question["lines"])
    marks = {"vocabulary": "different vocabulary", "lease": "checkpoint lease", "signature": "签名"}
    return next((name for name, mark in marks.items() if mark in lines), "")


def show(gaps: list[dict[str, Any]]) -> None:
    for gap in gaps[:5]:
        state = "" if gap["verdict"] == "unknown" else f", now {gap['verdict']}: {gap['issue']}"
        line = gap["questions"][0]["lines"][0]
        times, wordings = gap["count"], len(gap["questions"])
        print(f"       {times:3} times, {gap['askers']} people, {wordings} wordings{state}: {line[:90]}")


def wait_for(client: Client, issue: str) -> None:
    """Until the server has moved to the new snapshot."""
    for _ in range(100):
        results = client.ask("tokenizer shard 3 of 70 has a different vocabulary than shard 0")["results"]
        if results[0]["issue"] == issue:
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not see the new index")


@contextmanager
def serving(environment: dict[str, str], index: Path, file: Path) -> Iterator[int]:
    command = [*KB, "serve", "--port", "0", "--index", str(index), "--feedback", str(file)]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        said = ""
        while (found := re.search(r"issues at http://[^/]*:(\d+)/", said)) is None:
            line = server.stderr.readline()
            if not line:
                raise RuntimeError(said)
            said += line
        yield int(found[1])
    finally:
        server.terminate()
        server.wait(10)


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([*KB, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"kb {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
