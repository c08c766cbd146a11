"""Prompts for training text: many, all different, and none of those that are measured."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.templates import Message
from engine.training.prompts import REPLY, TEMPLATES, Grammar, generated, read, written_out

SHIPPED = TEMPLATES.with_name("shipped.jsonl")
WORDS_IN_A_ROW = 8


@pytest.fixture(scope="module")
def prompts():
    return generated(6000, seed=0)


def texts_of(prompts):
    for prompt in prompts:
        yield from (*(turn.content for turn in prompt.before), *prompt.turns)


def runs_of_words(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + WORDS_IN_A_ROW]) for at in range(len(words) - WORDS_IN_A_ROW + 1)}


def turns(rules, seed=0):
    return Grammar(rules).turns("begin", random.Random(seed))


def test_there_are_thousands_of_different_prompts(prompts):
    assert len({prompt.key for prompt in prompts}) == len(prompts) == 6000
    assert len({prompt.turns for prompt in prompts}) > 5900


def test_every_kind_has_a_fair_share(prompts):
    kinds = Counter(prompt.kind for prompt in prompts)

    assert kinds.keys() == json.loads(TEMPLATES.read_text(encoding="utf-8"))["kinds"].keys()
    assert min(kinds.values()) > 60
    assert max(kinds.values()) < 900


def test_some_conversations_have_further_turns_or_a_system_prompt(prompts):
    assert sum(len(prompt.turns) > 1 for prompt in prompts) > 500
    assert sum(bool(prompt.before) for prompt in prompts) > 200
    assert sum(REPLY in prompt.turns[-1] for prompt in prompts) > 300
    assert not any(REPLY in prompt.turns[0] for prompt in prompts)


def test_no_place_is_left_unfilled(prompts):
    left = [text for text in texts_of(prompts) if re.search(r"<<[\w^+=.]+>>", text)]

    assert {text for text in left if REPLY not in text} == set()


def test_thousands_more_are_written_out_of_every_kind_that_is_measured():
    prompts = written_out()
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()

    assert len({prompt.key for prompt in prompts}) == len(prompts) > 6000
    assert {prompt.kind for prompt in prompts} == {json.loads(line)["category"] for line in lines}
    assert {prompt.kind for prompt in prompts[:50]} == {prompt.kind for prompt in prompts}
    assert sum(bool(prompt.before) for prompt in prompts) > 100


def test_none_shares_eight_words_in_a_row_with_a_shipped_prompt(prompts):
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    shipped = [turn["content"] for line in lines for turn in json.loads(line)["messages"]]
    measured = set().union(*map(runs_of_words, shipped))

    shared = {
        text for text in texts_of([*prompts, *written_out()]) if runs_of_words(text) & measured
    }

    assert len(measured) > 1000
    assert shared == set()


def test_the_first_of_many_are_those_of_few(prompts):
    assert generated(200, seed=0) == prompts[:200]
    assert generated(200, seed=1) != prompts[:200]


def test_every_place_names_a_rule_a_number_or_something_remembered():
    rules = json.loads(TEMPLATES.read_text(encoding="utf-8"))["rules"]
    texts = json.dumps(rules, ensure_ascii=False)
    places = re.findall(r"<<[\^+]?(?:(\w+)=)?(\w+|\d+\.\.\d+)>>", texts)
    remembered = {name for name, _ in places if name}

    unknown = {
        source
        for _, source in places
        if source not in rules and source not in remembered and ".." not in source
    }

    assert unknown == {"reply"}
    assert remembered.isdisjoint(rules)
    assert all(rules.values())


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("<<animal>> and <<animal>>", "owl and owl"),
        ("<<^animal>>s fly", "Owls fly"),
        ("<<+animal>> and <<+job>>", "an owl and a nurse"),
        ("<<x=number>>, again <<x>>", "5, again 5"),
        ("<<5..5>> of them", "5 of them"),
        ("<<nested>>", "the owl!"),
        ("cout << x << <<animal>>", "cout << x << owl"),
        ("As it was: <<reply>>", "As it was: <<reply>>"),
    ],
)
def test_places_are_filled(text, filled):
    rules = {
        "begin": [text],
        "animal": ["owl"],
        "job": ["nurse"],
        "number": ["<<5..5>>"],
        "nested": ["the <<animal>>!"],
    }

    assert turns(rules) == (filled,)


def test_what_is_remembered_holds_for_a_whole_conversation():
    rules = {
        "begin": [["My number is <<n=number>>.", "Which was it? <<n>>"]],
        "number": ["<<0..10000>>"],
    }

    first, second = turns(rules, seed=3)

    assert first.split()[-1].strip(".") == second.split()[-1]


def test_few_templates_yield_as_many_as_there_are(tmp_path):
    path = tmp_path / "few.json"
    path.write_text(
        json.dumps({"kinds": {"a": 1}, "rules": {"a": ["<<1..3>>"], "system": ["Hello."]}})
    )

    found = generated(100, seed=0, templates=path)

    assert {prompt.turns[0] for prompt in found} == {"1", "2", "3"}
    assert len(found) == 6  # each with a system prompt and without


def test_a_text_file_is_a_prompt_a_line(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("First?\n\n  Second, ünïcode {json}?  \nFirst?\n", encoding="utf-8")

    found = read(path)

    assert [prompt.turns for prompt in found] == [("First?",), ("Second, ünïcode {json}?",)]


def test_a_jsonl_file_is_read_as_the_benchmark_reads_it(tmp_path):
    path = tmp_path / "mine.jsonl"
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three?"},
    ]
    path.write_text(json.dumps({"id": 1, "category": "mine", "messages": messages}))

    [prompt] = read(path)

    assert prompt.turns == ("Three?",)
    assert prompt.before[0] == Message("system", "Be brief.")
    assert [turn.role for turn in prompt.before] == ["system", "user", "assistant"]


@pytest.mark.parametrize(("name", "content"), [("a.txt", " \n"), ("a.jsonl", "{}"), ("no", None)])
def test_a_file_without_prompts_is_said_in_a_sentence(tmp_path, name, content):
    path = Path(tmp_path / name)
    if content is not None:
        path.write_text(content)

    with pytest.raises(EngineError, match=r"a\.(txt|jsonl)|can't be read"):
        read(path)
