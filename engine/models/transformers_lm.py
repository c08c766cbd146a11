"""Any causal language model of transformers; the only file, with its cache, that runs one."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    get_layer_types_and_kwargs,
)

from engine.draft import (
    NO_DRAFT,
    NO_PASSENGERS,
    Draft,
    Passengers,
    row_ids,
    row_mask,
    row_positions,
    rows_behind,
)
from engine.errors import ModelError
from engine.models.causal_lm import CHUNK_ROWS, Chunk, Scores
from engine.models.kv_memo import KVMemo
from engine.models.memory import memory_errors
from engine.models.transformers_cache import BufferedRows, ForwardOnlyRows, RowBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformers import PreTrainedConfig, PreTrainedModel

_REWINDABLE_LAYERS = (DynamicLayer, DynamicSlidingWindowLayer)
_SLIDING = "sliding_attention"


class TransformersLM:
    """A `CausalLM` over a transformers model.

    Cache rows live in buffers of our own, full-length also where a layer's attention slides: the
    window is a matter of the mask, so that every row can be taken back. Models with other kinds of
    memory (recurrent states, shared layers) decode with their own cache and cannot draft.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        vocabulary: int | None = None,
        end_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._model = model
        self._config = model.config.get_text_config(decoder=True)
        self._layer_types: list[str] = get_layer_types_and_kwargs(self._config)[0]
        width = int(self._config.vocab_size)
        self.vocabulary = min(width, vocabulary or width)
        self.end_ids = end_ids | _ids(getattr(model.generation_config, "eos_token_id", None))
        self.num_layers = int(self._config.num_hidden_layers)
        self.context_length = int(getattr(self._config, "max_position_embeddings", None) or 2048)
        layers = DynamicCache(config=self._config).layers
        self.can_rewind = all(type(layer) in _REWINDABLE_LAYERS for layer in layers) and set(
            self._layer_types
        ) <= {"full_attention", _SLIDING}

    def new_memo(self) -> KVMemo:
        """An empty memo for this model."""
        if self.can_rewind:
            return KVMemo(BufferedRows(Cache(layers=[RowBuffer() for _ in self._layer_types])))
        return KVMemo(ForwardOnlyRows(lambda: DynamicCache(config=self._config)))

    def memo_behind(self, memo: KVMemo) -> KVMemo | None:
        """None: transformers' layers own their cache rows."""
        del memo

    def read(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        taps: Sequence[int] = (),
        replies: Sequence[range] = (),
    ) -> Iterator[Chunk]:
        """Bring the memo to hold all of `ids` but the last; between chunks one may stop.

        One path writes all rows here, so `replies` make no difference.
        """
        start = memo.rewind(ids)
        if start and start < len(ids) - 1 and not self.can_rewind:
            # Recurrent layers of transformers go on by one row at a time, or start anew.
            memo.clear()
            start = 0
        while start < len(ids) - 1:
            end = min(len(ids) - 1, self._chunk_end(start))
            chunk = ids[start:end]
            count = len(chunk)
            mask = torch.ones(count, count, dtype=torch.bool).tril()
            _, hidden = self._forward(memo, chunk, range(start, end), mask, logit_rows=1, taps=taps)
            memo.keep(chunk, range(count))
            yield Chunk(first=start, rows=count, hidden=hidden, done=end)
            start = end

    def score(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        draft: Draft = NO_DRAFT,
        passengers: Passengers = NO_PASSENGERS,
        taps: Sequence[int] = (),
    ) -> Scores:
        """Score the last id, its draft and the passengers, reading first what the memo lacks."""
        start = memo.rewind(ids)
        if len(ids) - 1 - start >= (CHUNK_ROWS if self.can_rewind else 1):
            for _ in self.read(memo, ids):
                pass
            start = len(memo.ids)
        before, root = tuple(ids[start:-1]), ids[-1]
        wanted = 1 + len(draft) + len(passengers)
        logits, hidden = self._forward(
            memo,
            (*before, *row_ids(root, draft, passengers)),
            (*range(start, len(ids) - 1), *row_positions(len(ids) - 1, draft, passengers)),
            rows_behind(len(before), row_mask(draft, passengers)),
            logit_rows=wanted,
            taps=taps,
        )
        return Scores(
            logits=logits,
            hidden={tap: states[-wanted:] for tap, states in hidden.items()},
            memo=memo,
            root=root,
            draft=draft,
            rows_before_root=before,
        )

    def first_layers(self, count: int) -> TransformersLM:
        """The model cut to its first layers, with its own norm and head; weights are shared.

        Raises:
            ModelError: a count that leaves no layer out or none in, or a model built in another
            way.
        """
        if not 0 < count < self.num_layers:
            raise ModelError(
                f"Layer skip needs an exit between 1 and {self.num_layers - 1}; {count} is none."
            )
        cut = _with_first_layers(self._model, count)
        return TransformersLM(cut, vocabulary=self.vocabulary, end_ids=self.end_ids)

    @torch.inference_mode()
    def embed(self, ids: Tensor) -> Tensor:
        """Token embeddings: (n,) ids to (n, hidden size)."""
        return self._model.get_input_embeddings()(ids)

    @torch.inference_mode()
    def head(self, states: Tensor) -> Tensor:
        """Final normed states (n, hidden size) to logits (n, vocabulary)."""
        return self._logits(cast("nn.Module", self._model.get_output_embeddings())(states))

    @torch.inference_mode()
    def head_rows(self, ids: Tensor) -> Tensor:
        """What the head multiplies a state with: (n,) ids to (n, hidden size)."""
        return cast("Tensor", cast("nn.Module", self._model.get_output_embeddings()).weight)[ids]

    def _chunk_end(self, start: int) -> int:
        """Where a prompt's chunk ends: on the grid, or never."""
        return (start // CHUNK_ROWS + 1) * CHUNK_ROWS if self.can_rewind else self.context_length

    @torch.inference_mode()
    def _forward(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        positions: Sequence[int],
        mask: Tensor,
        *,
        logit_rows: int,
        taps: Sequence[int],
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """Run new rows behind the memo's; mask: (rows, rows), which of them see which."""
        device = cast("Tensor", self._model.get_input_embeddings().weight).device
        rows = cast("BufferedRows | ForwardOnlyRows", memo.rows)
        with memory_errors(str(device)):
            output = self._model(
                input_ids=torch.tensor([list(ids)], device=device),
                position_ids=torch.tensor([list(positions)], device=device),
                attention_mask=self._masks(len(memo.ids), positions, mask, device),
                cache=rows.cache,
                use_cache=True,
                logits_to_keep=logit_rows,
                output_hidden_states=bool(taps),
            )
            logits = self._logits(output.logits[0])
        hidden = {tap: output.hidden_states[tap][0] for tap in taps}
        return logits, hidden

    def _logits(self, logits: Tensor) -> Tensor:
        logits = logits[..., : self.vocabulary]
        return logits if logits.dtype == torch.float64 else logits.float()

    def _masks(
        self, prefix: int, positions: Sequence[int], mask: Tensor, device: torch.device
    ) -> Tensor | dict[str, Tensor] | None:
        """What each row sees, (1, 1, rows, prefix + rows); a dict where layers differ in kind.

        The window of a sliding layer counts positions, not rows: siblings stand at the same one.
        """
        if not self.can_rewind:
            return None
        sees = torch.cat([torch.ones(len(mask), prefix, dtype=torch.bool), mask], dim=1)
        masks: dict[str, Tensor] = {}
        for kind in dict.fromkeys(self._layer_types):
            seen = sees
            if kind == _SLIDING:
                keys = torch.tensor([*range(prefix), *positions])
                queries = torch.tensor(list(positions))
                seen = sees & (queries[:, None] - keys[None, :] < self._config.sliding_window)
            masks[kind] = self._spelled(seen.to(device))[None, None]
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _spelled(self, sees: Tensor) -> Tensor:
        """Boolean for sdpa; eager attention adds its mask, and would silently take True for 1."""
        if self._config._attn_implementation != "eager":  # pyright: ignore[reportPrivateUsage]
            return sees
        dtype = self._model.dtype
        blocked = torch.full(sees.shape, torch.finfo(dtype).min, dtype=dtype, device=sees.device)
        return blocked.masked_fill_(sees, 0.0)


def _with_first_layers(model: PreTrainedModel, count: int) -> PreTrainedModel:
    """Shallow copies of the model and its decoder, with fewer layers and a config that says so."""
    decoder = model.base_model
    layers = getattr(decoder, "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise ModelError("Layer skip needs a model whose decoder layers stand in one list.")
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = count
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:count]
    cut_decoder = _shallow(decoder, config)
    cut_decoder.layers = nn.ModuleList(list(layers)[:count])
    cut = _shallow(model, config)
    setattr(cut, model.base_model_prefix, cut_decoder)
    return cast("PreTrainedModel", cut)


def _shallow(module: nn.Module, config: PreTrainedConfig) -> nn.Module:
    twin = copy.copy(module)
    # Else the copy would share its children's register.
    twin.__dict__["_modules"] = dict(module._modules)  # pyright: ignore[reportPrivateUsage]
    twin.__dict__.pop("forward", None)  # accelerate binds the original's own forward here
    twin.__dict__["config"] = config
    return twin


def _ids(value: int | Sequence[int] | None) -> frozenset[int]:
    if value is None:
        return frozenset()
    return frozenset([value] if isinstance(value, int) else value)
