"""Here is text that somebody pasted in public; give it back without what should not have been in it.

Keys and tokens are known by their makers' prefixes, by the header they stand in, or by the name they are given to. What
is masked once too often costs a reviewer a look; what is missed is served for years.
"""

from __future__ import annotations

import re

__all__ = ["MASK", "mask", "tidy"]

MASK = "[masked]"

_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(
    "\x1b\\[[0-9;]{0,20}[A-Za-z]|"
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,255}|glpat-[\w-]{16,64}|hf_[A-Za-z0-9]{16,64}|"
    r"sk-[\w-]{16,200}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abeoprs]-[\w-]{10,200}|ya29\.[\w-]{20,300}|"
    r"npm_[A-Za-z0-9]{30,64}|pypi-[\w-]{30,300}|dckr_pat_[\w-]{20,64}|eyJ[\w-]{10,400}\.[\w-]{10,2000}\.[\w-]{5,600})"
)
_PLACES = (
    re.compile(r"(?i)\b(?P<keep>bearer[ \t]{1,4})[\w.~+/=-]{8,2000}"),
    re.compile(
        r"(?i)(?P<keep>\bauthorization[\"']?[ \t]{0,4}[:=][ \t\"']{0,4}(?:basic|token)[ \t]{1,4})[^\s\"']{6,2000}"
    ),
    re.compile(r"(?P<keep>://[^\s/:@\"']{1,64}:)[^\s/:@\"']{3,200}(?=@)"),
    re.compile(
        r"(?i)(?P<keep>\b[\w-]{0,40}(?:api[_-]?key|access[_-]?key|secret(?:[_-]?key)?|passw(?:or)?d|auth[_-]?token|"
        r"private[_-]?key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)(?![$<{*\[])[^\s\"',;)}\]]{6,500}"
    ),
    re.compile(
        r"(?P<keep>\b[A-Z][A-Z0-9_]{1,40}_(?:TOKEN|KEY|PAT)[\"']?[ \t]{0,4}[:=][ \t\"']{0,4})"
        r"(?![$<{*\[])[^\s\"',;]{8,500}"
    ),
)
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,8000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?")


def tidy(text: str) -> str:
    """Lines that end with a line feed; no control characters, no marks that turn text around, no halves of pairs."""
    return _CONTROL.sub("", _BREAKS.sub("\n", text))


def mask(text: str) -> str:
    """The same text, in place of each key, token and password `[masked]`."""
    text = _TOKENS.sub(MASK, _PEM.sub(MASK, text))
    for place in _PLACES:
        text = place.sub(rf"\g<keep>{MASK}", text)
    return text
