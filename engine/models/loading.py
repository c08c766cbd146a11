"""Which runner a model gets: the native decoder where it knows how, transformers otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.devices import AUTO, chosen_dtype
from engine.models.gguf import GgufFile
from engine.models.memory import memory_errors
from engine.models.native.config import knows
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from engine.models.transformers_lm import TransformersLM, load_model

if TYPE_CHECKING:
    from engine.models.catalog import ModelSource
    from engine.models.causal_lm import CausalLM

PACKED = "packed"
"""What a native model's dtype is called: the file's own codes, with bfloat16 between the layers."""


@dataclass(frozen=True, slots=True)
class LoadedLM:
    """A model ready to score, and in what form its weights are."""

    lm: CausalLM
    dtype: str


def load_lm(
    source: ModelSource, *, device: str, dtype: str, vocabulary: int, end_ids: frozenset[int]
) -> LoadedLM:
    """Load a model; with dtype "auto" the runner is ours to choose, else transformers.

    Raises:
        ModelError: the file or folder holds no usable model. OutOfMemory: it does not fit.
    """
    if source.is_gguf and device == "cpu" and dtype == AUTO:
        file = GgufFile(source.path)
        if knows(file):
            with memory_errors(device):
                decoder = load_decoder(file)
            return LoadedLM(NativeLM(decoder, vocabulary=vocabulary, end_ids=end_ids), PACKED)
    kind = chosen_dtype(dtype, device)
    model = load_model(source, device=device, dtype=kind)
    lm = TransformersLM(model, vocabulary=vocabulary, end_ids=end_ids)
    return LoadedLM(lm, str(kind).removeprefix("torch."))
