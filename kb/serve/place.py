"""The socket that the server listens on. It is made before the base is opened, which may take a while, and before the
workers are: an address that is taken is told at once."""

from __future__ import annotations

import os
import socket

__all__ = ["Place", "bind"]

QUEUE = 256  # connections that wait to be accepted


class Place(socket.socket):
    """A socket that several processes may listen on."""

    def listen(self, backlog: int = 0, /) -> None:
        """asyncio accepts as many connections at once as the queue is said to be long. Here it accepts one, so that the
        next goes to a worker that is free; the queue itself is longer."""
        super().listen(QUEUE)


def bind(host: str, port: int) -> Place:
    """The socket for `serve`, which does not listen yet: who connects now is refused. `port` 0 takes a free one. Raises
    OSError when the address cannot be used."""
    place = Place(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if place.family == socket.AF_INET6:
            place.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        place.bind((host, port))
        return place
    except OSError:
        place.close()
        raise
