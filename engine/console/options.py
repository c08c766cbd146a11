"""What the console's commands take. Free of torch, so that help comes at once."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from engine.arguments import natural, positive, whole
from engine.params import ReplyParams, Rule, SamplingParams

_SHIPPED_PROMPTS = Path(__file__).parents[2] / "resources" / "prompts" / "shipped.jsonl"


def add_chat_options(parser: argparse.ArgumentParser) -> None:
    """What `chat` takes."""
    add = parser.add_argument
    add("prompt", nargs="?", help="one message; without it, a conversation")
    add("--drafter", default="auto", help="auto, off, ngram, layer-skip@20, draft-model:PATH …")
    add("--system", default="", metavar="TEXT", help="a system prompt")
    _add_reply_options(parser)
    parser.set_defaults(max_new_tokens=512)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """What `bench` takes."""
    add = parser.add_argument
    add("--drafters", default="auto", metavar="D,D,…", help="besides off")
    add("--prompts", type=Path, default=_SHIPPED_PROMPTS, metavar="FILE.jsonl")
    add("--repeats", type=positive, default=1, metavar="N")
    add("--json", type=Path, metavar="OUT", help="write every run to a file")
    add("--peers", action="store_true", help="measure other engines beside ours")
    add("--llama-server", metavar="PROGRAM", help="where it is, if not on the path")
    add("--table", type=Path, metavar="OUT.md", help="write the peers' table")
    _add_reply_options(parser)
    parser.set_defaults(max_new_tokens=128)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """What every command takes: the target, and where and how it runs."""
    add = parser.add_argument
    add("--target", default="default", metavar="default|PATH", help="a GGUF file, or a folder")
    add("--device", default="auto", help="auto, cpu, cuda:0, mps")
    add(
        "--dtype",
        default="auto",
        help="auto, bfloat16, float16, float32, float64, packed, int8, int4",
    )
    add("--threads", type=_threads, metavar="N", help="of the CPU; torch's own choice without it")


def reply_params(options: argparse.Namespace) -> ReplyParams:
    """How the replies of a command are drawn, and where they end.

    Raises:
        ValueError: a value outside its range; the sentence names both.
    """
    sampling = SamplingParams(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        repetition_penalty=options.repetition_penalty,
        seed=options.seed,
        rule=Rule(options.rule),
    )
    return ReplyParams(sampling, options.max_new_tokens, tuple(options.stop))


def _add_reply_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--draft-length", type=positive, metavar="N", help="tokens ahead; without it as it pays")
    add("--tree-nodes", type=natural, default=0, metavar="N", help="for drafters of trees (0)")
    add("--rule", choices=[str(rule) for rule in Rule], default=str(Rule.COUPLED))
    add("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    add("--top-k", type=whole, default=0, metavar="N", help="0 for all (0)")
    add("--top-p", type=float, default=1.0, metavar="P", help="1 for all (1)")
    add("--min-p", type=float, default=0.0, metavar="P", help="0 for all (0)")
    add("--repetition-penalty", type=float, default=1.0, metavar="R", help="1 for none (1)")
    add("--seed", type=whole, default=0, metavar="N", help="0")
    add("--max-new-tokens", type=whole, metavar="N", help="chat 512, bench 128")
    add("--stop", action="append", default=[], metavar="TEXT", help="may be given several times")


def _threads(text: str) -> int:
    """No more than can run at once: thousands of them bring torch down."""
    number, most = positive(text), os.cpu_count() or 1
    if number > most:
        raise argparse.ArgumentTypeError(f"{text} is more than this machine's processors ({most})")
    return number
