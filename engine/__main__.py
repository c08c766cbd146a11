"""The console, `python -m engine`: chat streams a reply, bench measures, train trains a drafter."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import TYPE_CHECKING

from engine import __version__
from engine.console.options import add_bench_options, add_chat_options, add_target_options
from engine.errors import EngineError
from engine.training.options import add_options as add_train_options

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")  # Windows consoles may not be UTF-8
    options = _parser().parse_args(arguments)
    try:
        status = int(options.run(options) or 0)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has gone; without this, Python complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (EngineError, ValueError) as error:
        print(f"draftlight: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


# What a command needs is imported when it runs: torch takes seconds, and help should not.


def _chat(options: argparse.Namespace) -> None:
    from engine.console import chat

    chat.run(options)


def _bench(options: argparse.Namespace) -> int:
    from engine.console import bench

    return bench.run(options)


def _train(options: argparse.Namespace) -> None:
    from engine.console.interrupts import stopped_by_interrupt
    from engine.console.loading import load
    from engine.training import command

    engine, stop = load(options), threading.Event()
    with stopped_by_interrupt(stop):
        command.run(options, engine, stop)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__)
    parser.add_argument("--version", action="version", version=f"Draftlight {__version__}")
    commands = parser.add_subparsers(required=True, metavar="chat|bench|train")
    for name, run, add_options, words in (
        ("chat", _chat, add_chat_options, "talk to a model in the terminal"),
        ("bench", _bench, add_bench_options, "run prompts with several drafters"),
        ("train", _train, add_train_options, "train a drafter"),
    ):
        command = commands.add_parser(name, help=words)
        add_target_options(command)
        add_options(command)
        command.set_defaults(run=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
