"""All that needs a GPU, in one go: the text is the same with every drafter, and how fast it is.

`make gpu-check`, or `python packaging/gpu_check.py` with the requirements installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # The checkout is not installed; this file is run as it lies.

import torch

from engine import Engine, Finished, ReplyParams, Round

if TYPE_CHECKING:
    from engine import ReplyStats, Token

DRAFTERS = ("off", "ngram", "draft-model:default")
TIE = 1e-4
"""A margin in nats below which float32 kernels for one row and for several may disagree."""


def prompts() -> list[str]:
    """The first shipped prompt of each category."""
    text = (ROOT / "resources" / "prompts" / "shipped.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line["messages"][0]["content"] for line in lines if line["id"].endswith("-1")]


def reply(engine: Engine, drafter: str, prompt: str) -> tuple[list[Token], ReplyStats]:
    """One greedy reply to a new conversation: its tokens and what it cost."""
    session = engine.new_session()
    session.drafting.drafter = engine.drafter(drafter)
    tokens: list[Token] = []
    for event in session.reply(prompt, ReplyParams(max_new_tokens=128), threading.Event()):
        match event:
            case Round():
                tokens += event.tokens
            case Finished():
                return tokens, event.stats
            case _:
                pass
    raise AssertionError("a reply ends with Finished")


def first_difference(plain: list[Token], drafted: list[Token]) -> Token | None:
    """The plain reply's token at the first place where the other differs; None if all are equal."""
    for ours, theirs in zip_longest(plain, drafted):
        if ours is None or theirs is None or ours.id != theirs.id:
            return ours or plain[-1]
    return None


def measure(dtype: str) -> bool:
    """Print the figures for one dtype; whether every difference is at a near tie."""
    torch.cuda.reset_peak_memory_stats()
    engine = Engine.load("default", device="cuda", dtype=dtype)
    reply(engine, "draft-model:default", "Hello")  # The first kernels are compiled here.
    plain = {prompt: reply(engine, "off", prompt) for prompt in prompts()}
    good = True
    for drafter in DRAFTERS:
        speeds: list[float] = []
        differences: list[Token] = []
        for prompt, (tokens, _) in plain.items():
            drafted, stats = reply(engine, drafter, prompt)
            speeds.append(stats.tokens_per_second)
            difference = first_difference(tokens, drafted)
            differences += [] if difference is None else [difference]
        margins = ", ".join(f"{token.margin:.2g}" for token in differences)
        good &= all((token.margin or 0.0) < TIE for token in differences)
        print(
            f"{dtype:9} {drafter:20} {median(speeds):7.1f} tokens/s, "
            f"{len(plain) - len(differences)} of {len(plain)} replies identical"
            + (f", margins at the first difference: {margins}" if margins else ""),
            flush=True,
        )
    print(f"{dtype:9} most memory used: {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
    return good


def main() -> int:
    """Run everything; the exit status."""
    if not torch.cuda.is_available():
        print(f"There is no CUDA GPU that PyTorch {torch.__version__} can use: nothing to check.")
        return 1
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    # bfloat16 rounds so coarsely that its near ties decide nothing here; float32 has to hold.
    measure("bfloat16")
    good = measure("float32")
    tests = subprocess.call([sys.executable, "-m", "pytest", "-m", "gpu"], cwd=ROOT)
    no_tests = 5
    print("float32: the same text with every drafter." if good else "float32: THE TEXT DIFFERS.")
    return 0 if good and tests in (0, no_tests) else 1


if __name__ == "__main__":
    sys.exit(main())
