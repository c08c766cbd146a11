"""A loaded target, its tokenizer, and the drafters that fit it."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch

from engine.calibration import Calibration
from engine.costs import CostModel
from engine.devices import Device, check_dtype, chosen_device, devices
from engine.drafters import FAMILIES
from engine.drafters.listing import DrafterChoice, build_drafter, drafter_choices
from engine.drafters.shipped import shipped
from engine.errors import EngineError, LoadCancelled, ModelError
from engine.kept_costs import CostFile, Kept, Trial
from engine.models.catalog import DEFAULT, ModelSource, find_model
from engine.models.draft_models import DraftModels
from engine.models.fingerprint import fingerprint
from engine.models.folders import cache_folder
from engine.models.loading import load_lm
from engine.models.memory import give_back_freed_memory
from engine.models.self_check import rows_are_bit_exact
from engine.models.tokenizer import load_tokenizer
from engine.planning import Planner
from engine.session import Session
from engine.speculation import Drafting
from engine.stats import Baseline
from engine.templates import ChatFormat, Message

if TYPE_CHECKING:
    from pathlib import Path

    from engine.drafters.drafter import Drafter
    from engine.models.causal_lm import CausalLM
    from engine.models.spelling import Spelling

__all__ = ["DrafterChoice", "Engine", "Progress"]

Progress = Callable[[str, float | None], None]

_TOPIC = "Write a few sentences about the sea."
"""What the target is tried on: it calls for some tokens of plain prose."""


class Engine:
    """A target ready to answer. Everything on it runs on one thread.

    fingerprint: of the weights.
    bit_exact: whether a row's bits are known not to depend on the rows beside it; transformers'
    kernels promise nothing of the kind, so near ties may fall differently with a drafter.
    """

    bit_exact = False

    def __init__(
        self,
        source: ModelSource,
        lm: CausalLM,
        chat_format: ChatFormat,
        *,
        device: str,
        dtype: str,
        weights: str,
        native: bool,
        draft_models: DraftModels,
    ) -> None:
        self.name = source.name
        self.source = source.spec
        self.device = device
        self.dtype = weights
        self.bit_exact = False
        self.context_length = lm.context_length
        self.notes = chat_format.notes
        self.baseline = Baseline()
        self.lm = lm
        self._format = chat_format
        self._dtype = dtype
        self._native = native
        self._draft_models = draft_models
        self.costs = CostModel()
        self._path = source.path
        self.fingerprint = fingerprint(source)
        self._trials: dict[str, Trial] = {}

    @classmethod
    def load(
        cls,
        target: str | Path = DEFAULT,
        *,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        progress: Progress = lambda text, share: None,
        stop: threading.Event | None = None,
    ) -> Engine:
        """Load a target: "default", a GGUF file or a safetensors folder.

        device: "auto" or as in `devices()`; dtype: "auto", a torch dtype's name, "packed" for a
        GGUF file's own codes, or "int8" or "int4" to pack a folder's weights; threads: torch's own
        choice where None. progress is told what is being done and the share done, None where
        unknown.

        Raises:
            EngineError: the target, device or dtype cannot be used. LoadCancelled: `stop` was set.
        """
        if threads is not None:
            torch.set_num_threads(threads)
        stop = stop or threading.Event()
        steps = _Steps(progress, stop)
        steps.begin("Finding the model", 0.0)
        source = find_model(target)
        place = chosen_device(device)
        check_dtype(dtype)
        steps.begin("Reading the tokenizer", 0.05)
        tokenizer = load_tokenizer(source)
        steps.begin("Reading the weights", 0.25)
        end = cast("int | None", tokenizer.eos_token_id)
        loaded = load_lm(
            source,
            device=place,
            dtype=dtype,
            vocabulary=len(tokenizer),
            end_ids=frozenset() if end is None else frozenset([end]),
        )
        engine = cls(
            source,
            loaded.lm,
            ChatFormat(tokenizer),
            device=place,
            dtype=dtype,
            weights=loaded.dtype,
            native=loaded.native,
            draft_models=DraftModels(source, loaded.lm, tokenizer, device=place, dtype=dtype),
        )
        steps.begin("Measuring this machine", 0.9)
        engine.try_out(stop)
        give_back_freed_memory()
        steps.begin("Ready", 1.0)
        return engine

    @staticmethod
    def devices() -> tuple[Device, ...]:
        """Where a model can run on this machine, the fastest first."""
        return devices()

    def drafter_choices(self) -> tuple[DrafterChoice, ...]:
        """Every family, the unfit ones with their reason."""
        return drafter_choices(self)

    def drafter(self, spec: str) -> Drafter:
        """The drafter that `FAMILY`, `FAMILY:PATH` or `FAMILY@NUMBERS` names.

        Raises:
            EngineError: no such family, or it does not fit this target; the sentence says why.
        """
        return build_drafter(spec, self)

    def draft_lm(self, path: str) -> CausalLM:
        """Another model for drafting, loaded once."""
        return self._draft_models.lm(path)

    def shipped(self, family: str) -> str | None:
        """The folder of a family's drafter that ships for these weights."""
        return shipped(family, self.fingerprint)

    def shares_ids(self, path: str) -> bool:
        """Whether a draft model's ids are the target's."""
        return self._draft_models.shares_ids(path)

    def spelling(self, path: str | None = None) -> Spelling:
        """How a draft model's tokenizer spells, or the target's own."""
        return self._draft_models.spelling(path)

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """A conversation in the target's tokens, up to where its reply begins."""
        return self._format.encode(messages).ids

    def text(self, ids: Sequence[int]) -> str:
        """The text of a reply's ids."""
        return self._format.decode(ids)

    def new_session(self, system_prompt: str = "", drafter: str = "off") -> Session:
        """An empty conversation."""
        return Session(
            self.lm,
            self._format,
            Drafting(self.drafter(drafter), planner=Planner(self.costs)),
            name=self.name,
            baseline=self.baseline,
            system_prompt=system_prompt,
        )

    def try_out(self, stop: threading.Event) -> None:
        """See that the target runs, whether its bits hold still, and how fast it decodes plainly.

        Raises:
            ModelError: it loads but does not run. OutOfMemory: it does not fit.
        """
        try:
            prompt = self.prompt_ids([Message("user", _TOPIC)])
            if len(prompt) >= self.lm.context_length:
                raise ModelError(
                    f"{self.name} reads at most {self.lm.context_length} tokens, which is too few "
                    "for a chat. Choose another model."
                )
            if not self.lm.score(self.lm.new_memo(), prompt).logits.isfinite().all():
                raise ModelError(
                    f"{self.name} computes numbers that are none, so its weights are damaged, or "
                    "too large for this dtype. Get the model again, or choose another."
                )
            self.bit_exact = self._native and rows_are_bit_exact(self.lm)
            self._measure(prompt, stop)
        except EngineError:
            raise
        except Exception as error:  # whatever a model of a kind nobody has tried may raise
            raise ModelError(
                f"{self.name} loads, but it can't be run the way Draftlight needs "
                f"({type(error).__name__}). Choose another model."
            ) from error

    def pays(self, family: str) -> bool:
        """Whether a family that calls for a trial has gained time in it."""
        return self._trials.get(family, Trial()).choice is not None

    def trial(self, family: str) -> Trial | None:
        """What a family's trial has shown; None where there was none."""
        return self._trials.get(family)

    def _measure(self, prompt: list[int], stop: threading.Event) -> None:
        """Time plain rounds and rounds of many rows, and try what seldom pays."""
        calibration = Calibration(self.lm, prompt, self._format.decode, stop)
        plain_seconds = calibration.plain_seconds()
        if plain_seconds is not None:
            self.baseline.calibrate(plain_seconds)
        if not self.lm.can_rewind or stop.is_set():
            return
        file = CostFile(cache_folder() / "costs", self._path, device=self.device, dtype=self.dtype)
        kept = file.read()
        self.costs, self._trials = CostModel(kept.readings), dict(kept.trials)
        calibration.measure(self.costs)
        for family in FAMILIES:
            if family.search and family.name not in self._trials and not family.reason(self):
                trial = calibration.trial(family, self, self.costs)
                if trial is not None:
                    self._trials[family.name] = trial
        if not stop.is_set():
            file.write(Kept(self.costs.readings(), self._trials))


class _Steps:
    """Tells progress, and leaves at the next step once asked to stop."""

    def __init__(self, progress: Progress, stop: threading.Event) -> None:
        self._progress = progress
        self._stop = stop

    def begin(self, text: str, share: float) -> None:
        if self._stop.is_set():
            raise LoadCancelled("Loading was cancelled.")
        self._progress(text, share)
