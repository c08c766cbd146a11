"""Where a model folder's safetensors hold what the native decoder needs, by canonical name."""

# safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from safetensors import SafetensorError, safe_open

from engine.models.native.folder_config import GEMMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

    from engine.models.native.folder_config import FolderConfig

EMBEDDING, HEAD = "token_embd.weight", "output.weight"
ID_MAP, OUTPUT_MAP = "d2t", "output_map.weight"

_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
_WHOLE_NUMBERS = frozenset({"I64", "I32"})
_HEAD_NORMED = frozenset({"qwen3"}) | GEMMA
_FREQUENCIES = ".rotary_emb.inv_freq"
"""Old files hold them; they follow from the config, and transformers reads them no more."""

_PREFIXES = {
    "gemma3": {
        "language_model.model.": "language_model.lm_head.weight",
        "model.language_model.": "lm_head.weight",
    }
}
_PLAIN_PREFIX = {"model.": "lm_head.weight"}
"""What decoder tensors' names begin with, and the head's name beside."""

_FOR_IMAGES = (
    *("vision_tower.", "multi_modal_projector."),
    *("model.vision_tower.", "model.multi_modal_projector."),
)

_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies. shape: rows first."""

    file: Path
    name: str
    shape: _Shape


class MappedFile(Protocol):
    """What is used of an open safetensors file."""

    def keys(self) -> list[str]:
        """Its tensors' names."""
        ...

    def get_tensor(self, name: str) -> Tensor:
        """A tensor, whose bytes are read when they are looked at."""
        ...

    def get_slice(self, name: str) -> MappedSlice:
        """What the header says of a tensor."""
        ...


class MappedSlice(Protocol):
    """What is used of a safetensors file's slice."""

    def get_shape(self) -> list[int]:
        """Rows first."""
        ...

    def get_dtype(self) -> str:
        """In the format's own spelling."""
        ...


def mapped(file: Path) -> MappedFile:
    """A safetensors file, mapped.

    Raises:
        SafetensorError: it is damaged. OSError: it can't be read.
    """
    return cast("MappedFile", safe_open(str(file), framework="pt"))


def find_tensors(
    folder: Path, config: FolderConfig, *, borrowing: bool = False
) -> Mapping[str, Place] | None:
    """Where the decoder's tensors lie, by canonical name.

    borrowing: without embedding and head, and with a map of ids and one before the head, if any.
    None where a file can't be read, a tensor is missing or not of the shape that the config calls
    for, or one is there that the decoder would leave out.
    """
    try:
        found = {place.name: place for file in _files(folder) for place in _held(file, borrowing)}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        return None  # told in a sentence when transformers loads the model
    unused = _FOR_IMAGES if config.family == "gemma3" else ()
    held = {
        name: place
        for name, place in found.items()
        if not name.endswith(_FREQUENCIES) and not name.startswith(unused)
    }
    for prefix, head in _PREFIXES.get(config.family, _PLAIN_PREFIX).items():
        wanted = _wanted(config, prefix, head)
        if borrowing or (config.tied and head not in held):
            del wanted[HEAD]
        if borrowing:
            del wanted[EMBEDDING]
            mine = {ID_MAP: (*held[ID_MAP].shape[:1],)} if ID_MAP in held else {}
            mine |= {OUTPUT_MAP: (config.decoder.hidden,) * 2} if OUTPUT_MAP in held else {}
            wanted |= {name: (name, shape) for name, shape in mine.items()}
        if dict(wanted.values()) == {name: place.shape for name, place in held.items()}:
            return {canonical: held[name] for canonical, (name, _) in wanted.items()}
    return None


def _files(folder: Path) -> list[Path]:
    """The one file, else those that the index names, as transformers chooses."""
    whole = folder / "model.safetensors"
    if whole.is_file():
        return [whole]
    index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
    return [folder / name for name in sorted({*index["weight_map"].values()})]


def _held(file: Path, may_have_map: bool) -> Iterator[Place]:
    opened = mapped(file)
    for name in opened.keys():  # noqa: SIM118  (a file is no dictionary)
        held = opened.get_slice(name)
        is_map = may_have_map and name == ID_MAP
        if held.get_dtype() not in (_WHOLE_NUMBERS if is_map else _FLOATS):
            raise ValueError(f"{name} is stored as {held.get_dtype()}")
        yield Place(file, name, tuple(held.get_shape()))


def _wanted(config: FolderConfig, prefix: str, head: str) -> dict[str, tuple[str, _Shape]]:
    """By canonical name, each tensor's name in the files and its shape."""
    sizes = config.decoder
    table = (sizes.vocabulary, sizes.hidden)
    wanted: dict[str, tuple[str, _Shape]] = {
        EMBEDDING: (f"{prefix}embed_tokens.weight", table),
        "output_norm.weight": (f"{prefix}norm.weight", (sizes.hidden,)),
        HEAD: (head, table),
    }
    matrices, vectors = _matrices(config), _norms(config)
    biases = {name: (matrices[name][0], matrices[name][1][:1]) for name in config.biased}
    for index in range(sizes.layers):
        for kind, parts in (("weight", matrices | vectors), ("bias", biases)):
            for canonical, (name, shape) in parts.items():
                theirs = f"{prefix}layers.{index}.{name}.{kind}"
                wanted[f"blk.{index}.{canonical}.{kind}"] = theirs, shape
    return wanted


def _matrices(config: FolderConfig) -> dict[str, tuple[str, _Shape]]:
    sizes, inner, hidden = config.decoder, config.feed_forward, config.decoder.hidden
    queries, keys = sizes.heads * sizes.head_width, sizes.kv_heads * sizes.head_width
    given = {
        "attn_output": ("self_attn.o_proj", (hidden, queries)),
        "ffn_down": ("mlp.down_proj", (hidden, inner)),
    }
    if config.family == "phi3":
        return given | {
            "attn_qkv": ("self_attn.qkv_proj", (queries + 2 * keys, hidden)),
            "ffn_up": ("mlp.gate_up_proj", (2 * inner, hidden)),
        }
    return given | {
        "attn_q": ("self_attn.q_proj", (queries, hidden)),
        "attn_k": ("self_attn.k_proj", (keys, hidden)),
        "attn_v": ("self_attn.v_proj", (keys, hidden)),
        "ffn_gate": ("mlp.gate_proj", (inner, hidden)),
        "ffn_up": ("mlp.up_proj", (inner, hidden)),
    }


def _norms(config: FolderConfig) -> dict[str, tuple[str, _Shape]]:
    whole, each = (config.decoder.hidden,), (config.decoder.head_width,)
    norms: dict[str, tuple[str, _Shape]] = {"attn_norm": ("input_layernorm", whole)}
    if config.family in GEMMA:
        norms["post_attention_norm"] = "post_attention_layernorm", whole
        norms["ffn_norm"] = "pre_feedforward_layernorm", whole
        norms["post_ffw_norm"] = "post_feedforward_layernorm", whole
    else:
        norms["ffn_norm"] = "post_attention_layernorm", whole
    if config.family in _HEAD_NORMED:
        norms["attn_q_norm"] = "self_attn.q_norm", each
        norms["attn_k_norm"] = "self_attn.k_norm", each
    return norms
