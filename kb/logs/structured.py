"""Logs whose lines are JSON objects (of Docker, Google Cloud, structlog, python-json-logger, pino, zap, in Elastic's
form): what the program meant to say, line by line, as it would stand in a plain log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kb.logs.prefix import HEAD_CHARS
from kb.text.decode import decode

__all__ = ["unfolded", "unfolded_block"]

# The body of an API's error is such an object as well, and articles print it as it is: only one of a log says when it
# was written, or how grave it is.
_WHEN = ("time", "ts", "timestamp", "@timestamp", "asctime", "datetime")
_LEVEL = ("level", "levelname", "lvl", "severity", "loglevel", "log.level")
_LEVELS = {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"}
_NUMBERS = {20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # pino, bunyan
_TEXT = ("log", "textPayload", "message", "msg", "event")
_WITHIN = ("fields", "jsonPayload")  # objects that hold the message
_ERROR = ("error", "err", "exception", "exc_info", "exc_text", "stack_trace", "stacktrace", "stack", "traceback")
_FLAT = ("error.message", "error.stack_trace")
_SAYS, _TRACE = ("type", "name", "message"), ("stack_trace", "stack", "traceback")  # of an error that is an object
_OBJECT, _OBJECT_BYTES = re.compile(r'\{ ?"'), re.compile(rb'\{ ?"')
_MAX_BYTES = 1 << 18  # of a line of a log that is read as an object


def unfolded(log: str) -> str:
    """The text with each such object replaced by its level, its message and what it says of the error; all other lines
    as they are. Time is linear in the text."""
    return "\n".join(map(_line, log.split("\n"))) if _OBJECT.search(log) else log


def unfolded_block(block: bytes) -> bytes:
    """The same of lines in bytes, of which none gets a number of its own: the lines of an object become parts of its
    line, with carriage returns between them."""
    return b"\n".join(map(_parts_of_line, block.split(b"\n"))) if _OBJECT_BYTES.search(block) else block


def _parts_of_line(line: bytes) -> bytes:
    if len(line) > _MAX_BYTES or not _OBJECT_BYTES.search(line, 0, HEAD_CHARS):
        return line
    text = decode(line)
    said = _line(text)
    return line if said == text else said.replace("\n", "\r").encode("utf-8", "replace")


def _line(line: str) -> str:
    found = _OBJECT.search(line, 0, HEAD_CHARS)
    end = line.rstrip().rstrip(",")
    if found is None or not end.endswith("}"):
        return line
    try:
        said = json.loads(end[found.start() :])
    except (ValueError, RecursionError):
        return line
    if not isinstance(said, dict) or said.keys().isdisjoint((*_WHEN, *_LEVEL)):
        return line
    text = "\n".join(part.rstrip("\n") for part in _parts(said) if part.strip())
    return f"{line[: found.start()]}{_level(said)}{text}" if text else line


def _level(said: dict[str, Any]) -> str:
    """As a plain log has it in front of a line. What Google Cloud writes there of a program's plain output says only on
    which stream it came."""
    if "textPayload" in said:
        return ""
    values = (said[key] for key in _LEVEL if key in said)
    names = (_NUMBERS.get(value, "") if type(value) is int else str(value).upper() for value in values)
    return next((f"[{name}] " for name in names if name in _LEVELS), "")


def _parts(said: dict[str, Any]) -> Iterator[str]:
    for key in _TEXT:
        if isinstance(said.get(key), str):
            yield said[key]
    for key in _WITHIN:
        if isinstance(said.get(key), dict):
            yield from _parts(said[key])
    for key in (*_ERROR, *_FLAT):
        value = said.get(key)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield ": ".join(value[name] for name in _SAYS if isinstance(value.get(name), str))
            yield from (value[name] for name in _TRACE if isinstance(value.get(name), str))
