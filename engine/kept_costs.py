"""Measured costs on disk, a small file for each device, model and number of threads."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch

from engine.costs import LENGTHS, MOST_ROWS
from engine.devices import devices

if TYPE_CHECKING:
    from pathlib import Path

_FORM = 2
"""Counts the forms that this file has had."""

_SLOWEST = 3600.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What trying a family of drafters has shown. choice: what gained most, None if nothing did."""

    choice: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """readings: per cache length and count of rows the seconds. trials: by family."""

    readings: dict[int, dict[int, float]] = field(default_factory=dict[int, dict[int, float]])
    trials: dict[str, Trial] = field(default_factory=dict[str, Trial])


class CostFile:
    """What was measured with a model, on a device, with as many threads as torch has now.

    folder: where such files lie. model: its file or folder. dtype: the form its weights have.
    """

    def __init__(self, folder: Path, model: Path, *, device: str, dtype: str) -> None:
        self._key = _key(model, device, dtype)
        self._path = folder / f"{hashlib.sha256(self._key.encode()).hexdigest()[:24]}.json"

    def read(self) -> Kept:
        """What was kept; nothing where the file is missing, damaged or another's."""
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            return _kept(data) if data["key"] == self._key else Kept()
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return Kept()

    def write(self, kept: Kept) -> None:
        """Keep it, whole or not at all; a folder that takes no files is no trouble."""
        trials = {family: trial.choice for family, trial in kept.trials.items()}
        text = json.dumps({"key": self._key, "seconds": kept.readings, "trials": trials})
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix="keeping-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, self._path)


def _key(model: Path, device: str, dtype: str) -> str:
    """Everything that decides what a pass costs."""
    labels = [place.label for place in devices() if place.id.partition(":")[0] in device]
    facts = model.stat()
    file = (str(model), facts.st_size, facts.st_mtime_ns)
    place = (device, *labels, platform.machine(), torch.get_num_threads(), torch.__version__)
    return " | ".join(map(str, (_FORM, *place, dtype, *file)))


def _kept(data: Any) -> Kept:  # noqa: ANN401 - whatever a JSON file may hold
    """The file's content.

    Raises:
        ValueError: it is not what was written; or KeyError, TypeError, AttributeError.
    """
    readings = {
        int(length): {int(rows): float(seconds) for rows, seconds in cells.items()}
        for length, cells in cast("dict[str, dict[str, float]]", data["seconds"]).items()
    }
    for length, cells in readings.items():
        if length not in LENGTHS:
            raise ValueError(length)
        for rows, seconds in cells.items():
            if not (0 < rows <= MOST_ROWS and 0.0 < seconds < _SLOWEST and math.isfinite(seconds)):
                raise ValueError(rows)
    trials = cast("dict[str, str | None]", data["trials"])
    if not all(choice is None or type(choice) is str for choice in trials.values()):
        raise ValueError(trials)
    return Kept(readings, {family: Trial(choice) for family, choice in trials.items()})
