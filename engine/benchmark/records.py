"""A bench's figures as data: a record for each prompt and drafter, the file, the summary."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from engine import __version__
from engine.params import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.benchmark.prompts import Prompt
    from engine.benchmark.running import Plan, Sample
    from engine.engine import Engine

OFF = "off"
"""The drafter of the baseline."""


def record(
    engine: Engine,
    plan: Plan,
    prompt: Prompt,
    spec: str,
    samples: Sequence[Sample],
    baseline: Sequence[Sample],
) -> dict[str, Any]:
    """One prompt × drafter: the last sample's text and the medians of all samples' times."""
    sample, sampling = samples[-1], plan.params.sampling
    stats = sample.stats
    speeds = [each.stats.tokens_per_second for each in samples]
    plain_speed = median(each.stats.tokens_per_second for each in baseline)
    by_chance = sampling.rule is Rule.REJECTION and not sampling.is_greedy
    difference = first_difference(samples, baseline[0])
    return {
        "target": engine.source,
        "drafter": spec,
        "draft_length": plan.draft_length,
        "tree_nodes": plan.tree_nodes,
        "dtype": engine.dtype,
        "rule": str(sampling.rule),
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": sampling.seed,
        "max_new_tokens": plan.params.max_new_tokens,
        "stop_texts": list(plan.params.stop_texts),
        "prompt_id": prompt.id,
        "category": prompt.category,
        "text": sample.text,
        "ids": sample.ids,
        "origins": "".join(token.origin.letter for token in sample.tokens),
        "rounds": stats.rounds,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "mean_accepted_length": stats.mean_accepted_length,
        "acceptance_rate": stats.acceptance_rate,
        "survival_by_depth": list(stats.survival_by_depth),
        "prefill_seconds": median(each.stats.prefill_seconds for each in samples),
        "decode_seconds": median(each.stats.decode_seconds for each in samples),
        "tokens_per_second": median(speeds),
        "tokens_per_second_spread": [min(speeds), max(speeds)],
        "baseline_tokens_per_second": plain_speed,
        "speedup": median(speeds) / plain_speed,
        "identical_to_baseline": None if by_chance else difference is None,
        "first_difference": None if by_chance else difference,
        "finish_reason": str(sample.finished.reason),
        "bit_exact": engine.bit_exact,
    }


def first_difference(samples: Sequence[Sample], baseline: Sample) -> dict[str, Any] | None:
    """Where any sample leaves the plain reply, with the plain token's lead over its runner-up."""
    for sample in samples:
        ours, plain = sample.ids, baseline.ids
        if ours == plain:
            continue
        shorter = min(len(ours), len(plain))
        index = next((at for at in range(shorter) if ours[at] != plain[at]), shorter)
        return {
            "index": index,
            "id": ours[index] if index < len(ours) else None,
            "baseline_id": plain[index] if index < len(plain) else None,
            "margin": baseline.tokens[index].margin if index < len(plain) else None,
        }
    return None


def report(
    engine: Engine, runs: Sequence[dict[str, Any]], notes: Sequence[str], *, prompts_sha256: str
) -> dict[str, Any]:
    """The whole file: versions, machine, prompts, runs, and what could not be measured."""
    libraries = ("torch", "transformers", "accelerate")
    return {
        "versions": {
            "draftlight": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in libraries},
        },
        "device": engine.device,
        "threads": torch.get_num_threads(),
        "prompts_sha256": prompts_sha256,
        "runs": list(runs),
        "notes": list(notes),
    }


def summary(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Per category and drafter: median speed-up, mean accepted length, acceptance, same texts."""
    rows = ["category     drafter                     × plain  tokens/pass  accepted  same text"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in runs:
        for category in (each["category"], "all"):
            groups.setdefault((category, each["drafter"]), []).append(each)
    order = sorted(
        groups, key=lambda key: key[0] == "all"
    )  # categories as they come, all of them last
    for category, drafter in order:
        group = groups[category, drafter]
        drafted = sum(each["drafted"] for each in group)
        accepted = sum(each["accepted"] for each in group)
        rows.append(
            f"{category:<12} {short_spec(drafter):<26} "
            f"{median(each['speedup'] for each in group):>8.2f}  "
            f"{_overall_length(group):>11.2f}  "
            f"{f'{accepted / drafted:.0%}' if drafted else '–':>8}  "
            f"{sum(bool(each['identical_to_baseline']) for each in group)} of {len(group)}"
        )
    return rows


def short_spec(spec: str) -> str:
    """A spec without the folders of its path."""
    family, colon, path = spec.partition(":")
    return f"{family}{colon}{Path(path).name}" if colon else spec


def _overall_length(runs: Sequence[dict[str, Any]]) -> float:
    return sum(len(each["ids"]) for each in runs) / sum(each["rounds"] for each in runs)
