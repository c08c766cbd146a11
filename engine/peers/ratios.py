"""A bench's records engine by engine: their speeds by category, and ours beside a peer's best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from engine.benchmark import OFF
from engine.peers.peer import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Record = Mapping[str, Any]

ALL = "all"
"""The group of all prompts, beside the categories."""

DECODING, WHOLE = "decoding", "whole"
"""Tokens a second of decoding alone, and with the reading of the prompt."""


@dataclass(frozen=True, slots=True)
class Row:
    """One engine in one mode.

    speeds: by measure and prompt, None where there was nothing to decode. same: how many texts
    equal the engine's own plain ones; None for the plain ones themselves.
    """

    engine: str
    mode: str
    speeds: Mapping[str, Mapping[str, float | None]]
    same: int | None

    @property
    def prompts(self) -> int:
        """How many were measured."""
        return len(self.speeds[DECODING])

    def speed(self, measure: str, prompts: Sequence[str]) -> float | None:
        """The median of some prompts; None unless all of them were measured."""
        speeds = self.speeds[measure]
        if not speeds.keys() >= set(prompts):
            return None
        return _median([speeds[prompt] for prompt in prompts])

    def ratio_to(self, other: Row, measure: str, prompts: Sequence[str]) -> float | None:
        """The median of some prompts' ratios; None unless both measured all of them."""
        ours, theirs = self.speeds[measure], other.speeds[measure]
        if not (ours.keys() & theirs.keys()) >= set(prompts):
            return None
        pairs = [(ours[prompt], theirs[prompt]) for prompt in prompts]
        return _median([mine / other if mine and other else None for mine, other in pairs])


def groups(report: Record) -> dict[str, list[str]]:
    """The prompts of each category as they come, and of all."""
    found: dict[str, list[str]] = {}
    everything: dict[str, str] = {run["prompt_id"]: run["category"] for run in report["runs"]}
    for prompt, category in everything.items():
        found.setdefault(category, []).append(prompt)
    return {**found, ALL: list(everything)}


def own_rows(report: Record) -> list[Row]:
    """A row for each of our drafters."""
    engine = f"Draftlight {report['versions']['draftlight']}"
    return _rows([{"engine": engine, "mode": run["drafter"], **run} for run in report["runs"]], OFF)


def peer_rows(report: Record) -> list[Row]:
    """A row for each mode of each peer."""
    return _rows(report["peers"]["runs"], PLAIN)


def ratios(report: Record) -> list[dict[str, Any]]:
    """Each of our drafters ÷ each peer's best mode, over all prompts and in each category.

    The best mode is chosen anew for each group of prompts: the one that leaves us least.
    """
    own, peers = own_rows(report), peer_rows(report)
    engines = dict.fromkeys(row.engine for row in peers)
    found: list[dict[str, Any]] = []
    for ours, engine, measure in product(own, engines, (DECODING, WHOLE)):
        for group, prompts in groups(report).items():
            modes = [(ours.ratio_to(row, measure, prompts), row) for row in peers]
            known = [
                (ratio, row.mode)
                for ratio, row in modes
                if ratio is not None and row.engine == engine
            ]
            if known:
                ratio, mode = min(known)
                names = {"drafter": ours.mode, "engine": engine, "measure": measure}
                found.append({**names, "category": group, "best_mode": mode, "ratio": ratio})
    return found


def _rows(records: Sequence[Record], plain: str) -> list[Row]:
    rows: list[Row] = []
    for engine, mode in dict.fromkeys((record["engine"], record["mode"]) for record in records):
        mine = [each for each in records if (each["engine"], each["mode"]) == (engine, mode)]
        speeds = {
            DECODING: {each["prompt_id"]: each["tokens_per_second"] for each in mine},
            WHOLE: {each["prompt_id"]: _whole(each) for each in mine},
        }
        same = sum(bool(each["identical_to_baseline"]) for each in mine)
        rows.append(Row(engine, mode, speeds, None if mode == plain else same))
    return rows


def _whole(record: Record) -> float:
    return len(record["ids"]) / (record["prefill_seconds"] + record["decode_seconds"])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
