"""What the tests of the reference have in common."""

from __future__ import annotations

from dataclasses import replace

import torch

VOCABULARY, HIDDEN, DRAFTED = 50, 32, 20
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2])


def inputs_of(head, seen):
    """What a head reads at every position but the last, whose next token is not known."""
    taps = getattr(head, "taps_of", lambda states: states[-1][0])(seen.hidden_states)
    return taps[:-1], IDS[1:]


def nulled(head, *endings, **others):
    """The same head with the weights of these endings zero and others replaced."""
    weights = {
        name: torch.zeros_like(value) if name.endswith(endings) else value
        for name, value in head.weights.items()
    }
    return replace(head, weights=weights | others)
