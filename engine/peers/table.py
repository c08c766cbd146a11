"""The bench's file as Markdown: speeds by category, ratios to each peer, whose texts hold still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.benchmark import short_spec
from engine.peers.ratios import ALL, DECODING, WHOLE, groups, own_rows, peer_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Record = Mapping[str, Any]

_NONE = "–"
_SAME = "same text as its own plain"


def markdown(report: Record) -> str:
    """The table of one run of `bench --peers`, with what a reader must know to judge it."""
    parts = [
        _heading(report),
        "Tokens per second of decoding, the median of each category's prompts:",
        _speeds(report, DECODING),
        "Tokens per second of the whole reply, the reading of the prompt included:",
        _speeds(report, WHOLE),
    ]
    if report["peers"]["runs"]:
        parts += [
            "Ours ÷ the peer's best mode, the median of the prompts' ratios:",
            _ratios(report),
        ]
    return "\n\n".join([*parts, *report["peers"]["notes"]]) + "\n"


def _heading(report: Record) -> str:
    peers, versions = report["peers"], report["versions"]
    engines = dict.fromkeys(record["engine"] for record in peers["runs"])
    names = [f"Draftlight {versions['draftlight']}", *engines]
    names += [f"{library} {versions[library]}" for library in ("torch", "python")]
    threads = "1 thread" if report["threads"] == 1 else f"{report['threads']} threads"
    repeats = "" if peers["repeats"] == 1 else f"medians of {peers['repeats']} repeats, "
    return (
        f"Made by `python -m engine bench --peers` on {peers['date']}: {peers['target']}, "
        f"{len(groups(report)[ALL])} prompts, at most {peers['max_new_tokens']} new tokens, "
        f"temperature 0, {repeats}{threads}, {peers['machine']}; {', '.join(names)}."
    )


def _speeds(report: Record, measure: str) -> str:
    """The first of the two tables has the texts too."""
    prompts, has_texts = groups(report), measure == DECODING
    head = ["engine", "mode", *prompts, *([_SAME] if has_texts else [])]
    lines: list[list[str]] = []
    for row in [*own_rows(report), *peer_rows(report)]:
        speeds = [_number(row.speed(measure, prompts[group])) for group in prompts]
        same = _NONE if row.same is None else f"{row.same} of {row.prompts}"
        lines.append([row.engine, short_spec(row.mode), *speeds, *([same] if has_texts else [])])
    return _grid(head, lines)


def _ratios(report: Record) -> str:
    head = ["", "decoding: all prompts", "worst category", "whole: all prompts", "worst category"]
    found: dict[tuple[str, str], list[Record]] = {}
    for each in report["peers"]["ratios"]:
        found.setdefault((each["drafter"], each["engine"]), []).append(each)
    lines = [
        [f"{short_spec(drafter)} ÷ {engine}", *_compared(mine, DECODING), *_compared(mine, WHOLE)]
        for (drafter, engine), mine in found.items()
    ]
    return _grid(head, lines)


def _compared(found: Sequence[Record], measure: str) -> tuple[str, str]:
    """Over all prompts, and in the category where we do worst; each with the peer's mode there."""
    mine = [each for each in found if each["measure"] == measure]
    overall = next((each for each in mine if each["category"] == ALL), None)
    categories = [each for each in mine if each["category"] != ALL]
    worst = min(categories, key=lambda each: each["ratio"], default=None)
    return (
        f"{overall['ratio']:.2f} ({overall['best_mode']})" if overall else _NONE,
        f"{worst['ratio']:.2f} ({worst['category']}, {worst['best_mode']})" if worst else _NONE,
    )


def _grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown whose columns stand in line also where it is read as it is."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in [head, rule, *lines]
    )


def _number(speed: float | None) -> str:
    return _NONE if speed is None else f"{speed:.1f}"
