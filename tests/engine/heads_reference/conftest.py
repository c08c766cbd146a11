"""A target deep enough for three taps, and what it sees."""

from __future__ import annotations

import pytest
import torch

from tests.engine import models_for_tests as tiny
from tests.engine.heads_reference.given import IDS, VOCABULARY


@pytest.fixture(scope="module")
def target():
    return tiny.llama(1, vocabulary=VOCABULARY, layers=8)


@pytest.fixture(scope="module")
def seen(target):
    """The target's states for IDS, and its logits."""
    with torch.no_grad():
        return target(IDS[None], output_hidden_states=True)
