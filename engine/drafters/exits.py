"""Where to leave a model early: how far each exit's drafts hold, and what that gains."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.draft import Draft
from engine.kept_costs import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.drafters.family import Sample
    from engine.models.causal_lm import CausalLM
    from engine.models.kv_memo import KVMemo

_MOST_TRIED = 12
_LONGEST_DRAFT = 16
_STEPS_TIMED = 3


def best_exit(lm: CausalLM, sample: Sample) -> Trial | None:
    """The exit that gains most by the sample; None where time was up before one was found.

    The latest comes first. An earlier one costs less and is right no more often, so it is tried
    only if it would gain more if it were right as often as the one before it.
    """
    ratios = sample.costs.ratios(len(sample.ids))
    prompt = lm.new_memo()
    for _ in lm.read(prompt, sample.ids[: sample.prompt_tokens]):
        pass
    best, rate, holds = None, 1.0, [1.0] * _LONGEST_DRAFT
    for layers in _exits(lm.num_layers):
        if _rate(holds, layers / lm.num_layers, ratios) <= rate:
            continue
        if sample.is_over:
            return None if best is None else Trial(str(best))
        cut = lm.first_layers(layers)
        memo = cut.memo_behind(prompt) or cut.new_memo()
        holds = _holds(is_right(cut, memo, sample))
        its_rate = _rate(holds, _step_cost(cut, memo, sample), ratios)
        if its_rate > rate:
            best, rate = layers, its_rate
    return Trial(None if best is None else str(best))


def _exits(layers: int) -> range:
    """All of them, or a dozen; the latest first."""
    step = -(-layers // _MOST_TRIED)
    return range(layers - step, 0, -step)


def is_right(cut: CausalLM, memo: KVMemo, sample: Sample) -> Tensor:
    """(written,) whether the cut would have chosen the token that the whole model wrote.

    The memo then holds all but the last.
    """
    prompt, written = sample.ids[: sample.prompt_tokens], sample.ids[sample.prompt_tokens :]
    scores = cut.score(memo, prompt, Draft.chain(written[:-1], "sample"))
    scores.keep(range(len(written) - 1))
    return scores.logits.argmax(-1).cpu() == torch.tensor(written)


def _holds(is_right: Tensor) -> list[float]:
    """Per depth 1, 2, ... how often a draft from some place of the text holds so far."""
    shares, holding = list[float](), is_right
    for depth in range(1, min(_LONGEST_DRAFT, len(is_right)) + 1):
        shares.append(float(holding.double().mean()))
        holding = holding[:-1] & is_right[depth:]
    return shares


def _step_cost(cut: CausalLM, memo: KVMemo, sample: Sample) -> float:
    """What a drafted token costs, in rounds of one row."""
    seconds = list[float]()
    for _ in range(_STEPS_TIMED):
        began = sample.clock()
        int(cut.score(memo, sample.ids).logits[0].argmax())
        seconds.append(sample.clock() - began)
    return min(seconds) / sample.costs.seconds(1, len(sample.ids))


def _rate(holds: Sequence[float], step_cost: float, ratios: Sequence[float]) -> float:
    """Tokens in the time of a plain round at the best draft length; 1 is plain decoding."""
    rate = tokens = 1.0
    for length, share in enumerate(holds, start=1):
        tokens += share
        rate = max(rate, tokens / (ratios[length] + length * step_cost))
    return rate
