"""Which runner a model gets: the native decoder where it knows how, transformers otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.devices import AUTO, PACKED, PACKED_BITS, chosen_dtype, fast_dtype
from engine.errors import ModelError
from engine.models.gguf import GgufFile
from engine.models.memory import memory_errors
from engine.models.native.folder_source import FolderSource, knows_folder
from engine.models.native.gguf_source import GgufSource, knows
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from engine.models.transformers_lm import TransformersLM
from engine.models.transformers_loading import load_model

if TYPE_CHECKING:
    from engine.models.catalog import ModelSource
    from engine.models.causal_lm import CausalLM
    from engine.models.native.loading import Source

_BFLOAT16 = "bfloat16"


@dataclass(frozen=True, slots=True)
class LoadedLM:
    """A model ready to score, and in what form its weights are. native: it runs on our decoder."""

    lm: CausalLM
    dtype: str
    native: bool


def load_lm(
    source: ModelSource, *, device: str, dtype: str, vocabulary: int, end_ids: frozenset[int]
) -> LoadedLM:
    """Load a model, on the native decoder where that computes what was asked for.

    Raises:
        ModelError: the file or folder holds no usable model, or its weights can't be packed.
        OutOfMemory: it does not fit.
    """
    reason = why_not_packed(source, device, dtype)
    if reason is not None:
        raise ModelError(
            f"{source.name} can't be loaded with the dtype {dtype}, since {reason}. Choose auto."
        )
    found = _native_source(source, device, dtype)
    if found is not None:
        tensors, name, ends = found
        with memory_errors(device):
            decoder = load_decoder(tensors)
        lm = NativeLM(decoder, vocabulary=vocabulary, end_ids=end_ids | ends)
        return LoadedLM(lm, name, native=True)
    kind = chosen_dtype(dtype, device)
    model = load_model(source, device=device, dtype=kind)
    lm = TransformersLM(model, vocabulary=vocabulary, end_ids=end_ids)
    return LoadedLM(lm, str(kind).removeprefix("torch."), native=False)


def why_not_packed(source: ModelSource, device: str, dtype: str) -> str | None:
    """Why a model can't have a dtype that only the native decoder has; None where it can."""
    if dtype == PACKED:
        return _why_not_in_codes(source, device)
    if dtype not in PACKED_BITS:
        return None
    if source.is_gguf:
        return "the weights of a GGUF file keep the form that they have there"
    if device != "cpu":
        return "weights are packed for the CPU alone"
    return None if knows_folder(source.path) else _UNKNOWN


_UNKNOWN = "Draftlight's own decoder does not know models of its kind"


def _why_not_in_codes(source: ModelSource, device: str) -> str | None:
    if not source.is_gguf:
        return "a folder of safetensors holds no codes to keep"
    if device not in ("cpu", "cuda"):
        return f"there is no product for them on {device}"
    return None if knows(GgufFile(source.path)) else _UNKNOWN


def _native_source(
    source: ModelSource, device: str, dtype: str
) -> tuple[Source, str, frozenset[int]] | None:
    """What the native decoder would read, what its dtype is called, and ids that end a turn."""
    if source.is_gguf:
        # On a GPU by name alone, until it has been measured against transformers there.
        if dtype != PACKED and (dtype, device) != (AUTO, "cpu"):
            return None
        file = GgufFile(source.path)
        return (GgufSource(file, device), PACKED, frozenset()) if knows(file) else None
    if device != "cpu":
        return None
    bits = PACKED_BITS.get(dtype)
    if bits is None:
        asked = dtype in (AUTO, _BFLOAT16) and fast_dtype(device) == torch.bfloat16
        if not asked or not knows_folder(source.path):
            return None
    folder = FolderSource(source.path, bits=bits)
    return folder, _BFLOAT16 if bits is None else dtype, folder.end_ids
