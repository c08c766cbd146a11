"""Transformers models as GGUF files, the way llama.cpp's converter writes them.

Keys, tensor names and block formats are the `gguf` package's own; what differs between families
follows llama.cpp's conversion (facts only). Nothing here knows the engine's reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFValueType, Keys
from gguf.quants import dequantize, quantize

from tests.engine.models import k_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel

    Bytes = NDArray[np.uint8]

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "mistral": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
    "phi3": gguf.MODEL_ARCH.PHI3,
}
"""By transformers' names."""

_VALUE_TYPES = {
    bool: GGUFValueType.BOOL,
    int: GGUFValueType.UINT32,
    float: GGUFValueType.FLOAT32,
    str: GGUFValueType.STRING,
    list: GGUFValueType.ARRAY,
}


@dataclass
class Contents:
    """What a file will hold, to be altered before it is written.

    values: by key; tensors: by name, blocks (..., bytes) and their type.
    """

    architecture: str
    values: dict[str, Any]
    tensors: dict[str, tuple[Bytes, str]]

    def write(self, path: Path) -> Path:
        """Write the file."""
        writer = gguf.GGUFWriter(path, self.architecture)
        for key, value in self.values.items():
            kind = _VALUE_TYPES[type(value)]
            if kind is GGUFValueType.UINT32 and not 0 <= value < 2**32:
                kind = GGUFValueType.INT64
            writer.add_key_value(key, value, kind)
        for name, (blocks, kind) in self.tensors.items():
            writer.add_tensor(name, blocks, raw_dtype=GGMLQuantizationType[kind])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path


def contents(model: PreTrainedModel, kind: str | Callable[[str], str] = "F32") -> Contents:
    """A model's file; the model's own weights become what the file holds.

    kind: the block type of matrices, or of the one with the given name in the file.
    """
    arch = ARCHITECTURES[model.config.model_type]
    names = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    tensors = dict(_extra_tensors(model))
    for name, weight in model.named_parameters():
        target = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert target is not None
        chosen = kind if isinstance(kind, str) else kind(target)
        # Converters leave vectors in float32, whatever the rest is in.
        tensors[target] = _stored(model, name, weight, "F32" if weight.dim() == 1 else chosen)
    return Contents(gguf.MODEL_ARCH_NAMES[arch], _values(model), tensors)


def some_blocks(weights: Tensor, kind: str) -> Bytes:
    """Weights (..., columns) as blocks of a type, (..., bytes)."""
    if kind in k_blocks.KINDS:
        return k_blocks.quantise(weights.numpy(), kind)
    return quantize(weights.numpy(), GGMLQuantizationType[kind]).view(np.uint8)


def exact(blocks: Bytes, kind: str) -> Tensor:
    """The numbers in blocks, float32, by the package's own dequantisation."""
    return torch.from_numpy(np.array(dequantize(blocks, GGMLQuantizationType[kind])))


def _stored(
    model: PreTrainedModel, name: str, weight: torch.nn.Parameter, kind: str
) -> tuple[Bytes, str]:
    shift = 1.0 if model.config.model_type == "gemma3_text" and weight.dim() == 1 else 0.0
    blocks = some_blocks(weight.detach() + shift, kind)
    with torch.no_grad():
        weight.copy_(exact(blocks, kind) - shift)
    config = model.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    part = name.split(".")[-2]
    if part in heads and config.model_type in ("llama", "mistral"):
        rows = blocks.reshape(len(weight), -1)
        blocks = rows[_pairs_together(len(weight), heads[part])].reshape(blocks.shape)
    return blocks, kind


def _pairs_together(rows: int, heads: int) -> NDArray[np.int64]:
    """The order in which, in each head, row i and the one half a head later are neighbours."""
    return np.arange(rows).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)


def _extra_tensors(model: PreTrainedModel) -> dict[str, tuple[Bytes, str]]:
    """What each pair's speed is divided by, where Llama 3's rule stretches them unevenly."""
    rope = _rope(model)
    if rope["rope_type"] != "llama3":
        return {}
    width = model.config.head_dim
    plain = rope["rope_theta"] ** -(torch.arange(0, width, 2).double() / width)
    divisors = (plain / model.model.rotary_emb.inv_freq.double()).float()
    return {"rope_freqs.weight": (some_blocks(divisors, "F32"), "F32")}


def _rope(model: PreTrainedModel) -> dict[str, Any]:
    parameters = model.config.rope_parameters
    return parameters.get("full_attention", parameters)


def _values(model: PreTrainedModel) -> dict[str, Any]:
    config = model.config
    values: dict[str, Any] = {
        Keys.LLM.BLOCK_COUNT: config.num_hidden_layers,
        Keys.LLM.CONTEXT_LENGTH: config.max_position_embeddings,
        Keys.LLM.EMBEDDING_LENGTH: config.hidden_size,
        Keys.LLM.FEED_FORWARD_LENGTH: config.intermediate_size,
        Keys.Attention.HEAD_COUNT: config.num_attention_heads,
        Keys.Attention.HEAD_COUNT_KV: config.num_key_value_heads,
        Keys.Attention.LAYERNORM_RMS_EPS: config.rms_norm_eps,
        Keys.Rope.FREQ_BASE: float(_rope(model)["rope_theta"]),
        **_values_of_the_family(model),
        Keys.Tokenizer.MODEL: "gpt2",
        Keys.Tokenizer.LIST: [f"t{index}" for index in range(config.vocab_size)],
        Keys.Tokenizer.BOS_ID: 0,
        Keys.Tokenizer.EOS_ID: 1,
        Keys.Tokenizer.PAD_ID: 2,
    }
    name = gguf.MODEL_ARCH_NAMES[ARCHITECTURES[config.model_type]]
    return {key.format(arch=name): value for key, value in values.items()}


def _values_of_the_family(model: PreTrainedModel) -> dict[str, Any]:
    config, rope = model.config, _rope(model)
    if config.model_type == "phi3":
        turning = int(rope["partial_rotary_factor"] * config.hidden_size)
        return {
            Keys.Rope.DIMENSION_COUNT: turning // config.num_attention_heads,
            Keys.Rope.SCALING_ORIG_CTX_LEN: config.original_max_position_embeddings,
            Keys.Attention.SLIDING_WINDOW: config.sliding_window or 0,
        }
    values: dict[str, Any] = {}
    if (width := getattr(config, "head_dim", None)) is not None:
        values |= {Keys.Attention.KEY_LENGTH: width, Keys.Attention.VALUE_LENGTH: width}
    if rope["rope_type"] == "linear":
        values |= {Keys.Rope.SCALING_TYPE: "linear", Keys.Rope.SCALING_FACTOR: rope["factor"]}
    if config.model_type in ("llama", "mistral"):
        values |= {Keys.LLM.VOCAB_SIZE: config.vocab_size, Keys.Rope.DIMENSION_COUNT: width}
    if config.model_type == "gemma3_text":
        local = config.rope_parameters["sliding_attention"]["rope_theta"]
        values |= {
            Keys.Attention.SLIDING_WINDOW: config.sliding_window,
            Keys.Rope.FREQ_BASE_SWA: float(local),
        }
    return values
