"""Logs whose lines are JSON objects (Docker's json-file, structlog, python-json-logger, zap, Elastic's form): what the
program meant to say, line by line, as it would stand in a plain log."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kb.logs.prefix import HEAD_CHARS

__all__ = ["unfolded"]

# The body of an API's error is such an object as well, and articles print it as it is: only one of a log says when it
# was written, or how grave it is.
_WHEN = ("time", "ts", "timestamp", "@timestamp", "asctime", "datetime")
_LEVEL = ("level", "levelname", "lvl", "severity", "loglevel", "log.level")
_TEXT = ("log", "message", "msg", "event", "text")
_MORE = ("error", "err", "exception", "exc_info", "stack_trace", "stacktrace", "stack", "traceback")
_WITHIN = ("type", "name", "message", "stack_trace", "stack", "traceback")  # of an error that is an object


def unfolded(log: str) -> str:
    """The text with each such object replaced by its level, its message and what it says of the error; all other lines
    as they are. Time is linear in the text."""
    if '{"' not in log:
        return log
    return "\n".join(_line(line) for line in log.split("\n"))


def _line(line: str) -> str:
    start = line.find('{"', 0, HEAD_CHARS)
    if start < 0 or not line.rstrip().endswith("}"):
        return line
    try:
        found = json.loads(line[start:])
    except (ValueError, RecursionError):
        return line
    if not isinstance(found, dict) or found.keys().isdisjoint((*_WHEN, *_LEVEL)):
        return line
    text = "\n".join(part.rstrip("\n") for key in (*_TEXT, *_MORE) for part in _texts(found.get(key)))
    if not text.strip():
        return line
    level = next((found[key] for key in _LEVEL if isinstance(found.get(key), str)), "")
    return f"{line[:start]}{level.upper()}: {text}" if level else line[:start] + text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield ": ".join(value[key] for key in _WITHIN[:3] if isinstance(value.get(key), str))
        yield from (value[key] for key in _WITHIN[3:] if isinstance(value.get(key), str))
