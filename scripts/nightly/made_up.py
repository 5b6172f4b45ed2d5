"""Articles about failures that nobody has, each with a number in its fix."""

from __future__ import annotations

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
