"""What a prompts file may hold, and how what it may not is told."""

from __future__ import annotations

import json

import pytest

from engine.benchmark import check_lengths, read_prompts
from engine.engine import Engine
from engine.errors import EngineError
from tests.engine.benchmark.conversations import PROMPTS, asking, write_prompts


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2: expected"),
        ('{"id": 1}', "line 2: expected"),
        ('{"id": "a", "category": "b", "messages": []}', "end with a user's turn"),
        (
            '{"id": "a", "category": "b", "messages": [{"role": "user", "content": 3}]}',
            "must be texts",
        ),
        (json.dumps(asking("a", " \n")), 'line 2, "a": the last message is empty'),
    ],
)
def test_a_bad_prompts_line_is_named(tmp_path, line, sentence):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(PROMPTS[0]) + "\n" + line, encoding="utf-8")

    with pytest.raises(EngineError, match=sentence):
        read_prompts(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_byte_order_mark_and_other_ends_of_lines_do_no_harm(tmp_path, encoding, end):
    path = tmp_path / "p.jsonl"
    lines = [json.dumps(line) for line in PROMPTS]
    path.write_bytes((end.join(lines) + end).encode(encoding))

    assert [prompt.id for prompt in read_prompts(path)[0]] == ["one", "two"]


def test_a_text_may_hold_any_break_of_lines(tmp_path):
    line = asking("breaks", "the\u2028cat\x85and\u2029more")
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False), encoding="utf-8")

    [prompt], _ = read_prompts(path)

    assert prompt.question == line["messages"][0]["content"]


def test_a_prompt_that_is_too_long_is_named_with_both_numbers(engine, tmp_path):
    long = asking("novel", "the cat " * 300)
    prompts, _ = read_prompts(write_prompts(tmp_path / "p.jsonl", *PROMPTS, long))

    check_lengths(engine, prompts[:2])
    with pytest.raises(EngineError, match=r'p\.jsonl, line 3, "novel": .* [\d,]+ tokens, .* 512\.'):
        check_lengths(engine, prompts)
