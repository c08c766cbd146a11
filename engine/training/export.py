"""A trained drafter's folder: tensors, config and card."""

# safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from safetensors.torch import save

from engine.training.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from engine.training.learner import Export

TENSORS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"


def write_folder(folder: Path, export: Export, card: str) -> None:
    """Write or replace a drafter.

    Raises:
        EngineError: it can't be written.
    """
    tensors = {name: held.contiguous() for name, held in sorted(export.tensors.items())}
    config = json.dumps(export.config, indent=2) + "\n"
    replace_file(folder / TENSORS, save(tensors, metadata={"format": "pt"}))
    replace_file(folder / CONFIG, config.encode())
    replace_file(folder / CARD, card.encode())
