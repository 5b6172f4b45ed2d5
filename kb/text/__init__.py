"""Text in Chinese, English or code: cleaned, split into terms, and made safe to print.

`tokens` normalises a text and splits it into the terms that the index knows; `visible` replaces what a terminal would
obey. Nothing here imports numpy or a dictionary before it is needed.
"""

from kb.text.tokens import (
    HAN,
    HAN_CHAR,
    STOP_WORDS,
    Segmenter,
    clean,
    detect_lang,
    dictionary_for,
    shares,
    tokenise,
)
from kb.text.visible import CONTROL, visible

__all__ = [
    "CONTROL",
    "HAN",
    "HAN_CHAR",
    "STOP_WORDS",
    "Segmenter",
    "clean",
    "detect_lang",
    "dictionary_for",
    "shares",
    "tokenise",
    "visible",
]
