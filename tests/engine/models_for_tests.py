"""Tiny random models, the same for a seed: in memory, or in a folder as a user would have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

if TYPE_CHECKING:
    from pathlib import Path

Model = TypeVar("Model", bound=PreTrainedModel)

BEGIN, END = "<|begin|>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
MERGES = (
    *(("t", "h"), ("th", "e"), ("a", "n"), ("an", "d"), ("e", "r")),
    *(("i", "n"), ("Ġ", "the"), ("Ġ", "a"), ("o", "u"), ("r", "e")),
)

CHAT_TEMPLATE = (
    "{{ '<|begin|>' }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def tokenizer(*, chat_template: str | None = CHAT_TEMPLATE) -> PreTrainedTokenizerFast:
    """Bytes, a few merges and control tokens: emoji and CJK characters take several tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spellings = [*alphabet, *("".join(pair) for pair in MERGES)]
    core = Tokenizer(
        BPE(vocab={text: at for at, text in enumerate(spellings)}, merges=list(MERGES))
    )
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True) for text in (BEGIN, END, *ROLES)])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=BEGIN, eos_token=END, clean_up_tokenization_spaces=False
    )
    wrapped.chat_template = chat_template
    return wrapped


VOCABULARY = 256 + len(MERGES) + 2 + len(ROLES)
CUE_ID = VOCABULARY - 1
"""What a reply begins after."""

END_ID = VOCABULARY - len(ROLES) - 1
BEGIN_ID = END_ID - 1


def llama(
    seed: int, *, vocabulary: int = VOCABULARY, layers: int = 3, sharpness: float = 2.0
) -> LlamaForCausalLM:
    """Grouped-query attention, no window; the sharper, the less even its probabilities."""
    config = LlamaConfig(**_sizes(vocabulary, layers))
    return _random(LlamaForCausalLM(config), seed, sharpness)


def mistral(seed: int, *, vocabulary: int = VOCABULARY, window: int = 8) -> MistralForCausalLM:
    """A sliding window in every layer."""
    config = MistralConfig(sliding_window=window, **_sizes(vocabulary, layers=3))
    return _random(MistralForCausalLM(config), seed, 2.0)


def gemma(seed: int, *, vocabulary: int = VOCABULARY, window: int = 8) -> Gemma3ForCausalLM:
    """Sliding and full layers in turn."""
    config = Gemma3TextConfig(
        head_dim=8,
        query_pre_attn_scalar=8,
        sliding_window=window,
        layer_types=["sliding_attention", "full_attention"] * 2,
        **_sizes(vocabulary, layers=4),
    )
    return _random(Gemma3ForCausalLM(config), seed, 2.0)


def write(
    folder: Path,
    model: PreTrainedModel,
    words: PreTrainedTokenizerFast | None = None,
) -> Path:
    """The model as safetensors, with the tokenizer if there is one."""
    model.save_pretrained(folder)
    if words is not None:
        words.save_pretrained(folder)
    return folder


def _sizes(vocabulary: int, layers: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": False,
        "max_position_embeddings": 512,
        "bos_token_id": BEGIN_ID if vocabulary >= VOCABULARY else None,
        "eos_token_id": END_ID if vocabulary >= VOCABULARY else None,
        "pad_token_id": None,
    }


def _random(model: Model, seed: int, sharpness: float) -> Model:
    """Weights large enough for the layers to matter, and a head that is not flat."""
    generator = torch.Generator().manual_seed(seed)
    model.double().eval()
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.dim() > 1:
                noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
                scale = sharpness if name.startswith("lm_head") else 1.0
                weight.copy_(noise * scale * weight.shape[1] ** -0.5)
    return model
