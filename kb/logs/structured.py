"""Logs whose lines are JSON objects (of Docker, Google Cloud, AWS Lambda, structlog, python-json-logger, loguru, pino,
zap, serilog, in the forms of Elastic and OpenTelemetry): what the program meant to say, line by line, as it would stand
in a plain log."""

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
_WHEN = ("time", "ts", "timestamp", "@timestamp", "asctime", "datetime", "@t", "timeUnixNano")
_LEVEL = ("level", "levelname", "lvl", "severity", "loglevel", "log.level", "@l", "severityText", "severity_text")
_LEVELS = {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"}
_NUMBERS = {20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # pino, bunyan
_TEXT = ("log", "textPayload", "message", "msg", "event", "@m")
_BODY = "body"  # OpenTelemetry's message; beside another one it is what a request or an answer held
_WITHIN = ("fields", "jsonPayload")  # objects that hold the message
_ERROR = ("error", "err", "exception", "exc_info", "exc_text", "stack_trace", "stacktrace", "stack", "traceback", "@x")
_FLAT = ("error.message", "error.stack_trace", "exception.message", "exception.stacktrace")
_LAMBDA = {"errorMessage", "errorType"}  # what AWS Lambda prints of an exception; it may have no time
_TYPE, _SAYS = ("type", "name", "exc_type", "errorType"), ("errorMessage", "exc_value", "message")  # of an exception
_TRACE = ("stack_trace", "stack", "traceback", "stackTrace")
_MOST_FRAMES = 100
_NESTED = 2  # objects within the message of another: Docker's around those of the program
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


def _line(line: str, depth: int = 0) -> str:
    found = _OBJECT.search(line, 0, HEAD_CHARS)
    end = line.rstrip().rstrip(",")
    if found is None or not end.endswith("}"):
        return line
    try:
        said = json.loads(end[found.start() :])
        text = _said(said) if isinstance(said, dict) else ""
    except (ValueError, RecursionError):
        return line
    if text and depth + 1 < _NESTED:
        text = "\n".join(_line(one, depth + 1) for one in text.split("\n"))
    return f"{line[: found.start()]}{text}" if text else line


def _said(said: dict[str, Any]) -> str:
    """What the object says, empty when it is none of a log."""
    record, printed = said.get("record"), said.get("text")
    if isinstance(record, dict) and "level" in record and isinstance(printed, str):  # loguru: the line as it is printed
        return printed.rstrip("\n")
    if said.keys().isdisjoint((*_WHEN, *_LEVEL)) and not said.keys() >= _LAMBDA:
        return ""
    text = "\n".join(part.rstrip("\n") for part in _parts(said) if part.strip())
    return _level(said) + text if text else ""


def _level(said: dict[str, Any]) -> str:
    """As a plain log has it in front of a line. What Google Cloud writes there of a program's plain output says only on
    which stream it came."""
    if "textPayload" in said:
        return ""
    values = (said[key] for key in _LEVEL if key in said)
    names = (_NUMBERS.get(value, "") if type(value) is int else str(value).upper() for value in values)
    return next((f"[{name}] " for name in names if name in _LEVELS), "")


def _parts(said: dict[str, Any]) -> Iterator[str]:
    messages = [said[key] for key in _TEXT if isinstance(said.get(key), str)] or [_plain(said.get(_BODY))]
    yield from (one for one in messages if one != said.get("errorMessage"))
    for key in _WITHIN:
        if isinstance(said.get(key), dict):
            yield from _parts(said[key])
    attributes = said.get("attributes")
    if isinstance(attributes, list):  # of OpenTelemetry's protocol
        pairs = [one for one in attributes if isinstance(one, dict) and isinstance(one.get("key"), str)]
        attributes = {one["key"]: _plain(one.get("value")) for one in pairs}
    for one in (said, attributes if isinstance(attributes, dict) else {}):
        for key in _FLAT:
            yield from _error(one.get(key))
    if said.keys() >= _LAMBDA:
        yield from _error({key: said.get(key) for key in (*_LAMBDA, "stackTrace")})
    for key in _ERROR:
        yield from _error(said.get(key))


def _plain(value: Any) -> str:
    """Text, which OpenTelemetry's protocol may wrap."""
    value = value.get("stringValue") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def _error(value: Any) -> Iterator[str]:
    """The lines of an exception in the order of Python: its cause, its frames, what it is; those of a group."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        last = value[-_MOST_FRAMES:]  # of a traceback's lines the last says what it was
        for one in last if any(isinstance(one, str) for one in last) else last[::-1]:  # structlog has causes last
            yield from _error(one)
    elif isinstance(value, dict):
        for name in _TRACE:
            yield from _error(value.get(name))
        frames = value.get("frames")
        for frame in frames[-_MOST_FRAMES:] if isinstance(frames, list) else ():
            if isinstance(frame, dict) and {"filename", "lineno", "name"} <= frame.keys():
                yield f'  File "{frame["filename"]}", line {frame["lineno"]}, in {frame["name"]}'
        names = (next((value[name] for name in of if isinstance(value.get(name), str)), "") for of in (_TYPE, _SAYS))
        yield ": ".join(filter(None, names))
        yield from _error(value.get("exceptions"))
