"""What the command `python -m engine train` takes. Free of torch, so that help comes at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.training.recipe import DrafterKind

_TEXT_TOKENS = 500_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """What `train` takes beside the target."""
    add = parser.add_argument
    add("--kind", type=DrafterKind, choices=list(DrafterKind), required=True)
    add("--out", type=Path, required=True, metavar="DIR", help="where the drafter is to be")
    add("--work", type=Path, metavar="DIR", help="for texts and states; OUT/work without it")
    add(
        "--text", type=_positive, default=_TEXT_TOKENS, metavar="N", help="tokens to write (500000)"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, metavar="N", help="of learning, all told")
    length.add_argument(
        "--tokens", type=_positive, metavar="N", help="to learn from, all told; 10 times the text"
    )
    add("--prompts", type=Path, metavar="FILE", help="of your own, one a line, or JSONL")
    add("--vocabulary", type=_positive, metavar="N", help="ids to draft, the most frequent (8192)")
    add("--layers", type=_layers, default=(), metavar="N,N,…", help="of the target, to build on")
    add("--seed", type=int, default=0, metavar="N", help="0")
    add("--disk-gb", type=float, default=4.0, metavar="N", help="for the target's states (4)")


def _layers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number
