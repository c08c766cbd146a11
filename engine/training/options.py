"""What the command `python -m engine train` takes. Free of torch, so that help comes at once."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from engine.arguments import positive, whole
from engine.params import SamplingParams
from engine.training.recipe import DrafterKind

_TEXT_TOKENS = 500_000
_MINUTES = (0.01, 1_000_000.0)
_DISK_GB = (0.1, 1_000_000.0)
"""Even a large target's states of some texts fit into the least."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What `train` takes beside the target."""
    add = parser.add_argument
    add("--kind", choices=[str(kind) for kind in DrafterKind], required=True)
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder for the drafter")
    add("--work", type=Path, metavar="DIR", help="for texts and states; OUT/work without it")
    add("--text", type=positive, default=_TEXT_TOKENS, metavar="N", help="tokens to write (500000)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--minutes", type=partial(_amount, _MINUTES), metavar="N", help="of learning, all told"
    )
    length.add_argument(
        "--tokens", type=positive, metavar="N", help="to learn from, all told; 10 times the text"
    )
    add("--prompts", type=Path, metavar="FILE", help="of your own, one a line, or JSONL")
    add("--vocabulary", type=positive, metavar="N", help="ids to draft, the most frequent (16384)")
    add(
        "--layers",
        type=_layers,
        default=(),
        metavar="N,N,…",
        help="of the target, to build eagle3 or draft-model on",
    )
    add("--seed", type=_seed, default=0, metavar="N", help="0")
    add(
        "--disk-gb",
        type=partial(_amount, _DISK_GB),
        default=4.0,
        metavar="N",
        help="for the target's states (4)",
    )


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of whole numbers such as 0,5,9"
        ) from None


def _seed(text: str) -> int:
    """A seed as chat takes it."""
    try:
        return SamplingParams(seed=whole(text)).seed
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _amount(bounds: tuple[float, float], text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    least, most = bounds
    if not least <= number <= most:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text} does not lie between {least:,} and {most:,.0f}")
    return number
