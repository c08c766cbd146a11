"""The tokenizer beside a model; one made from a GGUF file is kept in the user's cache folder."""

# transformers' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from engine.errors import ModelError
from engine.models.folders import cache_folder
from engine.models.gguf import GgufFile

if TYPE_CHECKING:
    from engine.models.catalog import ModelSource


def load_tokenizer(source: ModelSource) -> PreTrainedTokenizerBase:
    """The tokenizer of a model.

    A GGUF file's takes transformers seconds to convert, so the result is kept under the hash of the
    file's header, which is all that it is made of; one that cannot be read any more is made anew.

    Raises:
        ModelError: there is none that can be read.
    """
    if not source.is_gguf:
        return _read(source, source.folder)
    kept = cache_folder() / "tokenizers" / GgufFile(source.path).header_sha256()
    if kept.is_dir():
        try:
            return _read(source, kept)
        except ModelError:
            shutil.rmtree(kept, ignore_errors=True)
    tokenizer = _read(source, source.folder, gguf_file=source.path.name)
    # Without room or right to keep it, the next start is slower and nothing else.
    with suppress(OSError):
        _keep(tokenizer, kept)
    return tokenizer


def _read(
    source: ModelSource, folder: Path, *, gguf_file: str | None = None
) -> PreTrainedTokenizerBase:
    options = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), **options, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers and gguf raise of every kind on damaged files
        raise ModelError(
            f"The tokenizer of {source.path.name} could not be read; the file may be damaged or "
            f"incomplete ({type(error).__name__})."
        ) from error
    return cast("PreTrainedTokenizerBase", tokenizer)


def _keep(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Save it whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as making:
        made = Path(making) / "tokenizer"
        tokenizer.save_pretrained(made)
        os.replace(made, folder)
