"""transformers' `generate` as a peer: greedy, plain and with its own speculation.

In bfloat16, or in float32 where the processor only emulates that: in which it is faster.
"""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch

from engine.devices import fast_dtype
from engine.errors import EngineError
from engine.events import FinishReason
from engine.models.memory import give_back_freed_memory, is_memory_error, memory_errors
from engine.models.transformers_loading import load_model
from engine.peers.peer import PLAIN, Answer, PeerError, PeerReply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from torch import Tensor

    from engine.models.catalog import ModelSource

_LOOKUP_TOKENS = 8
_ASSISTANT_TOKENS = 5
_LOOKUP = f"prompt lookup ({_LOOKUP_TOKENS})"
_ASSISTANT = f"assistant model ({_ASSISTANT_TOKENS})"


class TransformersPeer:
    """Loads the target once, for all of its modes.

    end_ids: where a reply ends, as with ours. assistant: a draft model, where one is given.
    """

    name = f"transformers {version('transformers')}"

    def __init__(
        self,
        target: ModelSource,
        assistant: ModelSource | None,
        *,
        device: str,
        end_ids: frozenset[int],
        decode: Callable[[Sequence[int]], str],
    ) -> None:
        self.modes = (PLAIN, _LOOKUP, *([_ASSISTANT] if assistant else []))
        self._target = target
        self._assistant = assistant
        self._device = device
        self._dtype = fast_dtype(device)
        self.dtype = str(self._dtype).removeprefix("torch.")
        self._end_ids = sorted(end_ids)
        self._decode = decode
        self._models: dict[str, Any] = {}

    @contextmanager
    def opened(self, mode: str) -> Generator[Answer]:
        """The model, with what the mode asks of `generate`.

        Raises:
            EngineError: a model that transformers cannot load.
        """
        model = self._model("target", self._target)
        options: dict[str, Any] = {}
        if mode == _LOOKUP:
            options["prompt_lookup_num_tokens"] = _LOOKUP_TOKENS
        if mode == _ASSISTANT and self._assistant is not None:
            assistant = self._model("assistant", self._assistant)
            assistant.generation_config.num_assistant_tokens = _ASSISTANT_TOKENS
            options["assistant_model"] = assistant

        def answer(ids: Sequence[int], max_new_tokens: int) -> PeerReply:
            with memory_errors(self._device), _failures_as_sentences():
                return self._answer(model, ids, {"max_new_tokens": max_new_tokens, **options})

        yield answer

    def close(self) -> None:
        """Let the models go."""
        self._models.clear()
        give_back_freed_memory()

    def _model(self, role: str, source: ModelSource) -> Any:  # noqa: ANN401 - a transformers model
        if role not in self._models:
            model = load_model(source, device=self._device, dtype=self._dtype)
            # Greedy and nothing else: the makers' penalties would make another text.
            model.generation_config = type(model.generation_config)()
            self._models[role] = model
        return self._models[role]

    @torch.inference_mode()
    def _answer(self, model: Any, ids: Sequence[int], options: dict[str, Any]) -> PeerReply:  # noqa: ANN401
        prompt = torch.tensor([list(ids)], device=model.get_input_embeddings().weight.device)
        clock = _Clock()
        output = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            eos_token_id=self._end_ids or None,
            pad_token_id=self._end_ids[0] if self._end_ids else 0,
            streamer=clock,
            **options,
        )
        ended = time.perf_counter()
        new = [int(token) for token in output[0, len(ids) :]]
        stopped = bool(new) and new[-1] in self._end_ids
        return PeerReply(
            ids=tuple(new),
            text=self._decode(new[:-1] if stopped else new),
            first_tokens=clock.first_tokens,
            prefill_seconds=clock.first_at - clock.began,
            decode_seconds=ended - clock.first_at,
            finish_reason=FinishReason.END_OF_TURN if stopped else FinishReason.LENGTH,
        )


class _Clock:
    """A streamer, as `generate` calls it: with the prompt first, then with each round's tokens.

    first_at, first_tokens: when the pass over the prompt was done, and what it brought.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.first_at = 0.0
        self.first_tokens = 0
        self._calls = 0

    def put(self, tokens: Tensor) -> None:
        """Note the time of the first tokens after the prompt."""
        self._calls += 1
        if self._calls == _FIRST_TOKENS_CALL:
            self.first_at = time.perf_counter()
            self.first_tokens = tokens.numel()

    def end(self) -> None:
        """Nothing is held back."""


_FIRST_TOKENS_CALL = 2


@contextmanager
def _failures_as_sentences() -> Generator[None]:
    """Whatever `generate` raises on models and pairs that it does not take, as one sentence."""
    try:
        yield
    except EngineError:
        raise
    except Exception as error:
        if isinstance(error, MemoryError) or is_memory_error(error):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise PeerError(f"generate failed ({reason}).") from error
