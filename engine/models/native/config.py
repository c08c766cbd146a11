"""What tells one family of decoders from another, read from a GGUF file's metadata."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import ModelError

if TYPE_CHECKING:
    from engine.models.gguf import GgufFile

_ARCHITECTURES = frozenset({"llama"})
_TENSORS = re.compile(
    r"(token_embd|output|output_norm|rope_freqs)\.weight"
    r"|blk\.\d+\.(attn_(norm|q|k|v|output)|ffn_(norm|gate|up|down))\.weight"
)


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """A decoder's sizes and constants; widths in elements."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    context_length: int
    norm_epsilon: float
    rope_base: float

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.heads // self.kv_heads


def knows(file: GgufFile) -> bool:
    """Whether the native decoder can run this file: its family, and nothing in it beyond that.

    Biases, experts, sliding windows and stretched rotations are left to transformers.
    """
    family = file.metadata.get("general.architecture")
    if family not in _ARCHITECTURES or not all(map(_TENSORS.fullmatch, file.tensors)):
        return False
    config = read_config(file)
    return (
        file.metadata.get(f"{family}.rope.scaling.type", "none") == "none"
        and not file.metadata.get(f"{family}.attention.sliding_window")
        and file.metadata.get(f"{family}.rope.dimension_count", config.head_width)
        == config.head_width
    )


def read_config(file: GgufFile) -> DecoderConfig:
    """The config of a GGUF file.

    Raises:
        ModelError: an architecture that the native decoder does not know, or a missing number.
    """
    data = file.metadata
    family = data.get("general.architecture")

    def number(key: str, otherwise: float | None = None) -> float:
        value = data.get(f"{family}.{key}", otherwise)
        if not isinstance(value, int | float):
            raise ModelError(f"{file.path.name} does not say its {key}.")
        return value

    hidden, heads = int(number("embedding_length")), int(number("attention.head_count"))
    return DecoderConfig(
        hidden=hidden,
        layers=int(number("block_count")),
        heads=heads,
        kv_heads=int(number("attention.head_count_kv", heads)),
        head_width=int(number("attention.key_length", hidden // heads)),
        vocabulary=file.tensors["token_embd.weight"].shape[0],
        context_length=int(number("context_length")),
        norm_epsilon=number("attention.layer_norm_rms_epsilon"),
        rope_base=number("rope.freq_base", 10_000.0),
    )
