"""The bench's records against the contract, on a tiny model."""

from __future__ import annotations

import json

import pytest

from engine import benchmark
from engine.__main__ import main
from engine.engine import Engine
from engine.errors import EngineError
from engine.params import ReplyParams, Rule, SamplingParams

FIELDS = {
    "target", "drafter", "draft_length", "tree_nodes", "dtype", "rule", "temperature", "top_k",
    "top_p", "min_p", "repetition_penalty", "seed", "prompt_id", "category", "text", "ids",
    "origins", "rounds", "drafted", "accepted", "mean_accepted_length", "acceptance_rate",
    "survival_by_depth", "prefill_seconds", "decode_seconds", "tokens_per_second",
    "tokens_per_second_spread", "baseline_tokens_per_second", "speedup", "identical_to_baseline",
    "first_difference", "finish_reason", "bit_exact",
}  # fmt: skip

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


@pytest.fixture
def prompts_file(tmp_path):
    path = tmp_path / "prompts é.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in PROMPTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


def runs_of(engine, prompts_file, sampling, *, drafters=("ngram", "layer-skip@2"), repeats=1):
    prompts, _ = benchmark.read_prompts(prompts_file)
    plan = benchmark.Plan(prompts, drafters, ReplyParams(sampling, 10), 3, 0, repeats)
    return benchmark.run(engine, plan, lambda what, done, total: None)


def test_every_prompt_runs_with_every_drafter_and_with_none(engine, prompts_file):
    runs = runs_of(engine, prompts_file, SamplingParams(temperature=0.8, seed=3), repeats=2)

    assert [(run["prompt_id"], run["drafter"]) for run in runs] == [
        (prompt, drafter)
        for prompt in ("one", "two")
        for drafter in ("off", "ngram", "layer-skip@2")
    ]
    assert all(run.keys() == FIELDS for run in runs)
    assert all(run["identical_to_baseline"] for run in runs)
    assert all(run["first_difference"] is None for run in runs)


def test_a_records_numbers_fit_together(engine, prompts_file):
    for run in runs_of(engine, prompts_file, SamplingParams()):
        slowest, fastest = run["tokens_per_second_spread"]
        assert len(run["origins"]) == len(run["ids"])
        assert set(run["origins"]) <= set("art")
        assert run["origins"].count("a") == run["accepted"]
        assert run["mean_accepted_length"] == len(run["ids"]) / run["rounds"]
        assert slowest <= run["tokens_per_second"] <= fastest
        assert run["speedup"] == run["tokens_per_second"] / run["baseline_tokens_per_second"]


def test_under_rejection_above_temperature_zero_texts_are_not_compared(engine, prompts_file):
    sampling = SamplingParams(temperature=1.0, rule=Rule.REJECTION)

    runs = runs_of(engine, prompts_file, sampling)

    assert all(run["identical_to_baseline"] is None for run in runs)


def test_a_difference_is_found_with_both_ids_and_the_margin(engine, prompts_file):
    prompts, _ = benchmark.read_prompts(prompts_file)
    plan = benchmark.Plan(prompts, (), ReplyParams(max_new_tokens=6), 3, 0)
    plain = benchmark._sample(engine, plan, prompts[0], "off")
    changed = benchmark.Sample(plain.tokens[:2] + plain.tokens[3:], "", plain.finished)

    difference = benchmark._first_difference([plain, changed], plain)

    assert difference == {
        "index": 2,
        "id": plain.tokens[3].id,
        "baseline_id": plain.tokens[2].id,
        "margin": plain.tokens[2].margin,
    }


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
    ],
)
def test_a_bad_prompts_line_is_named(tmp_path, line, sentence):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(PROMPTS[0]) + "\n" + line, encoding="utf-8")

    with pytest.raises(EngineError, match=sentence):
        benchmark.read_prompts(path)


def test_the_command_writes_the_whole_file_and_a_summary(
    llama_folder, prompts_file, tmp_path, capsys
):
    out = tmp_path / "out.json"
    command = "bench --device cpu --dtype float64 --max-new-tokens 6 --drafters ngram"

    status = main(
        [
            *command.split(),
            "--target",
            str(llama_folder),
            "--prompts",
            str(prompts_file),
            "--json",
            str(out),
        ]
    )

    written = json.loads(out.read_text(encoding="utf-8"))
    assert status == 0
    assert written.keys() == {"versions", "device", "threads", "prompts_sha256", "runs"}
    assert len(written["runs"]) == 4
    assert "2 of 2" in capsys.readouterr().out


def test_figures_that_cannot_be_kept_are_said_before_anything_is_measured(tmp_path, capsys):
    status = main(
        ["bench", "--target", "/no/such/model", "--json", str(tmp_path / "no" / "x.json")]
    )

    assert status == 1
    assert "The figures can't be written to" in capsys.readouterr().err


def test_a_drafter_that_does_not_fit_is_said_before_anything_runs(engine, prompts_file):
    told = []
    prompts, _ = benchmark.read_prompts(prompts_file)
    plan = benchmark.Plan(prompts, ["ngram", "nonsense"], ReplyParams(max_new_tokens=4), 3, 0)

    with pytest.raises(EngineError, match='no drafter "nonsense"'):
        benchmark.run(engine, plan, lambda what, done, total: told.append(what))

    assert told == []
