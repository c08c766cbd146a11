"""The table of a bench with peers, from a report written by hand."""

from __future__ import annotations

import pytest

from engine.peers.ratios import ratios
from engine.peers.table import markdown

CATEGORIES = {"one": "chat", "two": "chat", "three": "edit"}


def a_run(prompt, seconds, *, same=True, **more):
    """Ten tokens after a prompt that took a second."""
    return {
        "prompt_id": prompt,
        "category": CATEGORIES[prompt],
        "ids": [1] * 10,
        "prefill_seconds": 1.0,
        "decode_seconds": seconds,
        "tokens_per_second": 10 / seconds,
        "identical_to_baseline": same,
        **more,
    }


def ours(drafter, *seconds):
    return [
        a_run(prompt, each, drafter=drafter)
        for prompt, each in zip(CATEGORIES, seconds, strict=False)
    ]


def theirs(mode, *seconds, same=(True, True, True)):
    return [
        a_run(prompt, each, engine="peer 1", mode=mode, same=is_same)
        for prompt, each, is_same in zip(CATEGORIES, seconds, same, strict=False)
    ]


def a_report(runs, peer_runs, notes=()):
    report = {
        "versions": {"draftlight": "0.1.0", "python": "3.11.7", "torch": "2.13.0"},
        "threads": 2,
        "runs": runs,
        "peers": {
            "date": "2026-01-02",
            "machine": "A CPU, 2 cores, Linux",
            "target": "Small 135M",
            "max_new_tokens": 128,
            "repeats": 3,
            "runs": peer_runs,
            "notes": list(notes),
        },
    }
    report["peers"]["ratios"] = ratios(report)
    return report


OURS = [*ours("off", 1, 1, 1), *ours("auto", 1, 0.5, 0.5)]
PLAIN = theirs("plain", 2, 2, 2)
LOOKUP = theirs("lookup", 4, 4, 1, same=(True, False, True))


def ratio_of(report, drafter, category, measure="decoding"):
    (found,) = [
        each
        for each in report["peers"]["ratios"]
        if (each["drafter"], each["category"], each["measure"]) == (drafter, category, measure)
    ]
    return found["ratio"], found["best_mode"]


def test_ours_is_compared_with_the_peers_best_mode_in_each_group():
    report = a_report(OURS, [*PLAIN, *LOOKUP])

    assert ratio_of(report, "off", "chat") == (2, "plain")
    assert ratio_of(report, "off", "edit") == (1, "lookup")
    assert ratio_of(report, "auto", "chat") == (3, "plain")
    assert ratio_of(report, "auto", "all") == (4, "lookup")
    assert ratio_of(report, "off", "chat", "whole") == (pytest.approx(1.5), "plain")


def test_a_mode_that_missed_a_prompt_has_no_figure_there():
    report = a_report(OURS, [*PLAIN, *theirs("lookup", 0.1, 0.1)])

    assert ratio_of(report, "off", "chat") == (pytest.approx(0.1), "lookup")
    assert ratio_of(report, "off", "all") == (2, "plain")
    assert row_of(markdown(report), "lookup")[2:5] == ["100.0", "–", "–"]


def test_a_reply_without_decoding_leaves_the_others_of_its_category():
    alone = {**PLAIN[0], "tokens_per_second": None}

    report = a_report(OURS, [alone, *PLAIN[1:]])

    assert ratio_of(report, "off", "chat") == (2, "plain")
    assert row_of(markdown(report), "plain")[2] == "5.0"


def row_of(table, mode):
    """The cells of the first row of that mode."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return next(cells for cells in rows if len(cells) > 1 and cells[1] == mode)


def test_the_table_says_how_it_was_made():
    table = markdown(a_report(OURS, PLAIN))

    assert table.startswith(
        "Made by `python -m engine bench --peers` on 2026-01-02: Small 135M, 3 prompts, at most "
        "128 new tokens, temperature 0, medians of 3 repeats, 2 threads, A CPU, 2 cores, Linux; "
        "Draftlight 0.1.0, peer 1, torch 2.13.0, python 3.11.7.\n"
    )


def test_the_table_has_a_row_for_each_engine_and_mode():
    table = markdown(a_report(OURS, [*PLAIN, *LOOKUP]))

    assert row_of(table, "mode") == [
        "engine", "mode", "chat", "edit", "all", "same text as its own plain",
    ]  # fmt: skip
    assert row_of(table, "off") == ["Draftlight 0.1.0", "off", "10.0", "10.0", "10.0", "–"]
    assert row_of(table, "auto") == ["Draftlight 0.1.0", "auto", "15.0", "20.0", "20.0", "3 of 3"]
    assert row_of(table, "plain") == ["peer 1", "plain", "5.0", "5.0", "5.0", "–"]
    assert row_of(table, "lookup") == ["peer 1", "lookup", "2.5", "10.0", "2.5", "2 of 3"]


def test_the_table_shows_the_ratio_over_all_prompts_and_in_the_worst_category():
    table = markdown(a_report(OURS, [*PLAIN, *LOOKUP]))

    (line,) = [line for line in table.splitlines() if line.startswith("| auto ÷ peer 1")]
    assert [cell.strip() for cell in line.split("|")[2:4]] == [
        "4.00 (lookup)",
        "2.00 (edit, lookup)",
    ]


def test_paths_stay_out_of_the_table():
    runs = [*ours("off", 1, 1, 1), *ours("draft-model:/home/me/small.gguf", 1, 1, 1)]

    table = markdown(a_report(runs, PLAIN))

    assert "draft-model:small.gguf" in table
    assert "/home" not in table


def test_what_could_not_be_measured_stands_below():
    table = markdown(a_report(OURS, [], notes=["llama.cpp was left out: there is none."]))

    assert table.endswith("\n\nllama.cpp was left out: there is none.\n")
    assert "÷" not in table
