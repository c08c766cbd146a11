"""A folder's config.json, completed by transformers, as the native decoder wants it."""

# transformers' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from transformers import AutoConfig, GenerationConfig

from engine.models.native.config import DecoderConfig, LayerKind, Rotation

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedConfig

Fields = dict[str, Any]

GEMMA = frozenset({"gemma3_text", "gemma3"})
_FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3", "phi3"}) | GEMMA
_ONE_WINDOW = frozenset({"mistral", "phi3"})
"""Families without biases, whose window, where there is one, is every layer's."""

_SLIDING, _FULL = "sliding_attention", "full_attention"
_ACTIVATIONS = {"silu": False, "swish": False, "gelu_pytorch_tanh": True}
_BEYOND = (
    # What would change the numbers, or how they are stored.
    *("quantization_config", "transformers_weights", "mlp_bias", "use_bidirectional_attention"),
    *("attn_logit_softcapping", "final_logit_softcapping"),
)


@dataclass(frozen=True, slots=True)
class FolderConfig:
    """What config.json says of a model.

    feed_forward: its inner width. biased: which of q, k, v and output carry a bias. tied: whether
    the head is the embedding where the files hold no other. end_ids: those that end a turn.
    """

    family: str
    decoder: DecoderConfig
    feed_forward: int
    biased: frozenset[str]
    tied: bool
    end_ids: frozenset[int]


def read_folder_config(folder: Path) -> FolderConfig | None:
    """The config of a model folder; None where the native decoder does not compute all it says."""
    try:
        whole = AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        text = cast("PreTrainedConfig", whole.get_text_config(decoder=True))
        fields, family = text.to_dict(), str(whole.model_type)
    except Exception:  # of every kind, and told in a sentence when transformers loads the model
        return None
    adapted = (folder / "adapter_config.json").exists()  # transformers would apply it
    decoder = _decoder_config(family, fields) if family in _FAMILIES and not adapted else None
    tied = {bool(whole.tie_word_embeddings), bool(text.tie_word_embeddings)}
    if decoder is None or len(tied) > 1:
        return None
    return FolderConfig(
        family=family,
        decoder=decoder,
        feed_forward=fields["intermediate_size"],
        biased=_biased(family, fields),
        tied=tied.pop(),
        end_ids=_end_ids(folder, whole),
    )


def _decoder_config(family: str, fields: Fields) -> DecoderConfig | None:
    hidden, heads = fields["hidden_size"], fields["num_attention_heads"]
    kv_heads = fields["num_key_value_heads"]
    sizes = (hidden, heads, kv_heads, fields["num_hidden_layers"], fields["vocab_size"])
    if min(sizes) < 1 or heads % kv_heads:
        return None
    width, gemma = fields.get("head_dim") or hidden // heads, family in GEMMA
    kinds = _kinds(family, fields, width)
    activation = fields["hidden_activation" if gemma else "hidden_act"]
    if kinds is None or any(map(fields.get, _BEYOND)) or activation not in _ACTIVATIONS:
        return None
    return DecoderConfig(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_width=width,
        vocabulary=fields["vocab_size"],
        context_length=fields["max_position_embeddings"],
        norm_epsilon=fields["rms_norm_eps"],
        kinds=kinds,
        score_scale=(fields["query_pre_attn_scalar"] if gemma else width) ** -0.5,
        embedding_scale=hidden**0.5 if gemma else 1.0,
        gelu=_ACTIVATIONS[activation],
    )


def _kinds(family: str, fields: Fields, width: int) -> tuple[LayerKind, ...] | None:
    """A kind a layer; None where one attends or turns in a way that is not known here."""
    layers, window = fields["num_hidden_layers"], fields.get("sliding_window")
    types, ropes = fields.get("layer_types"), fields["rope_parameters"]
    if family in _ONE_WINDOW:
        if types is not None:
            return None
        types = [_FULL if window is None else _SLIDING] * layers
    types = types or [_FULL] * layers
    if len(types) != layers or not {*types} <= {_FULL, _SLIDING}:
        return None
    if window is not None and (window < 1 or family == "llama"):
        return None
    kinds: dict[str, LayerKind] = {}
    for kind in {*types}:
        rotation = _rotation(ropes[kind] if family in GEMMA else ropes, width, family == "phi3")
        if rotation is None or (kind == _SLIDING and window is None):
            return None
        kinds[kind] = LayerKind(rotation, window if kind == _SLIDING else None)
    return tuple(kinds[kind] for kind in types)


def _rotation(rope: Fields, width: int, may_be_partial: bool) -> Rotation | None:
    share = rope.get("partial_rotary_factor")
    turning = width if share is None else int(width * share)
    if not 0 < turning <= width or turning % 2 or (turning < width and not may_be_partial):
        return None
    for base in _numbers(rope, "rope_theta"):
        divisors = _divisors(rope, Rotation(base, turning, (1.0,) * (turning // 2)))
        return None if divisors is None else Rotation(base, turning, divisors)
    return None


def _divisors(rope: Fields, plain: Rotation) -> tuple[float, ...] | None:
    match rope.get("rope_type"):
        case "default":
            return plain.divisors
        case "linear":
            return tuple(_numbers(rope, "factor")) * len(plain.divisors) or None
        case "llama3":
            return _divisors_by_wavelength(rope, plain)
        case _:
            return None


def _divisors_by_wavelength(rope: Fields, plain: Rotation) -> tuple[float, ...] | None:
    """Llama 3's stretching.

    Pairs that turn seldom in the context that the model was first trained with are slowed by the
    factor, those that turn often are not, and those between are in part.
    """
    names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    numbers = _numbers(rope, *names)
    if not numbers or numbers[1] >= numbers[2]:
        return None
    factor, low, high, context = numbers
    found: list[float] = []
    for frequency in plain.frequencies():
        turns = context * frequency / (2 * math.pi)
        kept = min(1.0, max(0.0, (turns - low) / (high - low)))
        found.append(1 / (kept + (1 - kept) / factor))
    return tuple(found)


def _numbers(rope: Fields, *names: str) -> list[float]:
    """Positive numbers by name; none at all where one is missing."""
    found = [rope.get(name) for name in names]
    usable = all(isinstance(number, int | float) and number > 0 for number in found)
    return [float(cast("float", number)) for number in found] if usable else []


def _biased(family: str, fields: Fields) -> frozenset[str]:
    inputs = frozenset({"attn_q", "attn_k", "attn_v"})
    if family == "qwen2":
        return inputs
    chosen = family not in _ONE_WINDOW and fields.get("attention_bias")
    return inputs | {"attn_output"} if chosen else frozenset()


def _end_ids(folder: Path, config: PreTrainedConfig) -> frozenset[int]:
    try:
        generation = GenerationConfig.from_pretrained(str(folder), local_files_only=True)
        found = cast("object", generation.eos_token_id)
    except Exception:  # there need not be such a file, and a damaged one does no harm
        found = None
    if found is None:
        found = cast("object", getattr(config, "eos_token_id", None))
    listed = cast("list[object]", found) if isinstance(found, list) else [found]
    return frozenset(each for each in listed if isinstance(each, int))
