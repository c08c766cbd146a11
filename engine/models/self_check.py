"""Whether a model's rows have the same bits alone, in a chain and in a tree, here and now."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch

from engine.draft import ROOT, Draft

if TYPE_CHECKING:
    from engine.models.causal_lm import CausalLM

_TREES = 3
_MOST_NODES = 12
_LONGEST_PREFIX = 200


def rows_are_bit_exact(lm: CausalLM, seed: int = 0) -> bool:
    """Score random trees behind random prefixes, each row alone too, and compare every bit.

    A sample and no proof: kernels that depend on the rows beside them have so far shown it at once.
    """
    generator = random.Random(seed)
    longest = min(_LONGEST_PREFIX, lm.context_length - _MOST_NODES - 1)
    ids = [generator.randrange(lm.vocabulary) for _ in range(longest)]
    memo, alone_memo = lm.new_memo(), lm.new_memo()
    for length in sorted(generator.sample(range(1, longest), min(_TREES, longest - 1))):
        prefix, draft = ids[:length], _random_tree(generator, lm.vocabulary)
        scores = lm.score(memo, prefix, draft)
        scores.keep()
        for node in range(ROOT, len(draft)):
            alone = lm.score(alone_memo, [*prefix, *draft.path_ids(node)])
            alone.keep()
            if not torch.equal(alone.logits[0], scores.logits[1 + node]):
                return False
    return _prompts_are_bit_exact(lm, ids)


def _prompts_are_bit_exact(lm: CausalLM, ids: list[int]) -> bool:
    """Whether a prompt read in two parts leaves what it leaves in one."""
    whole, parts = lm.new_memo(), lm.new_memo()
    for memo, lengths in ((whole, [len(ids)]), (parts, [2 * len(ids) // 3, len(ids)])):
        for length in lengths:
            for _ in lm.read(memo, ids[:length]):
                pass
    return torch.equal(lm.score(whole, ids).logits, lm.score(parts, ids).logits)


def _random_tree(generator: random.Random, vocabulary: int) -> Draft:
    count = generator.randrange(3, _MOST_NODES + 1)
    return Draft(
        ids=tuple(generator.randrange(vocabulary) for _ in range(count)),
        parents=tuple(generator.randrange(ROOT, node) for node in range(count)),
        drafters=("self-check",) * count,
        q_rows=(None,) * count,
        q=(None,) * count,
    )
