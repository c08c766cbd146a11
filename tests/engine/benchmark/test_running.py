"""The bench's records against the contract, on a tiny model."""

from __future__ import annotations

import pytest

from engine.benchmark import Findings, Plan, read_prompts, run
from engine.benchmark.records import first_difference
from engine.benchmark.running import Sample, sample
from engine.engine import Engine
from engine.errors import EngineError, OutOfMemory
from engine.params import ReplyParams, Rule, SamplingParams
from engine.session import Session
from tests.engine.benchmark.conversations import PROMPTS, asking, write_prompts

FIELDS = {
    "target", "drafter", "draft_length", "tree_nodes", "dtype", "rule", "temperature", "top_k",
    "top_p", "min_p", "repetition_penalty", "seed", "max_new_tokens", "stop_texts", "prompt_id",
    "category", "text", "ids", "origins", "rounds", "drafted", "accepted", "mean_accepted_length",
    "acceptance_rate", "survival_by_depth", "prefill_seconds", "decode_seconds",
    "tokens_per_second", "tokens_per_second_spread", "baseline_tokens_per_second", "speedup",
    "identical_to_baseline", "first_difference", "finish_reason", "bit_exact",
}  # fmt: skip


@pytest.fixture
def prompts_file(tmp_path):
    return write_prompts(tmp_path / "prompts é.jsonl")


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


def quiet(what, done, total):
    """Say nothing."""


def runs_of(engine, prompts_file, sampling, *, drafters=("ngram", "layer-skip@2"), repeats=1):
    prompts, _ = read_prompts(prompts_file)
    plan = Plan(prompts, drafters, ReplyParams(sampling, 10, ("unheard",)), 3, 0, repeats)
    run(engine, plan, found := Findings(engine, plan), quiet)
    assert found.notes == []
    return found.records()


def test_every_prompt_runs_with_every_drafter_and_with_none(engine, prompts_file):
    runs = runs_of(engine, prompts_file, SamplingParams(temperature=0.8, seed=3), repeats=2)

    assert [(run["prompt_id"], run["drafter"]) for run in runs] == [
        (prompt, drafter)
        for prompt in ("one", "two")
        for drafter in ("off", "ngram", "layer-skip@2")
    ]
    assert all(run.keys() == FIELDS for run in runs)
    assert {(run["max_new_tokens"], *run["stop_texts"]) for run in runs} == {(10, "unheard")}
    assert all(run["identical_to_baseline"] for run in runs)
    assert all(run["first_difference"] is None for run in runs)


def test_a_records_numbers_fit_together(engine, prompts_file):
    for record in runs_of(engine, prompts_file, SamplingParams()):
        slowest, fastest = record["tokens_per_second_spread"]
        assert len(record["origins"]) == len(record["ids"])
        assert set(record["origins"]) <= set("art")
        assert record["origins"].count("a") == record["accepted"]
        assert record["mean_accepted_length"] == len(record["ids"]) / record["rounds"]
        assert slowest <= record["tokens_per_second"] <= fastest
        plain = record["baseline_tokens_per_second"]
        assert record["speedup"] == record["tokens_per_second"] / plain


def test_under_rejection_above_temperature_zero_texts_are_not_compared(engine, prompts_file):
    sampling = SamplingParams(temperature=1.0, rule=Rule.REJECTION)

    runs = runs_of(engine, prompts_file, sampling)

    assert all(run["identical_to_baseline"] is None for run in runs)


def test_a_difference_is_found_with_both_ids_and_the_margin(engine, prompts_file):
    prompts, _ = read_prompts(prompts_file)
    plan = Plan(prompts, (), ReplyParams(max_new_tokens=6), 3, 0)
    plain = sample(engine, plan, prompts[0], "off")
    changed = Sample(plain.tokens[:2] + plain.tokens[3:], "", plain.finished)

    difference = first_difference([plain, changed], plain)

    assert difference == {
        "index": 2,
        "id": plain.tokens[3].id,
        "baseline_id": plain.tokens[2].id,
        "margin": plain.tokens[2].margin,
    }


def test_a_drafter_that_does_not_fit_is_said_before_anything_runs(engine, prompts_file):
    told = []
    prompts, _ = read_prompts(prompts_file)
    plan = Plan(prompts, ["ngram", "nonsense"], ReplyParams(max_new_tokens=4), 3, 0)

    with pytest.raises(EngineError, match='no drafter "nonsense"'):
        run(engine, plan, Findings(engine, plan), lambda what, done, total: told.append(what))

    assert told == []


def test_a_prompt_that_is_too_long_is_said_before_anything_runs(engine, tmp_path):
    path = write_prompts(tmp_path / "p.jsonl", *PROMPTS, asking("novel", "the cat " * 300))
    prompts, _ = read_prompts(path)
    plan, told = Plan(prompts, [], ReplyParams(max_new_tokens=4), 3, 0), []

    with pytest.raises(EngineError, match='line 3, "novel"'):
        run(engine, plan, Findings(engine, plan), lambda what, done, total: told.append(what))

    assert told == []


def test_two_lines_of_one_id_are_two_prompts(engine, tmp_path):
    path = write_prompts(tmp_path / "p.jsonl", asking("same", "the cat"), asking("same", "a hat"))
    prompts, _ = read_prompts(path)
    plan = Plan(prompts, [], ReplyParams(max_new_tokens=4), 3, 0)

    run(engine, plan, found := Findings(engine, plan), quiet)

    one, other = found.records()
    assert one["ids"] != other["ids"]


def failing(monkeypatch, fails):
    """Let replies fail from some time on: `fails` is told the question, and how many were asked."""
    reply, asked = Session.reply, []

    def reply_or_fail(self, text, params, stop):
        asked.append((text, self.drafting.drafter.name))
        if fails(*asked[-1], asked.count(asked[-1])):
            raise OutOfMemory("No memory is left.")
        return reply(self, text, params, stop)

    monkeypatch.setattr(Session, "reply", reply_or_fail)


def found_of(engine, prompts_file, repeats=1):
    prompts, _ = read_prompts(prompts_file)
    plan = Plan(prompts, ["ngram", "suffix"], ReplyParams(max_new_tokens=4), 3, 0, repeats)
    run(engine, plan, found := Findings(engine, plan), quiet)
    return found, [(record["prompt_id"], record["drafter"]) for record in found.records()]


def test_what_fails_with_one_drafter_is_noted_and_the_others_are_kept(
    engine, prompts_file, monkeypatch
):
    failing(monkeypatch, lambda text, drafter, times: (text, drafter) == (SECOND, "ngram"))

    found, runs = found_of(engine, prompts_file, repeats=2)

    assert found.notes == ['prompts é.jsonl, line 2, "two", with ngram: No memory is left.']
    assert runs == [*(("one", each) for each in EVERYONE), ("two", "off"), ("two", "suffix")]


def test_a_prompt_whose_plain_run_fails_leaves_nothing_to_compare_with(
    engine, prompts_file, monkeypatch
):
    failing(monkeypatch, lambda text, drafter, times: (text, drafter) == (SECOND, "off"))

    found, runs = found_of(engine, prompts_file)

    assert len(found.notes) == 1
    assert runs == [("one", each) for each in EVERYONE]


def test_a_repeat_that_fails_leaves_what_was_measured_before(engine, prompts_file, monkeypatch):
    failing(monkeypatch, lambda text, drafter, times: (text, times) == (SECOND, 2))

    found, runs = found_of(engine, prompts_file, repeats=3)

    assert len(found.notes) == 1
    assert len(runs) == 6


EVERYONE = ("off", "ngram", "suffix")
SECOND = PROMPTS[1]["messages"][-1]["content"]
