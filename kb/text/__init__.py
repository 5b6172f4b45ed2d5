"""Text in Chinese, English or code: decoded, cleaned, split, and made safe to print.

    tokens   text -> clean text, its language, its terms for the index
    visible  text -> text without characters that a terminal would obey
    decode   bytes of a log, a paste or a page -> text (UTF-8, UTF-16, GB 18030)
    fences   markdown -> blocks of prose and of fenced code
    steps    the markdown of a fix -> its steps, and what stands behind each
    width    how wide a text is at a terminal, and where a line may end

Nothing here imports numpy, markdown-it-py or a dictionary before it is needed. All but the first two are imported
as modules, by those who need them.
"""

from kb.text.tokens import (
    HAN,
    HAN_CHAR,
    STOP_WORDS,
    Segmenter,
    clean,
    detect_lang,
    dictionary_for,
    sentences,
    term_weights,
    tokenise,
)
from kb.text.visible import CONTROL, HIDDEN, visible, visible_line

__all__ = [
    "CONTROL",
    "HAN",
    "HAN_CHAR",
    "HIDDEN",
    "STOP_WORDS",
    "Segmenter",
    "clean",
    "detect_lang",
    "dictionary_for",
    "sentences",
    "term_weights",
    "tokenise",
    "visible",
    "visible_line",
]
