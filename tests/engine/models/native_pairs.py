"""A reference model and the native decoder of the same GGUF file, and how far apart they are."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from engine.draft import Draft
from engine.models.gguf import GgufFile
from engine.models.native.gguf_source import GgufSource, knows
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from tests.engine.models.gguf_models import VOCABULARY
from tests.engine.models.gguf_writer import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel

ROWS_OF_A_CHAIN = 40


class Pair(NamedTuple):
    """The weights of both are what the file holds."""

    model: Any
    lm: NativeLM


def pair(path: Path, model: PreTrainedModel, kind: str | Callable[[str], str] = "F32") -> Pair:
    """Write the model and read it."""
    return Pair(model, native(contents(model, kind).write(path)))


def native(path: Path) -> NativeLM:
    """The native decoder of a file that it knows."""
    file = GgufFile(path)
    assert knows(file)
    return NativeLM(load_decoder(GgufSource(file)), vocabulary=VOCABULARY, end_ids=frozenset())


def ids_of(count: int, seed: int = 0) -> list[int]:
    """Any text."""
    return random.Random(seed).choices(range(VOCABULARY), k=count)


@torch.inference_mode()
def reference(model: Any, ids: Sequence[int]) -> Tensor:
    """Logits of every row, by transformers."""
    return model(torch.tensor([list(ids)])).logits[0]


def chain_logits(lm: NativeLM, ids: Sequence[int]) -> Tensor:
    """Logits of a text's last rows, all of them in one pass."""
    split = len(ids) - min(len(ids), ROWS_OF_A_CHAIN) + 1
    return lm.score(lm.new_memo(), ids[:split], Draft.chain(ids[split:], "x")).logits


def error(ours: Tensor, theirs: Tensor) -> float:
    """Relative, root mean square."""
    return ((ours.float() - theirs).norm() / theirs.norm()).item()


def distance(model: Any, lm: NativeLM, length: int = 150) -> float:
    """How far the native decoder's logits of a text's last rows are from the model's."""
    ids = ids_of(length)
    ours = chain_logits(lm, ids)
    return error(ours, reference(model, ids)[-len(ours) :])
