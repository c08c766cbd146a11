"""The command `python -m engine chat`: a reply to one message, or a conversation."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from engine.console.interrupts import stopped_by_interrupt
from engine.console.loading import load, tell
from engine.console.options import reply_params
from engine.console.printing import ReadingLine, ReplyPrinter, numbers
from engine.drafters.listing import check_spec
from engine.errors import EngineError
from engine.events import Finished

if TYPE_CHECKING:
    import argparse

    from engine.params import ReplyParams
    from engine.session import Session


def run(options: argparse.Namespace) -> None:
    """Answer the prompt, or what is piped in, or one typed message after the other.

    Raises:
        EngineError: the target or the drafter can't be used, or the one message not be answered.
    """
    params = reply_params(options)
    check_spec(options.drafter)
    engine = load(options)
    tell(engine, [options.drafter])
    session = engine.new_session(options.system, options.drafter)
    session.drafting.draft_length = options.draft_length
    session.drafting.tree_nodes = options.tree_nodes
    prompt = options.prompt
    if prompt is None and not sys.stdin.isatty():
        prompt = sys.stdin.read()
    if prompt is not None:
        _answer(session, prompt, params)
        return
    print("Type a message; an empty line or Ctrl+D ends the chat.", file=sys.stderr)
    while prompt := _typed():
        try:
            _answer(session, prompt, params)
        except EngineError as error:
            print(f"draftlight: {error}", file=sys.stderr)


def _answer(session: Session, prompt: str, params: ReplyParams) -> None:
    """Stream one reply; Ctrl+C stops it and keeps what is there."""
    stop, printer = threading.Event(), ReplyPrinter(sys.stdout)
    with stopped_by_interrupt(stop), ReadingLine(sys.stderr) as reading:
        for event in session.reply(prompt, params, stop):
            reading.show(event)
            printer.show(event)
            if isinstance(event, Finished):
                print(numbers(event))


def _typed() -> str:
    try:
        return input("> ")
    except EOFError:
        return ""
