"""What a GGUF file's metadata says of its model, and that the file's tensors are as that implies.

Keys, tensor names and each architecture's conventions: the GGUF specification and llama.cpp's
conversion and loading (facts only).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import ModelError
from engine.models.blocks import read_floats
from engine.models.native.config import DecoderConfig, LayerKind, Rotation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.models.gguf import GgufFile, Value

FLOATS = frozenset({"F32", "F16", "BF16"})
_MOST = 2**31
_BASE = 10_000.0
_GEMMA_GLOBAL_EVERY = 6
_GEMMA_27B_LAYERS = 62

Shape = tuple[int, ...]


def read_config(file: GgufFile) -> DecoderConfig:
    """The config of a file whose family the native decoder knows.

    Raises:
        ModelError: a number is missing or makes no sense, or the tensors don't fit the numbers.
    """
    parts = file.metadata.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        raise ModelError(
            f"{file.path.name} is one of a model's {parts} parts. Get the model in one file."
        )
    numbers = _Numbers(file)
    sizes = _read_sizes(numbers)
    _check_tensors(file, numbers.family, sizes)
    gemma = numbers.family == "gemma3"
    # Of Gemma 3, the one of 27 billion parameters alone scales by another width than its heads'.
    other = gemma and sizes.layers == _GEMMA_27B_LAYERS
    return DecoderConfig(
        hidden=sizes.hidden,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_width=sizes.width,
        vocabulary=sizes.vocabulary,
        context_length=numbers.count("context_length"),
        norm_epsilon=numbers.real("attention.layer_norm_rms_epsilon"),
        kinds=_read_kinds(numbers, sizes),
        score_scale=(sizes.hidden // sizes.heads if other else sizes.width) ** -0.5,
        embedding_scale=sizes.hidden**0.5 if gemma else 1.0,
        gelu=gemma,
    )


class _Sizes(NamedTuple):
    """What the tensors' shapes follow from. turning: elements of a head that turn."""

    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    width: int
    turning: int


class _Numbers:
    """A file's numbers, by their keys without the family; each is checked as it is read."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        self.family = file.metadata.get("general.architecture")

    def count(self, key: str, otherwise: int | None = None, *, least: int = 1) -> int:
        """A whole number, at least `least`."""
        value = self._value(key, otherwise)
        if type(value) is not int or not least <= value < _MOST:
            raise _refusal(self.file, f"its {key} makes no sense")
        return value

    def real(self, key: str, otherwise: float | None = None) -> float:
        """A number above 0."""
        value = self._value(key, otherwise)
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise _refusal(self.file, f"its {key} makes no sense")
        return float(value)

    def stretch(self) -> float:
        """What the speed of every pair is divided by, under the key of today or an old one."""
        if self.file.metadata.get(f"{self.family}.rope.scaling.type") == "none":
            return 1.0
        return self.real("rope.scaling.factor", self.real("rope.scale_linear", 1.0))

    def _value(self, key: str, otherwise: float | None) -> Value:
        value = self.file.metadata.get(f"{self.family}.{key}", otherwise)
        if value is None:
            raise _refusal(self.file, f"it does not say its {key}")
        return value


def _read_sizes(numbers: _Numbers) -> _Sizes:
    file = numbers.file
    if "token_embd.weight" not in file.tensors:
        raise _refusal(file, "it lacks token_embd.weight")
    hidden, heads = numbers.count("embedding_length"), numbers.count("attention.head_count")
    width = numbers.count("attention.key_length", hidden // heads)
    sizes = _Sizes(
        vocabulary=file.tensors["token_embd.weight"].shape[0],
        hidden=hidden,
        inner=numbers.count("feed_forward_length"),
        layers=numbers.count("block_count"),
        heads=heads,
        kv_heads=numbers.count("attention.head_count_kv", heads),
        width=width,
        turning=numbers.count("rope.dimension_count", width),
    )
    if not sizes.vocabulary:
        raise _refusal(file, "its vocabulary is empty")
    if heads % sizes.kv_heads:
        raise _refusal(file, f"its {heads} heads can't share {sizes.kv_heads} key heads evenly")
    if sizes.turning > width or sizes.turning % 2 or width % 2:
        raise _refusal(file, f"heads {width} wide can't turn {sizes.turning} of their elements")
    return sizes


def _read_kinds(numbers: _Numbers, sizes: _Sizes) -> tuple[LayerKind, ...]:
    """A kind a layer: all alike, or with Gemma sliding ones and, every so often, a full one."""
    base = numbers.real("rope.freq_base", _BASE)
    rotation = Rotation(base, sizes.turning, _divisors(numbers, sizes.turning // 2))
    sliding = numbers.count("attention.sliding_window", 0, least=0) or None
    if numbers.family != "gemma3" or sliding is None:
        return (LayerKind(rotation, sliding),) * sizes.layers
    local_base = numbers.real("rope.freq_base_swa", _BASE)
    local = Rotation(local_base, sizes.turning, (1.0,) * (sizes.turning // 2))
    every = numbers.count("attention.sliding_window_pattern", _GEMMA_GLOBAL_EVERY)
    return tuple(
        LayerKind(local, sliding) if (index + 1) % every else LayerKind(rotation)
        for index in range(sizes.layers)
    )


def _divisors(numbers: _Numbers, pairs: int) -> tuple[float, ...]:
    file, stretch = numbers.file, numbers.stretch()
    tensor = file.tensors.get("rope_freqs.weight")
    if tensor is None:
        return (stretch,) * pairs
    read = read_floats(file.blocks(tensor.name), tensor.type.name, tensor.shape)
    found = tuple(stretch * float(divisor) for divisor in read)
    if not all(0 < divisor < math.inf for divisor in found):
        raise _refusal(file, "its rope_freqs.weight makes no sense")
    return found


def _check_tensors(file: GgufFile, family: Value | None, sizes: _Sizes) -> None:
    """Every tensor that a model of these sizes has is there, as it should be, and no other."""
    expected: set[str] = set()
    for name, shape in _shapes(file, family, sizes):
        tensor = file.tensors.get(name)
        if tensor is None:
            raise _refusal(file, f"it lacks {name}")
        if tensor.shape != shape:
            found, wanted = (" × ".join(map(str, each)) for each in (tensor.shape, shape))
            raise _refusal(file, f"its tensor {name} is {found} in place of {wanted}")
        if len(shape) == 1 and tensor.type.name not in FLOATS:
            raise _refusal(file, f"its tensor {name} is stored as a matrix")
        expected.add(name)
    for name in file.tensors.keys() - expected:
        raise _refusal(file, f"it has no use for its tensor {name}")


def _shapes(file: GgufFile, family: Value | None, sizes: _Sizes) -> Iterator[tuple[str, Shape]]:
    """Names and shapes, lazily: there may be said to be any number of layers."""
    yield "token_embd.weight", (sizes.vocabulary, sizes.hidden)
    yield "output_norm.weight", (sizes.hidden,)
    if "output.weight" in file.tensors:
        yield "output.weight", (sizes.vocabulary, sizes.hidden)
    if "rope_freqs.weight" in file.tensors:
        yield "rope_freqs.weight", (sizes.turning // 2,)
    for index in range(sizes.layers):
        yield from _layer_shapes(file, f"blk.{index}.", family, sizes).items()


def _layer_shapes(
    file: GgufFile, prefix: str, family: Value | None, sizes: _Sizes
) -> dict[str, Shape]:
    """A layer's, as its family has them, and fused where the file has them fused."""
    hidden, inner, width = sizes.hidden, sizes.inner, sizes.width
    queries, keys = sizes.heads * width, sizes.kv_heads * width
    inputs = {"attn_q": queries, "attn_k": keys, "attn_v": keys}
    if f"{prefix}attn_qkv.weight" in file.tensors:
        inputs = {"attn_qkv": queries + 2 * keys}
    gates = {"ffn_gate": inner, "ffn_up": inner}
    if f"{prefix}ffn_gate.weight" not in file.tensors:
        gates = {"ffn_up": 2 * inner}
    norms = {"attn_norm": hidden, "ffn_norm": hidden}
    if family in ("qwen3", "gemma3"):
        norms |= {"attn_q_norm": width, "attn_k_norm": width}
    if family == "gemma3":
        norms |= {"post_attention_norm": hidden, "post_ffw_norm": hidden}
    matrices: dict[str, Shape] = {part: (rows, hidden) for part, rows in (inputs | gates).items()}
    matrices |= {"attn_output": (hidden, queries), "ffn_down": (hidden, inner)}
    vectors: dict[str, Shape] = {part: (length,) for part, length in norms.items()}
    biased = any(f"{prefix}{part}.bias" in file.tensors for part in inputs)
    biases: dict[str, Shape] = {part: (rows,) for part, rows in inputs.items() if biased}
    weights = {f"{prefix}{part}.weight": shape for part, shape in (vectors | matrices).items()}
    return weights | {f"{prefix}{part}.bias": shape for part, shape in biases.items()}


def _refusal(file: GgufFile, reason: str) -> ModelError:
    return ModelError(f"{file.path.name} can't be run: {reason}. Get the file again.")
