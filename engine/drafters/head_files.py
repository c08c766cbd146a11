"""The files of a head's folder: its config and its tensors, read without running any code."""

# torch's and safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import math
import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

Config = dict[str, Any]

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
_SAFE = ("model.safetensors", "medusa_lm_head.safetensors")
_PICKLED = ("medusa_lm_head.pt", "pytorch_model.bin")


def find_folder(path: str) -> Path:
    """The folder itself, also where one of its files was chosen.

    Raises:
        DrafterMismatch: there is no such folder.
    """
    found = Path(path).expanduser().absolute()
    if found.is_file():
        found = found.parent
    if not found.is_dir():
        raise DrafterMismatch(f"There is no folder at {found}.")
    return found


def read_config(folder: Path) -> Config:
    """What config.json says; nothing where there is none, as with some Medusa heads.

    Raises:
        DrafterMismatch: it can't be read.
    """
    file = folder / _CONFIG
    if not file.is_file():
        return {}
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(file) from error
    if not isinstance(config, dict):
        raise _damaged(file)
    return cast("Config", config)


def table(config: Config, name: str) -> Config:
    """A part of a config, empty where there is none."""
    value = config.get(name)
    return cast("Config", value) if isinstance(value, dict) else {}


def whole_number(config: Config, name: str) -> int | None:
    """A positive whole number of a config; None where there is no such thing."""
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return None
    return value


def positive_number(config: Config, name: str) -> float | None:
    """A number above 0 of a config; None where there is no such thing."""
    value = config.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0.0 < value < math.inf else None


def layers(config: Config, name: str) -> tuple[int, ...]:
    """A list of layers, which count from 0; empty where there is none."""
    value = config.get(name)
    numbers = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(number for number in numbers if isinstance(number, int))


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor by the name it has in the files.

    Safetensors come first. A pickle is read by torch's reader for weights alone, which builds
    tensors and refuses everything else.

    Raises:
        DrafterMismatch: no file of weights, or one that is damaged or holds more than weights.
    """
    tensors: dict[str, Tensor] = {}
    for file in _files(folder):
        tensors |= _read_safe(file) if file.suffix == ".safetensors" else _read_pickled(file)
    return tensors


def _files(folder: Path) -> Sequence[Path]:
    for name in _SAFE:
        if (folder / name).is_file():
            return [folder / name]
    if (folder / _INDEX).is_file():
        return _parts(folder)
    for name in _PICKLED:
        if (folder / name).is_file():
            return [folder / name]
    raise DrafterMismatch(
        f"The folder {folder.name} holds no heads: there is none of "
        f"{', '.join([*_SAFE, *_PICKLED])} in it."
    )


def _parts(folder: Path) -> Sequence[Path]:
    """The files that the index names; none outside the folder."""
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        names = {Path(str(name)).name for name in index["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / _INDEX) from error
    return [folder / name for name in sorted(names)]


def _read_safe(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(file) from error


def _read_pickled(file: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickles of an odd kind
            held = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DrafterMismatch(
            f"{file.name} in {file.parent.name} is damaged, or holds more than weights, which "
            "could run code; it was not opened."
        ) from error
    except Exception as error:  # torch's reader raises of every kind on damaged files
        raise _damaged(file) from error
    if not isinstance(held, dict):
        raise _damaged(file)
    named = cast("dict[object, object]", held)
    if not all(isinstance(name, str) for name in named):
        raise _damaged(file)
    return {str(name): part for name, part in named.items() if isinstance(part, Tensor)}


def _damaged(file: Path) -> DrafterMismatch:
    return DrafterMismatch(
        f"{file.name} in {file.parent.name} can't be read; it is damaged or incomplete."
    )
