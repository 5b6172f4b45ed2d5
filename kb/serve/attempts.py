"""Slows down whoever tries wrong tokens.

Each client address has a few tries; from then on each further wrong token doubles the time until the next one is looked
at. The same wrong token again is no further try: a script that still has the old token keeps nobody out who shares its
address. What is remembered is bounded: of very many addresses, the one that was quiet longest is forgotten.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Attempts"]

FREE = 5  # wrong tokens that cost nothing: people paste the wrong line
MOST_S = 60.0  # the longest wait
FORGOTTEN_S = 900.0  # after so long without a wrong token, an address begins anew
MAX_CLIENTS = 4096


@dataclass(slots=True)
class _Tries:
    wrong: int = 0
    last: bytes = b""
    """digest of the last wrong token"""
    at: float = 0.0
    until: float = 0.0


class Attempts:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clients: OrderedDict[str, _Tries] = OrderedDict()  # the one that was quiet longest first

    def wait_s(self, address: str) -> int:
        """Whole seconds until a token from this address is looked at again; 0: now."""
        tries = self._clients.get(_network(address))
        return max(0, math.ceil(tries.until - self._clock())) if tries else 0

    def note_wrong(self, address: str, given: str) -> None:
        name, now = _network(address), self._clock()
        tries = self._clients.pop(name, None)
        if tries is None or now - tries.at > FORGOTTEN_S:
            tries = _Tries()
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
        if digest != tries.last:
            tries.wrong += 1
            tries.last = digest
            over = tries.wrong - FREE
            tries.until = now + min(MOST_S, 2.0 ** min(over, 10)) if over >= 0 else now
        tries.at = now
        self._clients[name] = tries
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)


def _network(address: str) -> str:
    """A host has as many IPv6 addresses as it likes, so its network of 64 bits counts as one client."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6 and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
