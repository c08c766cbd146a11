"""Published heads in a local folder: what they are, for which model, and their tensors by one name.

| kind | spellings read |
|---|---|
| Medusa | v1: `{head}.{block}.linear.weight`, `{head}.{blocks}.weight`; `.pt` or safetensors |
| EAGLE, EAGLE-2 | `fc`, `layers.0.*` without a norm before attention; `.bin` or safetensors |
| EAGLE-3 | official and SpecForge (`midlayer.*`), DeepSpec (`layers.0.*`), speculators |

Beyond them: `lm_head.weight` and `d2t` beside Medusa or EAGLE tensors are a reduced vocabulary of
their own; with `"target_head": true` in the config, `d2t` alone picks the rows of the target's head
that serve as output, and a Medusa head's own weight (hidden × hidden) is what its states are
multiplied with before them; `rank_accuracies` in a Medusa config says per head how often each rank
is right; and `sharpness` says what log q counts where noise is shared.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.drafters.head_files import (
    Config,
    find_folder,
    layers,
    read_config,
    read_tensors,
    table,
    whole_number,
)
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Size, Tensor


_ID_MAP = "d2t"


class Kind(StrEnum):
    """What a folder holds, as it is called."""

    MEDUSA = "Medusa"
    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE-3"


@dataclass(frozen=True, slots=True)
class HeadFolder:
    """A folder's heads.

    made_for: the model's name where the folder says it. states: how wide each of the target's
    states is. vocabulary: the target's ids, padding included; None where the folder does not say.
    target_layers: how many layers the target has, None where it does not say.
    taps: the target's layers whose incoming states are fused; None for the usual three, () for the
    final state alone.
    norm_before_residual, norm_before_fc, fc_norm, norm_output: EAGLE-3's switches.
    target_head: whether d2t picks rows of the target's output.
    config: of the decoder layer. tensors: by the names of the table above, `layers.0.` for EAGLE.
    """

    name: str
    kind: Kind
    made_for: str | None
    states: int
    vocabulary: int | None
    config: Config
    tensors: Mapping[str, Tensor]
    target_layers: int | None = None
    taps: tuple[int, ...] | None = None
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    target_head: bool = False

    def tensor(self, name: str, *shape: int | None) -> Tensor:
        """A tensor that must be there; None for a size that is not known beforehand.

        Raises:
            DrafterMismatch: it is missing, or of another shape.
        """
        held = self.tensors.get(name)
        if held is None:
            raise DrafterMismatch(f"The {self.kind} head {self.name} lacks {name}.")
        if held.dim() != len(shape) or any(
            wanted not in (None, size) for wanted, size in zip(shape, held.shape, strict=True)
        ):
            raise DrafterMismatch(
                f"The {self.kind} head {self.name} does not fit together: {name} is "
                f"{_spelled(held.shape)} where {_spelled(shape)} belongs."
            )
        if not held.is_floating_point() and name != _ID_MAP:
            raise DrafterMismatch(
                f"The {self.kind} head {self.name} stores {name} in codes, which Draftlight can't "
                "read."
            )
        return held

    def optional(self, name: str, *shape: int | None) -> Tensor | None:
        """A tensor that need not be there."""
        return self.tensor(name, *shape) if name in self.tensors else None

    def number(self, name: str) -> int:
        """A positive whole number of the config.

        Raises:
            DrafterMismatch: it is missing, or something else.
        """
        value = whole_number(self.config, name)
        if value is None:
            raise DrafterMismatch(f"The config of {self.name} says no usable {name}.")
        return value


def read_heads(path: str) -> HeadFolder:
    """The heads in a folder.

    Raises:
        DrafterMismatch: it holds none that Draftlight knows, or they are damaged.
    """
    folder = find_folder(path)
    return heads_of(folder.name, read_config(folder), read_tensors(folder))


def heads_of(folder: str, config: Config, tensors: Mapping[str, Tensor]) -> HeadFolder:
    """The heads that tensors and a config from a folder of this name make.

    Raises:
        DrafterMismatch: none that Draftlight knows.
    """
    _refuse_other_speculators(folder, config)
    tensors = {_canonical(name): held for name, held in tensors.items()}
    tensors = {name: held for name, held in tensors.items() if not _IGNORED.match(name)}
    if any(_MEDUSA.match(name) for name in tensors):
        return _medusa(folder, config, tensors)
    if "layers.0.hidden_norm.weight" in tensors:
        return _eagle3(folder, config, tensors)
    if {"fc.weight", "layers.0.self_attn.q_proj.weight"} <= tensors.keys():
        return _eagle(folder, config, tensors)
    raise DrafterMismatch(
        f"The folder {folder} holds no heads that Draftlight knows: neither Medusa nor EAGLE, "
        "EAGLE-2 or EAGLE-3."
    )


_MEDUSA = re.compile(r"\d+\.\d+\.(linear\.)?(weight|bias)$")
_EAGLE = re.compile(
    r"(fc|layers\.0\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj))\.(weight|bias)$"
    r"|layers\.0\.(post_attention_layernorm|self_attn\.[qk]_norm)\.weight$"
)
_EAGLE3 = re.compile(r"(layers\.0\.(input_layernorm|hidden_norm)|input_norm|fc_norm\.\d+)\.weight$")
_IGNORED = re.compile(r"t2d$|verifier_(lm_head|norm)\.weight$|.*rotary_emb\.inv_freq$")
_OWN = frozenset({"embed_tokens.weight", "lm_head.weight", _ID_MAP})


def _canonical(name: str) -> str:
    name = name.removeprefix("medusa_head.").removeprefix("model.")
    return name.replace("midlayer.", "layers.0.", 1) if name.startswith("midlayer.") else name


def _refuse_other_speculators(folder: str, config: Config) -> None:
    kind = config.get("speculators_model_type")
    if kind not in (None, "eagle3"):
        raise DrafterMismatch(
            f"The folder {folder} holds a speculator of the kind “{kind}”, which Draftlight "
            "can't use; of this format it reads eagle3."
        )


def _refuse_unknown(folder: str, kind: Kind, unknown: Sequence[str]) -> None:
    if unknown:
        raise DrafterMismatch(
            f"The {kind} head {folder} holds {unknown[0]}, which Draftlight does not know, so "
            "it can't be computed as it was trained."
        )


def _medusa(folder: str, config: Config, tensors: dict[str, Tensor]) -> HeadFolder:
    unknown = [name for name in tensors if not _MEDUSA.match(name) and name not in _OWN]
    if any(name.startswith("layers.") for name in unknown):
        raise DrafterMismatch(
            f"The folder {folder} holds a whole model with its Medusa heads (Medusa-2), and "
            "such heads fit that model alone."
        )
    _refuse_unknown(folder, Kind.MEDUSA, unknown)
    first = tensors.get("0.0.linear.weight")
    if first is None or first.dim() != 2:
        raise DrafterMismatch(f"The Medusa head {folder} lacks 0.0.linear.weight.")
    outputs = [
        held for name, held in tensors.items() if _MEDUSA.match(name) and "linear" not in name
    ]
    whole = outputs and _ID_MAP not in tensors
    return HeadFolder(
        name=folder,
        kind=Kind.MEDUSA,
        made_for=_made_for(config),
        states=first.shape[1],
        vocabulary=whole_number(config, "vocab_size") or (len(outputs[0]) if whole else None),
        config=config,
        tensors=tensors,
        target_head=bool(config.get("target_head")),
    )


def _eagle(folder: str, config: Config, tensors: dict[str, Tensor]) -> HeadFolder:
    unknown = [name for name in tensors if not _EAGLE.match(name) and name not in _OWN]
    _refuse_unknown(folder, Kind.EAGLE, unknown)
    heads = HeadFolder(
        name=folder,
        kind=Kind.EAGLE,
        made_for=_made_for(config),
        states=0,
        vocabulary=whole_number(config, "vocab_size"),
        config=config,
        tensors=tensors,
        target_head=bool(config.get("target_head")),
    )
    return replace(heads, states=heads.number("hidden_size"))


def _refuse_unknown_eagle3(folder: str, tensors: Mapping[str, Tensor]) -> None:
    patterns, own = (_EAGLE, _EAGLE3), ("norm.weight", *_OWN)
    unknown = [
        name
        for name in tensors
        if name not in own and not any(pattern.match(name) for pattern in patterns)
    ]
    if "mask_hidden" in unknown:
        raise DrafterMismatch(
            f"The folder {folder} holds a P-EAGLE head, which drafts all positions at once; "
            "Draftlight can't use it."
        )
    _refuse_unknown(folder, Kind.EAGLE3, unknown)


def _eagle3(folder: str, config: Config, tensors: dict[str, Tensor]) -> HeadFolder:
    _refuse_unknown_eagle3(folder, tensors)
    eagle = table(config, "eagle_config")
    speculator = "speculators_model_type" in config
    layer = table(config, "transformer_layer_config") if speculator else config
    heads = HeadFolder(
        name=folder,
        kind=Kind.EAGLE3,
        made_for=_made_for(config),
        states=0,
        vocabulary=whole_number(layer, "vocab_size"),
        config=layer,
        tensors=tensors,
        target_layers=whole_number(config, "num_target_layers"),
        taps=_taps(config, eagle),
        # vLLM, for which such files are made, takes a missing switch for on.
        norm_before_residual=bool(config.get("norm_before_residual", speculator)),
        norm_before_fc=bool(eagle.get("norm_before_fc", config.get("norm_before_fc"))),
        fc_norm=bool(config.get("fc_norm")),
        norm_output=bool(config.get("norm_output")),
        target_head=bool(config.get("target_head")),
    )
    states = whole_number(config, "target_hidden_size") or heads.number("hidden_size")
    return replace(heads, states=states)


def _taps(config: Config, eagle: Config) -> tuple[int, ...] | None:
    """Speculators count the layers that a state enters; all others those that it leaves."""
    if eagle.get("use_aux_hidden_state") is False:
        return ()
    entered = layers(config, "eagle_aux_hidden_state_layer_ids")
    if entered:
        return entered
    left = layers(config, "target_layer_ids") or layers(eagle, "eagle_aux_hidden_state_layer_ids")
    return tuple(layer + 1 for layer in left) or None


def _made_for(config: Config) -> str | None:
    verifier = table(table(config, "speculators_config"), "verifier")
    names = (
        *(verifier.get("name_or_path"), config.get("base_model_name_or_path")),
        *(config.get("target_model_name_or_path"), config.get("_name_or_path")),
    )
    return next((name for name in names if isinstance(name, str) and name), None)


def _spelled(shape: Sequence[int | None] | Size) -> str:
    return " × ".join("?" if size is None else str(size) for size in shape)
