"""A native target whose weights are unpacked once and kept, for reading and writing in bulk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import torch

from engine.devices import fast_dtype
from engine.models.native.native_lm import NativeLM

if TYPE_CHECKING:
    from engine.models.causal_lm import CausalLM
    from engine.models.native.config import DecoderConfig

_MOST_OF_MEMORY = 1 / 3


def unpacked_once(lm: CausalLM) -> CausalLM:
    """The same model, its layers unpacked where memory has room for that; others as they are."""
    if not isinstance(lm, NativeLM):
        return lm
    decoder = lm.decoder
    dtype = fast_dtype(decoder.device)
    if _layers_bytes(decoder.config, dtype) < _MOST_OF_MEMORY * free_memory(decoder.device):
        layers = [decoder.unpacked(index) for index in range(len(decoder.layers))]
    else:
        layers = list(decoder.layers)
    kept = replace(decoder, unpacked=layers.__getitem__)
    return NativeLM(kept, vocabulary=lm.vocabulary, end_ids=lm.end_ids)


def free_memory(device: str) -> int:
    """Bytes that can still be taken on a device."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info()[0]
    return psutil.virtual_memory().available


def _layers_bytes(config: DecoderConfig, dtype: torch.dtype) -> int:
    """About what a decoder's layers take: up to 20 squares of the hidden size each."""
    return dtype.itemsize * 20 * config.hidden**2 * config.layers
