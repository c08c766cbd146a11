"""The models that draft beside a target: tokenizers first, weights when wanted, each read once."""

# transformers' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import AUTO, PACKED_BITS
from engine.models.catalog import ModelSource, borrowing_folder, find_model
from engine.models.loading import load_lm, why_not_packed
from engine.models.native.borrowing import load_borrowing
from engine.models.tokenizer import load_tokenizer, spelling_of

if TYPE_CHECKING:
    from pathlib import Path

    from engine.models.causal_lm import CausalLM
    from engine.models.spelling import Spelling
    from engine.models.tokenizer import Tokenizer

_NEARLY_ALL = 0.9


class DraftModels:
    """Models by their path, the target among them. device, dtype: the target's, as asked for."""

    def __init__(
        self,
        source: ModelSource,
        lm: CausalLM,
        tokenizer: Tokenizer,
        *,
        device: str,
        dtype: str,
    ) -> None:
        self._target = source
        self._device = device
        self._dtype = dtype
        self._lms: dict[str, CausalLM] = {str(source.path): lm}
        self._tokenizers: dict[str, Tokenizer] = {str(source.path): tokenizer}
        self._spellings: dict[str, Spelling] = {}

    def lm(self, path: str) -> CausalLM:
        """A model ready to draft.

        Raises:
            EngineError: it cannot be loaded.
        """
        if (folder := borrowing_folder(path)) is not None:
            return self._borrowing(folder)
        source = find_model(path)
        key = str(source.path)
        if key not in self._lms:
            can_follow = why_not_packed(source, self._device, self._dtype) is None
            loaded = load_lm(
                source,
                device=self._device,
                dtype=self._dtype if can_follow else AUTO,
                vocabulary=len(self._tokenizer(source)),
                end_ids=frozenset(),
            )
            self._lms[key] = loaded.lm
        return self._lms[key]

    def shares_ids(self, path: str) -> bool:
        """Whether a model means the same as the target by ids that both have, nearly all of them.

        Added controls and padding may be missing on either side.
        """
        if borrowing_folder(path) is not None:
            return True
        ours = self._tokenizer(self._target).get_vocab()
        theirs = self._tokenizer(find_model(path)).get_vocab()
        common = ours.items() & theirs.items()
        taken = set(theirs.values())
        differ = any(token in taken for _, token in ours.items() - common)
        return not differ and len(common) >= _NEARLY_ALL * len(ours)

    def spelling(self, path: str | None) -> Spelling:
        """How a model's tokenizer spells; the target's where there is no path."""
        source = self._target if path is None else find_model(path)
        key = str(source.path)
        if key not in self._spellings:
            self._spellings[key] = spelling_of(self._tokenizer(source), source.name)
        return self._spellings[key]

    def _borrowing(self, folder: Path) -> CausalLM:
        key = str(folder)
        if key not in self._lms:
            bits = PACKED_BITS.get(self._dtype)
            target = self._lms[str(self._target.path)]
            self._lms[key] = load_borrowing(folder, target, device=self._device, bits=bits)
        return self._lms[key]

    def _tokenizer(self, source: ModelSource) -> Tokenizer:
        key = str(source.path)
        if key not in self._tokenizers:
            self._tokenizers[key] = load_tokenizer(source)
        return self._tokenizers[key]
