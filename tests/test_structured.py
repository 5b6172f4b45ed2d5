"""A log of JSON objects is read as the plain log that the program meant to print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase
from kb.logs.read import read
from kb.logs.structured import unfolded

TRACE = [
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 10, in <module>',
    "    run()",
    "IndexError: pop from an empty deque",
]
ERROR = {"exc_type": "IndexError", "exc_value": "pop from an empty deque"}
STACKTRACE = {"key": "exception.stacktrace", "value": {"stringValue": "\n".join(TRACE)}}
FRAMES = [{"filename": "/app/train.py", "lineno": 10, "name": "<module>"}]
AT = "2026-01-02T10:00:00.1Z"
NO_BREAK = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60)


def docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": AT})


@pytest.mark.parametrize(
    "wrapped",
    [
        [*map(docker, TRACE)],
        [f"{AT} {docker(line)}" for line in TRACE],
        [json.dumps({"ts": 1.5, "level": "info", "msg": "starts"}), *map(docker, TRACE)],
        [json.dumps({"asctime": AT, "levelname": "ERROR", "message": "failed", "exc_info": "\n".join(TRACE)})],
        [json.dumps({"level": 50, "err": {"type": "IndexError", "message": "pop from an empty deque"}})],
        [json.dumps({"@timestamp": AT, "message": "x", "error": {"stack_trace": "\n".join(TRACE)}})],
        [json.dumps({"@timestamp": AT, "log.level": "error", "error.stack_trace": "\n".join(TRACE)})],
        [json.dumps({"severity": "ERROR", "timestamp": AT, "textPayload": line}) + "," for line in TRACE],
        [json.dumps({"timestamp": AT, "level": "ERROR", "fields": {"message": TRACE[-1]}})],
        [json.dumps({"text": "\n".join(TRACE), "record": {"level": {"name": "ERROR"}, "message": "failed"}})],
        [json.dumps({"event": "failed", "level": "error", "exception": [{**ERROR, "frames": FRAMES}]})],
        [json.dumps({"errorMessage": ERROR["exc_value"], "errorType": ERROR["exc_type"], "stackTrace": TRACE[1:3]})],
        [json.dumps({"@t": AT, "@m": "failed", "@l": "Error", "@x": "\n".join(TRACE)})],
        [json.dumps({"severity_text": "ERROR", "body": "x", "attributes": {"exception.stacktrace": "\n".join(TRACE)}})],
        [json.dumps({"severityText": "ERROR", "body": {"stringValue": "failed"}, "attributes": [STACKTRACE]})],
        [json.dumps({"level": "error", "exc_info": [*["    step()"] * 150, *TRACE]})],
        [docker(json.dumps({"event": "x", "level": "error", "exception": "\n".join(TRACE)}))],
    ],
    ids=[
        *("docker", "a time before", "others between", "python", "pino", "elastic", "flat", "google", "tracing"),
        *(
            "loguru",
            "structlog",
            "lambda",
            "serilog",
            "opentelemetry",
            "its protocol",
            "many frames",
            "nested",
        ),
    ],
)
def test_the_failure_is_found(wrapped: list[str], index: Path) -> None:
    text = "\n".join(wrapped)
    assert TRACE[-1] in read(text).signatures
    with KnowledgeBase.open(index) as base:
        result = base.search(text)
        assert (result.verdict, result.hits[0].issue) == ("known", "ms-swift-ovis2-grpo#2")
        (found,) = base.scan([text.encode()]).findings
        assert (found.verdict, found.issue, found.text) == ("known", "ms-swift-ovis2-grpo#2", found.text)
        assert found.first_line == 1 + next(n for n, line in enumerate(wrapped) if "empty deque" in line)
        assert "{" not in found.text


@pytest.mark.parametrize(
    "line",
    [
        '{"error": {"message": "The model `x` does not exist", "type": "NotFoundError"}}',  # an answer of an API
        '{"loss": 0.0, "grad_norm": NaN, "time": 3}',
        '{"level": "error"}',
        '{"level": "error", "msg": "cut off',
        '{"level": ' + "[" * 100_000 + "}",  # too deep
        '{"ts": ' + "9" * 10_000 + ', "msg": "x"}',
        "{'loss': 0.0}",
        '{"text": "the text of an answer", "record": {"id": 3}}',
        '{"level": "error", "err": {"stack": ' + "[" * 900 + "]" * 900 + "}}",
        '{"level": "error", ' + '"fields": {' * 900 + "}" * 901,
    ],
    ids=range(10),
)
def test_what_stays_as_it_is(line: str) -> None:
    assert unfolded(line) == line


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"level": "info", "msg": "request completed", "body": TRACE[-1]}, "[INFO] request completed"),
        ({"level": "info", "msg": "done", "attributes": {"prompt": TRACE[-1]}}, "[INFO] done"),
        ({"message": "boom", "errorMessage": "boom", "errorType": "ValueError"}, "ValueError: boom"),
        ({"level": "error", "exception": [ERROR, {"exc_type": "KeyError", "exc_value": "'a'"}]},
         "[ERROR] KeyError: 'a'\nIndexError: pop from an empty deque"),
        ({"level": "error", "exception": [{"exc_type": "ExceptionGroup", "exceptions": [[ERROR]]}]},
         "[ERROR] ExceptionGroup\nIndexError: pop from an empty deque"),
    ],
    ids=["a request's body", "attributes", "lambda", "a cause", "a group"],
)  # fmt: skip
def test_what_an_object_says(said: dict[str, object], text: str) -> None:
    assert unfolded(json.dumps(said)) == text


@settings(max_examples=examples(200), deadline=None)
@given(lines=st.lists(NO_BREAK, max_size=8))
def test_what_docker_wrapped_comes_out(lines: list[str]) -> None:
    said = [line for line in lines if line.strip()]
    assert unfolded("\n".join(map(docker, said))) == "\n".join(said)


@settings(max_examples=examples(200), deadline=None)
@given(text=st.text() | st.lists(NO_BREAK.map(docker) | st.text(max_size=20)).map("\n".join))
def test_whatever_it_is(text: str) -> None:
    assert isinstance(unfolded(text), str)
