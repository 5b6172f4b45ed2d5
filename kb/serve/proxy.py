"""What a proxy says about the client behind it: `X-Forwarded-For`, `-Proto` and `-Host`.

Anybody can send these headers. They are believed only from the addresses that `kb serve --behind-proxy` names, and of
X-Forwarded-For only what those proxies added: it is read from the right, up to the first address that is none of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.serve.asgi import Scope

__all__ = ["LOOPBACK", "Network", "as_client_sent", "networks"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))

_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::[0-9]{1,5})?|([0-9.]{7,15}):[0-9]{1,5}")


def networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Loopback, and the addresses and networks (10.0.0.0/8) that are named; the word `loopback` adds nothing. Raises
    ValueError for what is neither."""
    named = (name.strip() for name in names)
    return (*LOOPBACK, *(ipaddress.ip_network(name) for name in named if name and name != "loopback"))


def as_client_sent(scope: Scope, proxies: Sequence[Network]) -> Scope:
    """The scope with the client's own address, scheme and host, where a proxy that is believed says them."""
    peer = _address((scope.get("client") or ("", 0))[0])
    if peer is None or not _is_in(peer, proxies):
        return scope
    seen = dict(scope)
    for text in reversed(_listed(scope, b"x-forwarded-for")):
        address = _address(text)
        if address is None:
            break
        seen["client"] = (str(address), 0)
        if not _is_in(address, proxies):
            break
    scheme = next(reversed(_listed(scope, b"x-forwarded-proto")), "").casefold()
    if scheme in ("http", "https"):
        seen["scheme"] = seen["kb.scheme"] = scheme  # by which `guards` knows that it is no guess
    hosts = _listed(scope, b"x-forwarded-host")
    if len(hosts) == 1:
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        seen["headers"] = [*others, (b"host", hosts[0].encode("latin-1"))]
    return seen


def _listed(scope: Scope, name: bytes) -> list[str]:
    """The values of a header that may come several times, or once with commas; in order."""
    whole = ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)
    return [one.strip() for one in whole.split(",") if one.strip()]


def _address(text: str) -> Address | None:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found[1] or found[2]) if found else text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)
