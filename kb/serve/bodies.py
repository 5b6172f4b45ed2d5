"""What a request asks: its query string, a JSON object, or a log as it is; packed with gzip or not.

`curl --data-binary @train.log` sends a log as a form, so a form is read as text, too. A page of another origin could
send text and forms without asking the browser first; `guards` refuses it by its Origin, nothing that is asked changes
anything here, and no other page can read the answer.

In: the headers and bytes of a request that the guard let through. Out: the options, and the log in pieces. It does not
wait for anything, and a long body takes a while: call it in a thread.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request

from kb.serve.guards import Refusal
from kb.serve.params import NoParams, from_json, from_pairs

__all__ = ["MAX_UNPACKED", "PIECE", "Sent", "unpacked"]

MAX_UNPACKED = 16 << 20
"""bytes of a body that came packed: a log of 100,000 lines"""
PIECE = 1 << 16
_MAX_MEMBERS = 1000  # of a gzip file, each of which copies what comes after it
_TEXTS = ("text/plain", "application/x-www-form-urlencoded")
_GZIP = ("gzip", "x-gzip")

P = TypeVar("P", bound=NoParams)
B = TypeVar("B", bound=NoParams)


@dataclass(frozen=True)
class Sent:
    """A POST request with its body, not yet read."""

    body: bytes
    is_json: bool
    is_packed: bool
    pairs: tuple[tuple[str, str], ...]
    """of the query string"""

    @classmethod
    async def of(cls, request: Request) -> Sent:
        """Raises Refusal 415 for a body of a kind that nobody reads here."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
        if kind != "application/json" and kind not in _TEXTS:
            raise Refusal(415, "the body must be application/json or text/plain", "a log as it is: text/plain")
        packing = request.headers.get("content-encoding", "").strip().casefold()
        if packing not in (*_GZIP, "", "identity"):
            raise Refusal(415, "the body is packed in a way that is not known here", "Content-Encoding: gzip")
        pairs = tuple(request.query_params.multi_items())
        return cls(await request.body(), kind == "application/json", packing in _GZIP, pairs)

    def read(self, options: type[P], whole: type[B]) -> tuple[P | B, Iterator[bytes] | None]:
        """A JSON object as a `whole`, or, for text, the `options` of the query string with the text in pieces.

        In a JSON object an option counts before the query string's. Raises QueryError; so does reading the pieces, and
        Refusal."""
        pieces = unpacked(self.body) if self.is_packed else iter((self.body,))
        given = from_pairs(self.pairs, options)
        if self.is_json:
            return from_json(b"".join(pieces), whole, given.model_dump(exclude_unset=True)), None
        return given, pieces


def unpacked(body: bytes) -> Iterator[bytes]:
    """What was packed with gzip, in pieces of up to `PIECE` bytes. Raises Refusal 413 after `MAX_UNPACKED` bytes, 400
    where it is damaged or broken off."""
    size, rest = 0, body
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                piece = member.decompress(rest, PIECE)
            except zlib.error:
                raise _DAMAGED from None
            if not piece and not member.eof and not member.unconsumed_tail:
                raise _DAMAGED
            rest = member.unconsumed_tail
            size += len(piece)
            if size > MAX_UNPACKED:
                raise Refusal(413, f"unpacked, the body is longer than {MAX_UNPACKED >> 20} MiB", _SHORTER)
            if piece:
                yield piece
        rest = member.unused_data.lstrip(b"\0")  # zeros may fill up the last block of a tape
        if not rest:
            return
    raise _DAMAGED


_SHORTER = "send the end of the log"
_DAMAGED = Refusal(400, "the body is not valid gzip", "Content-Encoding: gzip is for a whole gzip file")
