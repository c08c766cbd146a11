"""From a model's file or folder to a decoder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import torch

from engine.models.native.decoder import Decoder
from engine.models.native.graphs import graphed
from engine.models.native.layer import Layer, Norm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.models.native.config import DecoderConfig
    from engine.models.native.layer import RowSteps
    from engine.models.native.linear import Linear


class Source(Protocol):
    """Tensors by the names that GGUF gives them, whatever they are stored in.

    halves: in a head, element i turns with element i + width / 2, else with the one beside it.
    device: where its tensors are put. unpacks: whether `unpacked` gives another thing than
    `linear`.
    """

    config: DecoderConfig
    device: str
    halves: bool
    unpacks: bool

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        ...

    def vector(self, name: str) -> Tensor:
        """A norm's or bias's numbers, float32."""
        ...

    def linear(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """Matrices over one input as one projection, its outputs in `order`."""
        ...

    def unpacked(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """The same with weights in bfloat16."""
        ...

    def lookup(self, name: str) -> Callable[[Tensor], Tensor]:
        """Rows of a matrix: ids (n,) to (n, columns) float32."""
        ...

    def release(self) -> None:
        """Let go of what was read; it can be read again."""
        ...


def load_decoder(source: Source) -> Decoder:
    """A decoder from a source's tensors, on the source's device."""
    config = source.config
    embedding = "token_embd.weight"
    head = "output.weight" if source.has("output.weight") else embedding
    layers = [_layer(source, index) for index in range(config.layers)]
    steps = [graphed(layer) for layer in layers] if source.device == "cuda" else layers
    look_up = source.lookup(embedding)

    def unpacked(index: int) -> RowSteps:
        if not source.unpacks:
            return layers[index]
        layer = replace(layers[index], **_projections(source, index, source.unpacked))
        source.release()
        return layer

    decoder = Decoder(
        config=config,
        embed=look_up if config.embedding_scale == 1 else _times(look_up, config.embedding_scale),
        layers=steps,
        final_norm=Norm(source.vector("output_norm.weight"), config.norm_epsilon),
        head=source.linear([head]),
        head_rows=source.lookup(head),
        unpacked=unpacked,
        device=source.device,
    )
    source.release()
    return decoder


def _layer(source: Source, index: int) -> Layer:
    epsilon, prefix = source.config.norm_epsilon, f"blk.{index}."

    def norm(name: str) -> Norm:
        return Norm(source.vector(f"{prefix}{name}.weight"), epsilon)

    def norm_if_any(name: str) -> Norm | None:
        return norm(name) if source.has(f"{prefix}{name}.weight") else None

    return Layer(
        config=source.config,
        attention_norm=norm("attn_norm"),
        feed_forward_norm=norm("ffn_norm"),
        bias=_bias(source, prefix),
        head_norm=_head_norm(source, prefix),
        attention_out_norm=norm_if_any("post_attention_norm"),
        down_norm=norm_if_any("post_ffw_norm"),
        **_projections(source, index, source.linear),
    )


def _projections(
    source: Source, index: int, read: Callable[[Sequence[str], Tensor | None], Linear]
) -> dict[str, Linear]:
    """A layer's four projections; what a family stores in one is found in one."""
    prefix = f"blk.{index}."
    fused = source.has(prefix + "attn_qkv.weight")
    inputs = ["attn_qkv"] if fused else ["attn_q", "attn_k", "attn_v"]
    gates = ["ffn_gate", "ffn_up"] if source.has(prefix + "ffn_gate.weight") else ["ffn_up"]
    return {
        name: read([f"{prefix}{part}.weight" for part in parts], order)
        for name, parts, order in (
            ("queries_keys_values", inputs, _output_order(source)),
            ("attention_out", ["attn_output"], None),
            ("gate_up", gates, None),
            ("down", ["ffn_down"], None),
        )
    }


def _bias(source: Source, prefix: str) -> Tensor | None:
    """Biases of queries, keys and values: (heads, width)."""
    names = [f"{prefix}attn_{part}.bias" for part in "qkv"]
    if not source.has(names[0]):
        return None
    bias = torch.cat([source.vector(name) for name in names])
    order = _output_order(source)
    return (bias if order is None else bias[order]).view(-1, source.config.head_width)


def _head_norm(source: Source, prefix: str) -> Norm | None:
    """The norm over each query and key head, its weights spelled out for every head."""
    config = source.config
    if not source.has(prefix + "attn_q_norm.weight"):
        return None
    queries = source.vector(prefix + "attn_q_norm.weight").expand(config.heads, -1)
    keys = source.vector(prefix + "attn_k_norm.weight").expand(config.kv_heads, -1)
    weight = torch.cat([queries, keys])
    if source.halves:
        weight = weight[:, _head_order(config)]
    return Norm(weight, config.norm_epsilon)


def _head_order(config: DecoderConfig) -> Tensor:
    """Within a head, the order that puts elements side by side that turn together."""
    turning = config.kinds[0].rotation.width
    pairs = torch.arange(turning).view(2, -1).T.reshape(-1)
    return torch.cat([pairs, torch.arange(turning, config.head_width)])


def _output_order(source: Source) -> Tensor | None:
    """The order of all outputs of the first projection; None where they are in order."""
    if not source.halves:
        return None
    config = source.config
    every = torch.arange((config.heads + 2 * config.kv_heads) * config.head_width)
    heads = every.view(-1, config.head_width)
    turned = config.heads + config.kv_heads
    return torch.cat([heads[:turned, _head_order(config)], heads[turned:]]).reshape(-1)


def _times(look_up: Callable[[Tensor], Tensor], scale: float) -> Callable[[Tensor], Tensor]:
    return lambda ids: look_up(ids) * scale
