"""From a fitted folder to an EAGLE or EAGLE-3 head."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from engine.drafters.eagle_head import EagleHead, Entrance, Fusion
from engine.drafters.eagle_layer import EagleLayer, RmsNorm
from engine.drafters.head_files import Config, table, whole_number
from engine.drafters.head_fit import fitted_heads, taps_of
from engine.drafters.published_heads import Kind
from engine.errors import DrafterMismatch
from engine.models.causal_lm import FINAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from engine.drafters.head_fit import FittedHeads
    from engine.drafters.projection import Projection
    from engine.drafters.published_heads import HeadFolder
    from engine.models.causal_lm import CausalLM

_LAYER = "layers.0."
_EPSILON = 1e-6
_USUAL_BASE = 10_000.0
_SAME_TABLE = 0.02
_COMPARED_ROWS = 16


def load_eagle(path: str, lm: CausalLM, family: str) -> EagleHead:
    """An EAGLE head for a target.

    Raises:
        DrafterMismatch: the folder holds no such head, or one for another target.
    """
    return eagle_of(fitted_heads(path, lm, Kind.EAGLE, family))


def eagle_of(fit: FittedHeads) -> EagleHead:
    """An EAGLE head from tensors that fit.

    Raises:
        DrafterMismatch: they don't fit together.
    """
    states = fit.folder.states
    width = len(fit.folder.tensor("fc.weight", None, 2 * states))
    if width != states:
        raise DrafterMismatch(f"The EAGLE head {fit.folder.name} gives no states of the target's.")
    output, vocabulary = fit.output(width)
    return EagleHead(
        taps=(FINAL,),
        embed=_embed(fit, width),
        layer=_layer(fit, width, width),
        output=output,
        vocabulary=vocabulary,
        entrance=_projection(fit, "fc", width, 2 * width),
        like=torch.empty(0, device=fit.device, dtype=fit.numbers),
    )


def load_eagle3(path: str, lm: CausalLM, family: str) -> EagleHead:
    """An EAGLE-3 head for a target.

    Raises:
        DrafterMismatch: the folder holds no such head, or one for another target.
    """
    return eagle3_of(fitted_heads(path, lm, Kind.EAGLE3, family))


def eagle3_of(fit: FittedHeads) -> EagleHead:
    """An EAGLE-3 head from tensors that fit.

    Raises:
        DrafterMismatch: they don't fit together, or not the target's layers.
    """
    folder, width = fit.folder, fit.folder.number("hidden_size")
    taps = taps_of(folder, fit.lm)
    output, vocabulary = fit.output(width)
    return EagleHead(
        taps=taps,
        embed=_embed(fit, width),
        layer=_layer(fit, width, 2 * width),
        output=output,
        vocabulary=vocabulary,
        entrance=Entrance(
            embedding_norm=_norm(fit, f"{_LAYER}input_layernorm.weight", width),
            state_norm=_norm(fit, f"{_LAYER}hidden_norm.weight", width),
            norm_before_residual=folder.norm_before_residual,
        ),
        like=torch.empty(0, device=fit.device, dtype=fit.numbers),
        fusion=_fusion(fit, width, len(taps)),
        norm=_norm(fit, "norm.weight", width),
        norm_output=folder.norm_output,
    )


def _fusion(fit: FittedHeads, width: int, taps: int) -> Fusion | None:
    folder, states = fit.folder, fit.folder.states
    if folder.taps == ():
        if states != width:
            raise DrafterMismatch(f"The EAGLE-3 head {folder.name} lacks fc.weight.")
        return None
    return Fusion(
        fc=_projection(fit, "fc", width, taps * states),
        norm=_norm(fit, "input_norm.weight", taps * states) if folder.norm_before_fc else None,
        norms=[_norm(fit, f"fc_norm.{tap}.weight", states) for tap in range(taps)]
        if folder.fc_norm
        else [],
    )


def _embed(fit: FittedHeads, width: int) -> Callable[[Tensor], Tensor]:
    """The head's own table of tokens, or the target's where there is none or it is the same."""
    name = "embed_tokens.weight"
    held = fit.folder.optional(name, None, width)
    if held is None:
        if width != fit.folder.states:
            raise DrafterMismatch(f"The {fit.folder.kind} head {fit.folder.name} lacks {name}.")
        return fit.lm.embed
    if len(held) < fit.lm.vocabulary:
        raise DrafterMismatch(
            f"The {fit.folder.kind} head {fit.folder.name} has embeddings for {len(held):,} tokens "
            f"only, and this model knows {fit.lm.vocabulary:,}."
        )
    if width == fit.folder.states and _is_targets(held, fit):
        return fit.lm.embed
    rows = fit.matrix(name, None, width)
    return lambda ids: rows[ids]


def _is_targets(rows: Tensor, fit: FittedHeads) -> bool:
    """Whether some rows are the target's up to rounding, so that one table is enough."""
    ids = torch.linspace(0, fit.lm.vocabulary - 1, _COMPARED_ROWS).long()
    theirs = fit.lm.embed(ids.to(fit.device)).double().cpu()
    ours = rows[ids].double()
    return bool((ours - theirs).norm() <= _SAME_TABLE * theirs.norm())


def _attention_sizes(folder: HeadFolder, width: int) -> tuple[int, int, int]:
    """Heads, key heads and a head's width, of a layer that is of the one kind known here."""
    if folder.config.get("num_hidden_layers", 1) != 1:
        raise DrafterMismatch(
            f"The {folder.kind} head {folder.name} has several layers; Draftlight reads those of "
            "one."
        )
    if folder.config.get("hidden_act", "silu") != "silu":
        raise DrafterMismatch(
            f"The {folder.kind} head {folder.name} wants another activation than SiLU."
        )
    heads = folder.number("num_attention_heads")
    kv_heads = whole_number(folder.config, "num_key_value_heads") or heads
    each = whole_number(folder.config, "head_dim") or width // heads
    if heads % kv_heads or each < 2 or each % 2:
        raise DrafterMismatch(f"The config of {folder.name} says no usable attention heads.")
    return heads, kv_heads, each


def _layer(fit: FittedHeads, width: int, inputs: int) -> EagleLayer:
    heads, kv_heads, each = _attention_sizes(fit.folder, width)
    inner = len(fit.folder.tensor(f"{_LAYER}mlp.up_proj.weight", None, width))
    attention, feed_forward = f"{_LAYER}self_attn.", f"{_LAYER}mlp."
    return EagleLayer(
        heads=heads,
        kv_heads=kv_heads,
        head_width=each,
        speeds=_speeds(fit.folder, each),
        queries_keys_values=_joined(
            fit,
            {
                f"{attention}q_proj": heads * each,
                f"{attention}k_proj": kv_heads * each,
                f"{attention}v_proj": kv_heads * each,
            },
            inputs,
        ),
        out=_projection(fit, f"{attention}o_proj", width, heads * each),
        feed_forward_norm=_norm(fit, f"{_LAYER}post_attention_layernorm.weight", width),
        gate_up=_joined(
            fit, {f"{feed_forward}gate_proj": inner, f"{feed_forward}up_proj": inner}, width
        ),
        down=_projection(fit, f"{feed_forward}down_proj", width, inner),
        query_norm=_norm_if_any(fit, f"{attention}q_norm.weight", each),
        key_norm=_norm_if_any(fit, f"{attention}k_norm.weight", each),
    )


def _projection(fit: FittedHeads, name: str, outputs: int, inputs: int) -> Projection:
    return fit.make.inner(*_matrix_and_bias(fit, name, outputs, inputs))


def _matrix_and_bias(
    fit: FittedHeads, name: str, outputs: int, inputs: int
) -> tuple[Tensor, Tensor | None]:
    weight = fit.matrix(f"{name}.weight", outputs, inputs)
    return weight, fit.matrix_if_any(f"{name}.bias", outputs)


def _joined(fit: FittedHeads, outputs: dict[str, int], inputs: int) -> Projection:
    """Projections of one input side by side."""
    parts = [_matrix_and_bias(fit, name, count, inputs) for name, count in outputs.items()]
    weight = torch.cat([part for part, _ in parts])
    if all(bias is None for _, bias in parts):
        return fit.make.inner(weight)
    biases = [part.new_zeros(len(part)) if bias is None else bias for part, bias in parts]
    return fit.make.inner(weight, torch.cat(biases))


def _norm(fit: FittedHeads, name: str, width: int) -> RmsNorm:
    return RmsNorm(fit.vector(name, width), _epsilon(fit.folder))


def _norm_if_any(fit: FittedHeads, name: str, width: int) -> RmsNorm | None:
    weight = fit.vector_if_any(name, width)
    return None if weight is None else RmsNorm(weight, _epsilon(fit.folder))


def _epsilon(folder: HeadFolder) -> float:
    value = folder.config.get("rms_norm_eps", _EPSILON)
    if not isinstance(value, float | int) or value < 0:
        raise DrafterMismatch(f"The config of {folder.name} says no usable rms_norm_eps.")
    return float(value)


def _speeds(folder: HeadFolder, width: int) -> Tensor:
    """How fast each pair of a head turns; scalings as in the models that the heads are for."""
    config = folder.config
    rope = table(config, "rope_parameters") or table(config, "rope_scaling")
    try:
        base = float(rope.get("rope_theta") or config.get("rope_theta") or _USUAL_BASE)
        speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        match rope.get("rope_type") or rope.get("type") or "default":
            case "default" | "dynamic":
                return speeds  # "dynamic" leaves them as they are in the context trained for
            case "linear":
                return speeds / float(rope["factor"])
            case "llama3":
                return _slowed(speeds, rope)
            case other:
                raise DrafterMismatch(
                    f"The {folder.kind} head {folder.name} turns positions in a way that "
                    f"Draftlight does not know (“{other}”)."
                )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise DrafterMismatch(
            f"The config of {folder.name} says no usable scaling of positions."
        ) from error


def _slowed(speeds: Tensor, rope: Config) -> Tensor:
    """Llama 3's: pairs that turn seldom in the first context are slowed, those between in part."""
    low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
    turns = float(rope["original_max_position_embeddings"]) * speeds / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return speeds * (kept + (1.0 - kept) / float(rope["factor"]))
