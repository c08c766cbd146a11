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
from engine.models.native.gguf_config import read_config
from engine.models.native.gguf_source import knows
from engine.models.spelling import Spelling, read_pieces

if TYPE_CHECKING:
    from engine.models.catalog import ModelSource

Tokenizer = PreTrainedTokenizerBase
"""What transformers makes of a model's tokenizer files."""

_PROBE = "The words (of 2 or more) go on:\n  and so on."
"""What tells how a tokenizer writes its pieces."""

_BEGIN_IN_TEMPLATE = "bos_token"


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


def spelling_of(tokenizer: PreTrainedTokenizerBase, name: str) -> Spelling:
    """How a model's tokenizer spells; name: the model's.

    Raises:
        ModelError: in a way that is not known here.
    """
    special = set(tokenizer.all_special_tokens)
    controls = {
        token: added.content
        for token, added in tokenizer.added_tokens_decoder.items()
        if added.special or added.content in special
    }

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    pieces = {token: piece for piece, token in tokenizer.get_vocab().items()}
    read = read_pieces(pieces, encode(_PROBE), _PROBE)
    if read is None:
        raise ModelError(
            f"The tokenizer of {name} spells text in a way that Draftlight does not know, so it "
            "can't be brought together with another one. Choose two models of the same family."
        )
    spelled, stand_ins = read
    begin = cast("int | None", tokenizer.bos_token_id)
    return Spelling(
        name,
        spelled,
        encode,
        controls=controls,
        begin_id=begin if _begins_every_text(tokenizer, begin) else None,
        end_id=cast("int | None", tokenizer.eos_token_id),
        stand_ins=stand_ins,
    )


def _begins_every_text(tokenizer: PreTrainedTokenizerBase, begin: int | None) -> bool:
    """Whether the tokenizer itself puts it there, or its template by its role, not its name."""
    if begin is None:
        return False
    template = cast("object", tokenizer.chat_template)
    return begin in tokenizer.encode("") or _BEGIN_IN_TEMPLATE in str(template)


def _read(
    source: ModelSource, folder: Path, *, gguf_file: str | None = None
) -> PreTrainedTokenizerBase:
    options = {} if gguf_file is None else {"gguf_file": gguf_file}
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), **options, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers and gguf raise of every kind on damaged files
        if gguf_file is not None:
            _check_header(GgufFile(source.path), str(error))
        raise ModelError(
            f"The tokenizer of {source.path.name} could not be read; it may be damaged or "
            "incomplete. Get the model again."
        ) from error
    return cast("PreTrainedTokenizerBase", tokenizer)


def _check_header(file: GgufFile, complaint: str) -> None:
    """Say what is wrong in a header of which transformers reads more than the tokenizer.

    Raises:
        ModelError: something other than the tokenizer is.
    """
    family = file.metadata.get("general.architecture")
    if knows(file):
        read_config(file)
    elif f"architecture {family}" in complaint:
        raise ModelError(
            f'{file.path.name} is of the architecture "{family}", which Draftlight can\'t run. '
            "Choose another model."
        )


def _keep(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Save it whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as making:
        made = Path(making) / "tokenizer"
        tokenizer.save_pretrained(made)
        os.replace(made, folder)
