"""Articles about failures that nobody has, each with a number in its fix."""

from __future__ import annotations

from kb.records import IssueRecord

ARTICLE = """---
project: Gadget
---
# {title}

## {title}

### {symptom}

```
RuntimeError: the {name} of frame 3 has drained
```

### {cause}

The {name} was open.

### {fix}

1. Set the {name} to {number}.
"""
WORDS = {
    "en": {"title": "The {} drains", "symptom": "Symptom", "cause": "Cause", "fix": "Fix"},
    "zh": {"title": "{} 漏光了", "symptom": "现象", "cause": "原因", "fix": "解决"},
}


def article(name: str, number: int, lang: str = "en") -> str:
    """It prints `RuntimeError: the NAME of frame 3 has drained`, and its fix ends with `NAME to NUMBER.`"""
    words = {key: word.format(name) for key, word in WORDS[lang].items()}
    return ARTICLE.format(name=name, number=number, **words)


def line_of(name: str) -> str:
    """The error line of an article."""
    return f"RuntimeError: the {name} of frame 3 has drained"


def fault_of(record: IssueRecord, name: str, number: int) -> str:
    """What is not as the article says; empty when all is."""
    said = record.title, record.errors, record.cause, record.fix.strip(), record.project
    title = WORDS[record.lang]["title"].format(name)
    wanted = title, (line_of(name),), f"The {name} was open.", f"1. Set the {name} to {number}.", "Gadget"
    return "" if said == wanted else f"{record.id} says {said}, and not {wanted}"
