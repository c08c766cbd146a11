"""What the user chooses for a reply: the rule, the sampling, where it ends. Free of torch."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

_COLDEST = 1e-30
"""Below this temperature float32 can't hold logits divided by it, and one token has it all."""


class Rule(StrEnum):
    """How a draft is judged; both are lossless, and the same at temperature 0.

    COUPLED: target and drafter share position-keyed Gumbel noise, so a seed gives one text with
    every drafter (Daliri, Musco and Suresh, arXiv 2408.07978). REJECTION: the same distribution
    with the most accepted tokens (Leviathan et al., arXiv 2211.17192; chains by block verification,
    arXiv 2403.10444).
    """

    COUPLED = "coupled"
    REJECTION = "rejection"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn from the target's logits; 0 and 1.0 switch a filter off.

    Raises:
        ValueError: a value outside its range; the sentence names the value and the range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    rule: Rule = Rule.COUPLED

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0, 100)
        _check("top-k", self.top_k, 0, 10_000_000)
        _check("top-p", self.top_p, 0, 1)
        _check("min-p", self.min_p, 0, 1)
        _check("repetition penalty", self.repetition_penalty, 0.01, 100)
        _check("seed", self.seed, 0, 2**63 - 1)
        if self.top_p == 0.0:
            raise ValueError("top-p must be above 0; 1.0 switches it off.")

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is always taken: at 0, and so near to it."""
        return self.temperature < _COLDEST

    def with_seed(self, seed: int) -> Self:
        """The same choices with another seed."""
        return replace(self, seed=seed)


@dataclass(frozen=True, slots=True)
class ReplyParams:
    """Everything that decides a reply's text, and where it ends."""

    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 512
    stop_texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check("max-new-tokens", self.max_new_tokens, 1, 10_000_000)
        if "" in self.stop_texts:
            raise ValueError("A stop text must not be empty.")


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses nan
        raise ValueError(f"{name} is {value}; it must lie between {low:,} and {high:,}.")
