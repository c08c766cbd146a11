"""The console, `python -m engine`: chat streams a reply, bench measures, train trains a drafter."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.console import ReplyPrinter, natural, numbers, positive, progress_bar
from engine.errors import EngineError
from engine.events import Finished
from engine.params import ReplyParams, Rule, SamplingParams
from engine.training.options import add_options as add_train_options

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from engine.benchmark import Plan
    from engine.engine import Engine
    from engine.session import Session

_SHIPPED_PROMPTS = Path(__file__).parent.parent / "resources" / "prompts" / "shipped.jsonl"
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


def _chat(options: argparse.Namespace) -> None:
    params = _reply_params(options)
    _check_drafters([options.drafter])
    engine = _load(options)
    _tell(engine, [options.drafter])
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
    with _stopped_by_interrupt(stop):
        for event in session.reply(prompt, params, stop):
            printer.show(event)
            if isinstance(event, Finished):
                print(numbers(event))


@contextmanager
def _stopped_by_interrupt(stop: threading.Event) -> Generator[None]:
    """The first Ctrl+C asks the reply to end at its next round, the second one ends the program."""

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _typed() -> str:
    try:
        return input("> ")
    except EOFError:
        return ""


def _bench(options: argparse.Namespace) -> None:
    from engine import benchmark

    params = _reply_params(options)
    if options.repeats < 1:
        raise EngineError("--repeats must be at least 1.")
    prompts, sha256 = benchmark.read_prompts(options.prompts)
    _check_peers(options, params)
    for path in filter(None, (options.json, options.table)):
        _check_writable(path)
    drafters = [spec for spec in options.drafters.split(",") if spec]
    _check_drafters(drafters)
    engine = _load(options)
    _tell(engine, drafters)
    plan = benchmark.Plan(
        prompts=prompts,
        drafters=drafters,
        params=params,
        draft_length=options.draft_length,
        tree_nodes=options.tree_nodes,
        repeats=options.repeats,
    )
    with progress_bar() as told:
        runs = benchmark.run(engine, plan, told)
    report = benchmark.report(engine, runs, sha256)
    _keep(options, report)
    print("\n".join(benchmark.summary(runs)))
    if options.peers:
        _bench_peers(options, engine, plan, report)


def _bench_peers(
    options: argparse.Namespace, engine: Engine, plan: Plan, report: dict[str, Any]
) -> None:
    """The same with other engines; what has been measured is kept whatever ends it."""
    from engine.peers.bench import add_peers, find_program
    from engine.peers.table import markdown

    program = find_program(options.llama_server) if options.llama_server else None
    try:
        with progress_bar() as told:
            add_peers(engine, plan, report, program=program, told=told)
    finally:
        _keep(options, report)
        table = markdown(report)
        if options.table is not None:
            options.table.write_text(table, encoding="utf-8")
        print("\n" + table, end="")


def _check_peers(options: argparse.Namespace, params: ReplyParams) -> None:
    """See, before anything is measured, that what was asked of the peers can be done."""
    from engine.peers.bench import check_params, find_program

    if not options.peers:
        if options.llama_server or options.table:
            raise EngineError("--llama-server and --table belong to --peers.")
        return
    check_params(params)
    if options.llama_server:
        find_program(options.llama_server)


def _train(options: argparse.Namespace) -> None:
    from engine.training import command

    engine, stop = _load(options), threading.Event()
    with _stopped_by_interrupt(stop):
        command.run(options, engine, stop)


def _keep(options: argparse.Namespace, report: dict[str, Any]) -> None:
    if options.json is not None:
        text = json.dumps(report, ensure_ascii=False, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")


def _check_writable(path: Path) -> None:
    """See, before anything is measured, that the figures can be kept."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise EngineError(
            f"The figures can't be written to {path}. Choose a file in a folder of yours."
        )


def _load(options: argparse.Namespace) -> Engine:
    from engine.engine import Engine

    def progress(text: str, share: float | None) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text} …" if share != 1.0 else "\r\x1b[K", end="", file=sys.stderr)

    return Engine.load(
        options.target,
        device=options.device,
        dtype=options.dtype,
        threads=options.threads,
        progress=progress,
    )


def _check_drafters(specs: Sequence[str]) -> None:
    """Before a model is loaded for them."""
    from engine.drafters.listing import family_of

    for spec in specs:
        family_of(spec)


def _tell(engine: Engine, drafters: Sequence[str]) -> None:
    """What to know of the target and of these drafters here."""
    for note in engine.notes:
        print(note, file=sys.stderr)
    for choice in engine.drafter_choices():
        if choice.note and choice.spec in drafters:
            print(f"{choice.label}: {choice.note}.", file=sys.stderr)


def _reply_params(options: argparse.Namespace) -> ReplyParams:
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__)
    parser.add_argument("--version", action="version", version=f"Draftlight {__version__}")
    commands = parser.add_subparsers(required=True, metavar="chat|bench|train")
    shared = _shared_options()

    chat = commands.add_parser("chat", parents=[shared], help="talk to a model in the terminal")
    chat.add_argument("prompt", nargs="?", help="one message; without it, a conversation")
    chat.add_argument(
        "--drafter", default="auto", help="auto, off, ngram, layer-skip@20, draft-model:PATH …"
    )
    chat.add_argument("--system", default="", metavar="TEXT", help="a system prompt")
    chat.set_defaults(run=_chat, max_new_tokens=512)

    bench = commands.add_parser("bench", parents=[shared], help="run prompts with several drafters")
    bench.add_argument("--drafters", default="auto", metavar="D,D,…", help="besides off")
    bench.add_argument("--prompts", type=Path, default=_SHIPPED_PROMPTS, metavar="FILE.jsonl")
    bench.add_argument("--repeats", type=int, default=1, metavar="N")
    bench.add_argument("--json", type=Path, metavar="OUT", help="write every run to a file")
    bench.add_argument("--peers", action="store_true", help="measure other engines beside ours")
    bench.add_argument("--llama-server", metavar="PROGRAM", help="where it is, if not on the path")
    bench.add_argument("--table", type=Path, metavar="OUT.md", help="write the peers' table")
    bench.set_defaults(run=_bench, max_new_tokens=128)

    train = commands.add_parser("train", parents=[_target_options()], help="train a drafter")
    add_train_options(train)
    train.set_defaults(run=_train)
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = _target_options()
    add = shared.add_argument
    add("--draft-length", type=positive, metavar="N", help="tokens ahead; without it as it pays")
    add("--tree-nodes", type=natural, default=0, metavar="N", help="for drafters of trees (0)")
    add("--rule", choices=[str(rule) for rule in Rule], default=str(Rule.COUPLED))
    add("--temperature", type=float, default=0.0, metavar="T", help="0, the default, is greedy")
    add("--top-k", type=int, default=0, metavar="N", help="0 for all (0)")
    add("--top-p", type=float, default=1.0, metavar="P", help="1 for all (1)")
    add("--min-p", type=float, default=0.0, metavar="P", help="0 for all (0)")
    add("--repetition-penalty", type=float, default=1.0, metavar="R", help="1 for none (1)")
    add("--seed", type=int, default=0, metavar="N", help="0")
    add("--max-new-tokens", type=int, metavar="N", help="chat 512, bench 128")
    add("--stop", action="append", default=[], metavar="TEXT", help="may be given several times")
    return shared


def _target_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    add = options.add_argument
    add("--target", default="default", metavar="default|PATH", help="a GGUF file, or a folder")
    add("--device", default="auto", help="auto, cpu, cuda:0, mps")
    add(
        "--dtype",
        default="auto",
        help="auto, bfloat16, float16, float32, float64, packed, int8, int4",
    )
    add("--threads", type=positive, metavar="N", help="of the CPU; torch's own choice without it")
    return options


if __name__ == "__main__":
    sys.exit(main())
