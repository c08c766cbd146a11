"""Tiny random models of the families that come in GGUF files, shaped as real ones are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

VOCABULARY = 160

_ROPE = {"rope_type": "default", "rope_theta": 1_000.0}
_LLAMA_3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_LINEAR_ROPE = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}


def llama(**changes: Any) -> LlamaForCausalLM:
    """Its files have the elements side by side that turn together."""
    return _random(LlamaForCausalLM(LlamaConfig(**_sizes(changes))))


def mistral(**changes: Any) -> MistralForCausalLM:
    """Heads whose widths don't add up to the hidden size, as Nemo has them."""
    sizes = _sizes({"head_dim": 24, "sliding_window": None, **changes})
    return _random(MistralForCausalLM(MistralConfig(**sizes)))


def qwen2(**changes: Any) -> Qwen2ForCausalLM:
    """Biases on queries, keys and values."""
    return _random(Qwen2ForCausalLM(Qwen2Config(**_sizes(changes))))


def qwen3(**changes: Any) -> Qwen3ForCausalLM:
    """A norm over each query and key head; wide heads."""
    return _random(Qwen3ForCausalLM(Qwen3Config(**_sizes({"head_dim": 32, **changes}))))


def gemma3(
    *, local_base: float = 10_000.0, stretch: float = 8.0, **changes: Any
) -> Gemma3ForCausalLM:
    """Sliding layers, and a full one in sixth place, which alone turns at a stretched pace."""
    full = {"rope_type": "linear", "factor": stretch, "rope_theta": 1_000_000.0}
    defaults = {
        "num_hidden_layers": 7,
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "sliding_window": 24,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "full_attention": full if stretch != 1 else {**full, "rope_type": "default"},
            "sliding_attention": {"rope_type": "default", "rope_theta": local_base},
        },
    }
    return _random(Gemma3ForCausalLM(Gemma3TextConfig(**_sizes({**defaults, **changes}))))


def phi3(*, turning: float = 1.0, window: int | None = 40, **changes: Any) -> Phi3ForCausalLM:
    """Fused projections, a window in every layer; heads may turn in part."""
    rope = {**_ROPE, "partial_rotary_factor": turning}
    sizes = _sizes({"rope_parameters": rope, "sliding_window": window, **changes})
    return _random(Phi3ForCausalLM(Phi3Config(**sizes)))


FAMILIES = {
    "llama": llama,
    "llama, one key head": lambda: llama(num_key_value_heads=1),
    "llama, a key head for each query head": lambda: llama(num_key_value_heads=4),
    "llama, biased": lambda: without_output_biases(llama(attention_bias=True)),
    "llama 3": lambda: llama(rope_parameters=_LLAMA_3_ROPE, tie_word_embeddings=True),
    "llama, stretched": lambda: llama(rope_parameters=_LINEAR_ROPE),
    "mistral": mistral,
    "mistral, one key head": lambda: mistral(num_key_value_heads=1, rms_norm_eps=0.3),
    "qwen2": lambda: qwen2(tie_word_embeddings=True),
    "qwen2, one key head": lambda: qwen2(num_key_value_heads=1),
    "qwen3": qwen3,
    "qwen3, one key head": lambda: qwen3(num_key_value_heads=1, rms_norm_eps=0.3),
    "gemma3": gemma3,
    "gemma3, one key head": lambda: gemma3(num_key_value_heads=1, rms_norm_eps=0.3),
    "phi3": phi3,
    "phi3, one key head, turning in part": lambda: phi3(num_key_value_heads=1, turning=0.75),
}
"""By what tells them apart; each is made anew at a call, and the same each time."""


def without_output_biases(model: Any) -> LlamaForCausalLM:
    """Biases where Qwen2 has them; the native decoder knows none elsewhere."""
    for layer in model.model.layers:
        layer.self_attn.o_proj.bias = None
    return model


def _sizes(changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
        "rope_parameters": _ROPE,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        **changes,
    }


def _random(model: PreTrainedModel) -> Any:
    """Weights large enough for every part to matter, norms and biases among them."""
    generator = torch.Generator().manual_seed(5)
    model.float().eval()
    # Gemma's norms multiply by one more than their weights.
    plain = 0.0 if model.config.model_type == "gemma3_text" else 1.0
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name:
                sharper = 0.2 if "q_norm" in name or "k_norm" in name else 0.0
                weight.copy_(plain + sharper + 0.2 * noise)
            elif weight.dim() == 1:
                weight.copy_(0.5 * noise)
            else:
                gain = 1.1 if any(part in name for part in ("q_proj", "k_proj", "qkv")) else 1.0
                weight.copy_(noise * gain * weight.shape[1] ** -0.5)
    return model
