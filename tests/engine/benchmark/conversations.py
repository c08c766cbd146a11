"""Two short conversations as lines of a prompts file."""

from __future__ import annotations

import json

PROMPTS = [
    {"id": "one", "category": "chat", "messages": [{"role": "user", "content": "the cat"}]},
    {
        "id": "two",
        "category": "edit",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "the hat"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "and the other"},
        ],
    },
]


def write_prompts(path, *lines):
    """A prompts file of these, or of the two."""
    path.write_text("\n".join(json.dumps(line) for line in lines or PROMPTS), encoding="utf-8")
    return path


def asking(name, question):
    """A line of one message."""
    return {
        "id": name,
        "category": "chat",
        "messages": [{"role": "user", "content": question}],
    }
