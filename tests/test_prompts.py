"""The shipped prompts: every figure of the project rests on them, so they stay as they are."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

SHIPPED = Path(__file__).resolve().parent.parent / "resources" / "prompts" / "shipped.jsonl"


@pytest.fixture
def prompts():
    return [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]


def test_shipped_prompts_are_frozen():
    digest = hashlib.sha256(SHIPPED.read_bytes()).hexdigest()

    assert digest == "0de2a0c1aff78ee90b53901920f183538e36b0434c8344c15b6aa09a5d5acbe3"


def test_each_category_has_five_prompts_with_ids_of_their_own(prompts):
    categories = Counter(prompt["category"] for prompt in prompts)

    assert set(categories) == {"chat", "code", "edit", "summarise", "extract", "story"}
    assert set(categories.values()) == {5}
    assert len({prompt["id"] for prompt in prompts}) == 30


def test_turns_alternate_and_the_user_has_the_last_word(prompts):
    for prompt in prompts:
        roles = [message["role"] for message in prompt["messages"]]

        assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
        assert roles[-1] == "user"
