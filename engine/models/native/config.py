"""What tells one decoder from another: sizes, constants, and what differs from layer to layer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rotation:
    """How positions turn queries and keys (RoPE, Su et al., arXiv 2104.09864).

    base: the slowest pair turns by about 1 / base a position. width: elements of a head that turn,
    the others stay. divisors: per pair what its speed is divided by, as long-context models do.
    """

    base: float
    width: int
    divisors: tuple[float, ...]

    def frequencies(self) -> list[float]:
        """Radians a position, for each turning pair."""
        exponents = (2 * pair / self.width for pair in range(self.width // 2))
        return [
            self.base**-exponent / divisor
            for exponent, divisor in zip(exponents, self.divisors, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class LayerKind:
    """sliding: how many positions back a row sees, itself included; None for all of them."""

    rotation: Rotation
    sliding: int | None = None


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """A decoder's sizes and constants; widths in elements.

    kinds: one a layer. score_scale: what products of queries and keys are multiplied by.
    embedding_scale: what embeddings are. gelu: tanh-approximated GELU in the feed-forward, else
    SiLU.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    context_length: int
    norm_epsilon: float
    kinds: tuple[LayerKind, ...]
    score_scale: float
    embedding_scale: float = 1.0
    gelu: bool = False

    @property
    def layers(self) -> int:
        """How many there are."""
        return len(self.kinds)

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.heads // self.kv_heads

    @property
    def lanes(self) -> int:
        """Batch entries of an attention product: key heads, or query heads where all share one.

        torch multiplies a batch of one in another way, which depends on the rows beside.
        """
        return self.kv_heads if self.kv_heads > 1 else self.heads
