"""The command `python -m engine bench`: figures to a file and a summary, peers beside them."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from engine import benchmark
from engine.console.loading import load, tell
from engine.console.options import reply_params
from engine.console.printing import progress_bar
from engine.drafters.listing import check_spec, known_family
from engine.errors import EngineError
from engine.peers.bench import add_peers, check_params, find_program
from engine.peers.table import markdown

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from engine.engine import Engine
    from engine.params import ReplyParams


def run(options: argparse.Namespace) -> int:
    """Measure as asked, and keep what was measured whatever ends it; the exit status.

    Raises:
        EngineError: something can't be read, used or written; the sentence says what.
    """
    params = reply_params(options)
    prompts, sha256 = benchmark.read_prompts(options.prompts)
    _check_peers(options, params)
    for path in filter(None, (options.json, options.table)):
        _check_writable(path)
    drafters = listed(options.drafters)
    for spec in drafters:
        check_spec(spec)
    engine = load(options)
    tell(engine, drafters)
    plan = benchmark.Plan(
        prompts=prompts,
        drafters=drafters,
        params=params,
        draft_length=options.draft_length,
        tree_nodes=options.tree_nodes,
        repeats=options.repeats,
    )
    report = _measured(options, engine, plan, sha256)
    if options.peers:
        _run_peers(options, engine, plan, report)
    return 1 if report["notes"] else 0


def listed(specs: str) -> list[str]:
    """The drafters of a list with commas; what names none belongs to the path or numbers before."""
    found: list[str] = []
    for part in specs.split(","):
        if found and any(sign in found[-1] for sign in ":@") and not known_family(part.strip()):
            found[-1] += f",{part}"
        else:
            found.append(part.lstrip())
    return [spec.rstrip() for spec in found if spec.strip()]


def _measured(
    options: argparse.Namespace, engine: Engine, plan: benchmark.Plan, sha256: str
) -> dict[str, Any]:
    """Our own figures, written and summed up as far as they got, whatever ends it."""
    found = benchmark.Findings(engine, plan)
    try:
        with progress_bar() as told:
            benchmark.run(engine, plan, found, told)
    finally:
        runs = found.records()
        report = benchmark.report(engine, runs, found.notes, prompts_sha256=sha256)
        if runs:
            _keep(options, report)
            print("\n".join(benchmark.summary(runs)))
        for note in found.notes:
            print(f"draftlight: {note}", file=sys.stderr)
    return report


def _run_peers(
    options: argparse.Namespace, engine: Engine, plan: benchmark.Plan, report: dict[str, Any]
) -> None:
    """The same with other engines; what has been measured is kept whatever ends it."""
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
    if not options.peers:
        if options.llama_server or options.table:
            raise EngineError("--llama-server and --table belong to --peers.")
        return
    check_params(params)
    if options.llama_server:
        find_program(options.llama_server)


def _check_writable(path: Path) -> None:
    """See, before anything is measured, that the figures can be kept."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise EngineError(
            f"The figures can't be written to {path}. Choose a file in a folder of yours."
        )


def _keep(options: argparse.Namespace, report: dict[str, Any]) -> None:
    if options.json is not None:
        text = json.dumps(report, ensure_ascii=False, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
