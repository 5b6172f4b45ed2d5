"""An issue in a few lines of plain text: what it is, what to try first, how to read the rest; and of several that are
likely, what tells them apart.

Everything that tells a person about an issue takes its words from here: the terminal, `kb scan`, `kb run` and the
hooks. In come records, hits and findings; out come strings without colour and without a line end. The text is as the
articles have it: whoever prints it passes it through `kb.text.visible`.

    answer   the answer first, in at most fifteen rows
    issue    an issue in single lines
    remedy   what to try first: the steps of a fix with their commands
    short    an answer in short as plain values, for an editor or a chat bot
    cure     the one command or setting that is copied first
    prose    markdown as plain lines
    words    the words around an issue in both languages

This is a verb-layer room because findings are. It imports neither click nor rich, so that a hook inside somebody
else's program can use it.
"""

from kb.brief.answer import MOST_ROWS, answer_lines, known_issue, likely_issues, likely_lines
from kb.brief.cure import cure
from kb.brief.issue import (
    base_note,
    cause_line,
    cause_sentence,
    fix_line,
    headline,
    hit_line,
    leads_line,
    likely_hits,
    likely_line,
    of_finding,
    searched_line,
    show_command,
    show_line,
    summary_line,
    tells_apart,
)
from kb.brief.prose import pieces_of, plain
from kb.brief.remedy import Step, first_to_try, steps_of, to_try
from kb.brief.short import short_answer, short_report
from kb.brief.words import LABELS, WARNING, Line, percent

__all__ = [
    "LABELS",
    "MOST_ROWS",
    "WARNING",
    "Line",
    "Step",
    "answer_lines",
    "base_note",
    "cause_line",
    "cause_sentence",
    "cure",
    "first_to_try",
    "fix_line",
    "headline",
    "hit_line",
    "known_issue",
    "leads_line",
    "likely_hits",
    "likely_issues",
    "likely_line",
    "likely_lines",
    "of_finding",
    "percent",
    "pieces_of",
    "plain",
    "searched_line",
    "short_answer",
    "short_report",
    "show_command",
    "show_line",
    "steps_of",
    "summary_line",
    "tells_apart",
    "to_try",
]
