"""What `bench --peers` adds to a bench's report: the same work, done by other engines."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.peers.choosing import peers_here
from engine.peers.machine import machine_name
from engine.peers.measuring import Findings, PeerPrompt, Work, measure
from engine.peers.ratios import ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.benchmark import Plan, Prompt
    from engine.engine import Engine
    from engine.params import ReplyParams


def check_params(params: ReplyParams) -> None:
    """See, before anything is measured, that peers can be asked for the same.

    Raises:
        EngineError: what was chosen has no counterpart there.
    """
    sampling = params.sampling
    if not sampling.is_greedy or sampling.repetition_penalty != 1.0 or params.stop_texts:
        raise EngineError(
            "Peers are measured at temperature 0, without a repetition penalty or stop texts. "
            "Leave these options out, or leave out --peers."
        )


def find_program(name: str) -> Path:
    """The program of that name or path.

    Raises:
        EngineError: there is none.
    """
    found = shutil.which(name)
    if found is None:
        raise EngineError(f"There is no program {name} that can be run.")
    return Path(found)


def add_peers(
    engine: Engine,
    plan: Plan,
    report: dict[str, Any],
    *,
    program: Path | None,
    told: Callable[[str, int, int], None],
) -> None:
    """Measure the peers and put them into the report, as far as it gets: also when interrupted.

    program: llama.cpp's server; None to look for it on the path.
    """
    work = _work(engine, plan)
    found = Findings(work)
    try:
        peers = peers_here(engine, work, plan.specs, program, found.notes)
        measure(peers, work, found, told)
    finally:
        report["peers"] = {
            "date": date.today().isoformat(),
            "machine": machine_name(engine.device),
            "target": engine.name,
            "max_new_tokens": work.max_new_tokens,
            "repeats": work.repeats,
            "runs": found.records(),
            "notes": found.notes,
        }
        report["peers"]["ratios"] = ratios(report)


def _work(engine: Engine, plan: Plan) -> Work:
    prompts = [_prompt(engine, prompt) for prompt in plan.prompts]
    return Work(engine.source, prompts, plan.params.max_new_tokens, plan.repeats)


def _prompt(engine: Engine, prompt: Prompt) -> PeerPrompt:
    # A session puts what the system says first, wherever it stands.
    turns = sorted(prompt.messages, key=lambda turn: turn.role != "system")
    ids = tuple(engine.prompt_ids(turns))
    return PeerPrompt(prompt.id, prompt.category, ids, room=engine.context_length - len(ids))
