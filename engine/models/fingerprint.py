"""Which model it is: what texts, features and checkpoints made with one are tied to."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.models.catalog import ModelSource

_SAMPLES = 64
_SAMPLE_BYTES = 4096
_BEGINNING_BYTES = 1 << 20


def fingerprint(source: ModelSource) -> str:
    """A hash of a model's config and of pieces of its weights; reads little of a large file.

    Raises:
        ModelError: a file of it can't be read.
    """
    config = source.path / "config.json"
    files = [source.path] if source.is_gguf else [config, *source.path.glob("*.safetensors")]
    digest = hashlib.sha256()
    try:
        for file in sorted(files):
            _add(digest, file)
    except OSError as error:
        raise ModelError(f"{source.path.name} can't be read: {error.strerror}.") from error
    return digest.hexdigest()[:32]


def _add(digest: hashlib._Hash, path: Path) -> None:  # pyright: ignore[reportPrivateUsage]
    """Its size, its beginning, and samples at equal distances to its end."""
    size = path.stat().st_size
    digest.update(f"{size} ".encode())
    with path.open("rb") as file:
        digest.update(file.read(_BEGINNING_BYTES))
        for sample in range(_SAMPLES):
            file.seek(
                (size - _SAMPLE_BYTES) * (sample + 1) // _SAMPLES if size > _SAMPLE_BYTES else 0
            )
            digest.update(file.read(_SAMPLE_BYTES))
