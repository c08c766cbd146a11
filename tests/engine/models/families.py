"""A tiny random model of each family that the native decoder reads from folders."""

from __future__ import annotations

from typing import Any

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

VOCABULARY = 160
WINDOW = 40
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _llama(**options):
    return LlamaForCausalLM(LlamaConfig(**_sizes(**options)))


def _mistral(**options):
    return MistralForCausalLM(MistralConfig(sliding_window=WINDOW, **_sizes(**options)))


def _qwen2(**options):
    return Qwen2ForCausalLM(Qwen2Config(**_sizes(**options)))


def _qwen3(**options):
    return Qwen3ForCausalLM(Qwen3Config(**_sizes(head_dim=24, **options)))


def _phi3(**options):
    return Phi3ForCausalLM(Phi3Config(**_sizes(**options)))


def _gemma3(**options):
    config = Gemma3TextConfig(
        head_dim=24,
        query_pre_attn_scalar=32,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        **_sizes(**options),
    )
    return Gemma3ForCausalLM(config)


_GEMMA_ROPES = {
    "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}
_WINDOWED = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}

MODELS = {
    "llama": lambda: _llama(),
    "llama, one key head": lambda: _llama(num_key_value_heads=1),
    "llama, biased": lambda: _llama(attention_bias=True),
    "llama, stretched by wavelength": lambda: _llama(rope_parameters=dict(LLAMA3)),
    "llama, stretched evenly": lambda: _llama(
        rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}
    ),
    "mistral": lambda: _mistral(num_key_value_heads=1),
    "qwen2": lambda: _qwen2(),
    "qwen2, windowed": lambda: _qwen2(num_key_value_heads=1, **_WINDOWED),
    "qwen3": lambda: _qwen3(),
    "qwen3, one key head": lambda: _qwen3(num_key_value_heads=1),
    "gemma3": lambda: _gemma3(),
    "gemma3, stretched": lambda: _gemma3(num_key_value_heads=1, rope_parameters=_GEMMA_ROPES),
    "phi3": lambda: _phi3(),
    "phi3, half turning": lambda: _phi3(num_key_value_heads=1, partial_rotary_factor=0.5),
    "phi3, windowed": lambda: _phi3(sliding_window=WINDOW),
}


def random_model(name, *, tied=False, dtype=torch.bfloat16):
    """A model whose weights are exact in a dtype, but which computes in float32."""
    model: Any = MODELS[name]() if not tied else _llama(tie_word_embeddings=True)
    generator = torch.Generator().manual_seed(0)
    gemma = isinstance(model, Gemma3ForCausalLM)
    with torch.no_grad():
        for parameter, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() > 1:
                scale = 1.0 if "embed" in parameter else weight.shape[1] ** -0.5
                weight.copy_(noise * scale)
            elif parameter.endswith("bias"):
                weight.copy_(0.5 * noise)
            else:
                weight.copy_(0.2 * noise + (0.0 if gemma else 1.0))
    return model.to(dtype).float().eval()


def write(folder, model, *, dtype=torch.bfloat16, **options):
    """Save it in a dtype; it goes on computing in float32."""
    model.to(dtype).save_pretrained(folder, **options)
    model.float()
    return folder


def _sizes(**changed):
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    return sizes | changed
