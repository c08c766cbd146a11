"""Every prompt with every drafter in one process, as data: costs, and whether texts agree."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import torch

from engine import __version__
from engine.errors import EngineError
from engine.events import Finished, Round, Token
from engine.params import ReplyParams, Rule
from engine.planning import Planner
from engine.speculation import Drafting
from engine.templates import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.engine import Engine
    from engine.stats import ReplyStats

OFF = "off"
_ROLES = ("system", "user", "assistant")
_WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line of a prompts file: a conversation that ends with a user's turn."""

    id: str
    category: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: `drafters` as specs; `off` is run whether named or not.

    draft_length: None for as far as it pays.
    """

    prompts: Sequence[Prompt]
    drafters: Sequence[str]
    params: ReplyParams
    draft_length: int | None
    tree_nodes: int
    repeats: int = 1

    @property
    def specs(self) -> tuple[str, ...]:
        """The drafters to run, the baseline first."""
        return tuple(dict.fromkeys((OFF, *self.drafters)))


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one prompt with one drafter."""

    tokens: tuple[Token, ...]
    text: str
    finished: Finished

    @property
    def ids(self) -> list[int]:
        """The reply's ids, the end of turn included."""
        return [token.id for token in self.tokens]

    @property
    def stats(self) -> ReplyStats:
        """Its numbers."""
        return self.finished.stats


def read_prompts(path: Path) -> tuple[list[Prompt], str]:
    """The prompts of a JSONL file, and the SHA-256 of its bytes.

    Raises:
        EngineError: no such file, or a line that is no prompt; with its number and what is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EngineError(f"The prompts file {path} can't be read: {error.strerror}.") from error
    lines = content.decode("utf-8", errors="replace").splitlines()
    prompts = [
        _prompt(line, f"{path.name}, line {at}") for at, line in enumerate(lines, 1) if line.strip()
    ]
    if not prompts:
        raise EngineError(f"The prompts file {path} holds no prompt.")
    return prompts, hashlib.sha256(content).hexdigest()


def run(engine: Engine, plan: Plan, told: Callable[[str, int, int], None]) -> list[dict[str, Any]]:
    """Every prompt with every drafter, repeats interleaved after a warm-up; one record each.

    told: (what runs next, runs done, runs in all), for a progress bar.

    Raises:
        EngineError: a drafter that does not fit, a prompt that is too long, no memory left.
    """
    for spec in plan.specs:
        engine.drafter(spec)  # what does not fit is said before anything runs
    for spec in plan.specs:
        told(f"warm-up, {spec}", 0, 0)
        _sample(engine, plan, plan.prompts[0], spec, warm_up=True)
    cells = [(prompt, spec) for prompt in plan.prompts for spec in plan.specs]
    samples: dict[tuple[str, str], list[Sample]] = {}
    total = plan.repeats * len(cells)
    for repeat in range(plan.repeats):
        for at, (prompt, spec) in enumerate(cells):
            told(f"{prompt.id}, {spec}", repeat * len(cells) + at, total)
            samples.setdefault((prompt.id, spec), []).append(_sample(engine, plan, prompt, spec))
    told("done", total, total)
    return [
        _record(engine, plan, prompt, spec, samples[prompt.id, spec], samples[prompt.id, OFF])
        for prompt, spec in cells
    ]


def report(engine: Engine, runs: list[dict[str, Any]], prompts_sha256: str) -> dict[str, Any]:
    """The whole file: versions, machine, prompts and runs."""
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
        "runs": runs,
    }


def summary(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Per category and drafter: median speed-up, mean accepted length, acceptance, same texts."""
    rows = ["category     drafter                     × plain  tokens/pass  accepted  same text"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in runs:
        for category in (record["category"], "all"):
            groups.setdefault((category, record["drafter"]), []).append(record)
    order = sorted(
        groups, key=lambda key: key[0] == "all"
    )  # categories as they come, all of them last
    for category, drafter in order:
        same = [record for record in groups[category, drafter] if record["identical_to_baseline"]]
        drafted = sum(record["drafted"] for record in groups[category, drafter])
        accepted = sum(record["accepted"] for record in groups[category, drafter])
        rows.append(
            f"{category:<12} {short_spec(drafter):<26} "
            f"{median(record['speedup'] for record in groups[category, drafter]):>8.2f}  "
            f"{_overall_length(groups[category, drafter]):>11.2f}  "
            f"{f'{accepted / drafted:.0%}' if drafted else '–':>8}  "
            f"{len(same)} of {len(groups[category, drafter])}"
        )
    return rows


def short_spec(spec: str) -> str:
    """A spec without the folders of its path."""
    family, colon, path = spec.partition(":")
    return f"{family}{colon}{Path(path).name}" if colon else spec


def _sample(
    engine: Engine, plan: Plan, prompt: Prompt, spec: str, *, warm_up: bool = False
) -> Sample:
    """One reply in a conversation of its own, by a drafter that has seen nothing yet."""
    session = engine.new_session()
    drafter, planner = engine.drafter(spec), Planner(engine.costs)
    session.drafting = Drafting(drafter, plan.draft_length, plan.tree_nodes, planner)
    *before, last = prompt.messages
    system = [turn.content for turn in before if turn.role == "system"]
    session.system_prompt = "\n\n".join(system)
    session.messages = [turn for turn in before if turn.role != "system"]
    params = plan.params
    if warm_up:
        params = ReplyParams(params.sampling, _WARM_UP_TOKENS, params.stop_texts)
    tokens: list[Token] = []
    for event in session.reply(last.content, params, threading.Event()):
        match event:
            case Round():
                tokens += event.tokens
            case Finished():
                text = "".join(token.text for token in tokens) + event.text
                return Sample(tuple(tokens), text, event)
            case _:
                pass
    raise AssertionError("A reply ended without saying so.")


def _record(
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
    difference = _first_difference(samples, baseline[0])
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


def _first_difference(samples: Sequence[Sample], baseline: Sample) -> dict[str, Any] | None:
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


def _prompt(line: str, place: str) -> Prompt:
    try:
        data = cast("dict[str, Any]", json.loads(line))
        messages = tuple(Message(turn["role"], turn["content"]) for turn in data["messages"])
        prompt = Prompt(str(data["id"]), str(data["category"]), messages)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EngineError(
            f'{place}: expected {{"id", "category", "messages": [{{"role", "content"}}]}}.'
        ) from error
    known = all(turn.role in _ROLES and isinstance(turn.content, str) for turn in messages)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not known or not messages or messages[-1].role != "user":
        raise EngineError(f"{place}: the messages must be texts and end with a user's turn.")
    return prompt


def _overall_length(runs: Sequence[dict[str, Any]]) -> float:
    return sum(len(record["ids"]) for record in runs) / sum(record["rounds"] for record in runs)
