"""From a target to a trained drafter: texts, states, learning, a folder; each can be gone on with.

OUT holds the drafter and its checkpoint; the work folder holds texts and states, which several
kinds of drafters may share.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.devices import fast_dtype
from engine.errors import EngineError
from engine.models import default_model
from engine.models.catalog import DEFAULT
from engine.models.causal_lm import FINAL
from engine.training.batches import packed
from engine.training.card import Data, Made, card
from engine.training.checkpoint import Checkpoint
from engine.training.chosen_layers import chosen_layers
from engine.training.draft_model_learner import DraftModelLearner
from engine.training.drafted_ids import DraftedIds, frequent_ids
from engine.training.eagle3_learner import eagle3_start
from engine.training.eagle_learner import EagleLearner, eagle_start
from engine.training.export import write_folder
from engine.training.features import FeatureStore
from engine.training.loop import Budget, Learning, Lessons
from engine.training.medusa_learner import MedusaLearner
from engine.training.places import check_replaceable, check_writable
from engine.training.prompts import generated, read, written_out
from engine.training.recipe import DrafterKind
from engine.training.split import is_held_out, split
from engine.training.starts import Beginning
from engine.training.store import TextStore
from engine.training.writing import Writing, write_texts

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import Tensor

    from engine.engine import Engine
    from engine.training.features import Examples
    from engine.training.learner import Learner
    from engine.training.loop import Learnt
    from engine.training.reading_pace import Reading
    from engine.training.recipe import Recipe
    from engine.training.split import Split
    from engine.training.writing import Progress

_SAMPLE = 160
_PROMPTS = 6000
_USUAL_TURNS = 10
"""How often all text is met where no budget says otherwise."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be trained, where and from what.

    text_tokens: of replies that the target writes. prompts: a user's, besides our own.
    disk_bytes: what the target's states may take.
    """

    out: Path
    work: Path
    recipe: Recipe
    text_tokens: int
    budget: Budget | None = None
    prompts: Path | None = None
    disk_bytes: int = 4_000_000_000


class Training:
    """One job for one target; `write`, `read`, `learn` and `finish` in this order.

    Raises:
        EngineError: it can't be done, or not in these folders; before anything has been written.
    """

    def __init__(self, engine: Engine, job: Job) -> None:
        self._engine = engine
        self._job = job
        self._lm = engine.lm
        self._fingerprint = engine.fingerprint
        self._licence = default_model.LICENCE if engine.source == DEFAULT else "that of the target"
        texts, states = job.work / "texts", job.work / "states"
        self._taps = _taps(job.recipe, self._lm.num_layers)
        self._texts = TextStore(texts, self._fingerprint)
        self._states = FeatureStore(
            states, self._fingerprint, self._taps, most_bytes=job.disk_bytes
        )
        belongs = {"target": f"{engine.name} ({self._fingerprint[:8]})", **job.recipe.as_data()}
        self._checkpoint = Checkpoint(job.out / "learning.safetensors", belongs)
        self._device = torch.device(engine.device)
        self._learning: Learning | None = None
        check_writable(job.out)
        self._kept_ids = self._begun_with()
        check_writable(texts)
        check_writable(states)
        self._states.examples()

    def write(self, told: Callable[[Progress], None], stop: threading.Event) -> None:
        """Have the target write what it is still to write; its states are kept if it is native.

        Raises:
            EngineError: prompts can't be read, or texts or states can't be kept or are another's.
        """
        users = [] if self._job.prompts is None else read(self._job.prompts)
        made = generated(_PROMPTS, seed=self._job.recipe.seed)
        prompts = [*users, *written_out(), *made]
        writing = Writing(self._job.recipe.seed, self._job.text_tokens)
        write_texts(self._engine, prompts, self._texts, self._states, writing, told=told, stop=stop)

    def read(self, told: Callable[[Reading], None], stop: threading.Event) -> None:
        """Have the target read what texts have no states yet, as far as there is room.

        Raises:
            EngineError: states can't be kept, or are another model's.
        """
        self._states.fill(self._lm, self._texts.read(), told=told, stop=stop)

    def learn(self, stop: threading.Event) -> Iterator[Learnt]:
        """Learn until the budget is spent.

        Raises:
            EngineError: too few texts, a checkpoint that can't be gone on with, or as Learning.run.
        """
        examples = self._states.examples()
        parts = split(examples.facts)
        if not parts.learnt:
            raise EngineError(
                "There are too few texts to learn from. Have more written with --text, or give "
                "their states more room with --disk-gb."
            )
        drafted = self._drafted()
        self._learning = Learning(
            self._learner(self._begin(examples, parts, drafted)),
            self._job.recipe,
            Lessons(examples, examples.lengths, parts.learnt, parts.held_out, parts.drawn),
            self._checkpoint,
            device=self._device,
        )
        self._data = self._described(examples, parts)
        usual = Budget(_USUAL_TURNS * sum(examples.lengths[place] for place in parts.learnt))
        yield from self._learning.run(self._job.budget or usual, stop)

    def finish(self) -> Path:
        """Write the drafter's folder, as far as it has been learnt.

        Raises:
            EngineError: it can't be written.
        """
        assert self._learning is not None
        learning = self._learning
        export = learning.learner.export(learning.held_out(), learning.drawn())
        sizes = [held.numel() for held in learning.learner.weights.parameters.values()]
        made = Made(
            recipe=self._job.recipe,
            target=self._engine.name,
            fingerprint=self._fingerprint,
            licence=self._licence,
            data=self._data,
            curve=learning.curve,
            parameters=sum(sizes),
        )
        write_folder(self._job.out, export, card(made))
        return self._job.out

    def _begun_with(self) -> Tensor | None:
        """The ids that are drafted by what is to be gone on with; None at a beginning."""
        standing = self._checkpoint.read()
        if standing is not None:
            return standing.ids
        check_replaceable(self._job.out, self._fingerprint)
        return None

    def _drafted(self) -> DraftedIds:
        """Those that were drafted before, whatever texts have come since."""
        ids = self._kept_ids
        if ids is None:
            texts = [each.text for each in self._texts.read() if not is_held_out(each.prompt)]
            most = min(self._job.recipe.vocabulary, self._lm.vocabulary)
            ids = frequent_ids(texts, most, always=self._lm.end_ids)
        kind = fast_dtype(self._device.type)
        return DraftedIds.of(self._lm, ids, kind, self._device)

    def _begin(self, examples: Examples, parts: Split, drafted: DraftedIds) -> Beginning:
        every = max(1, len(parts.learnt) // _SAMPLE)
        sample = [examples[place] for place in parts.learnt[::every][:_SAMPLE]]
        return Beginning(
            target=self._engine.name,
            fingerprint=self._fingerprint,
            lm=self._lm,
            recipe=self._job.recipe,
            drafted=drafted,
            sample=packed(sample, self._taps, self._device),
        )

    def _learner(self, beginning: Beginning) -> Learner:
        match self._job.recipe.kind:
            case DrafterKind.MEDUSA:
                return MedusaLearner(beginning)
            case DrafterKind.EAGLE:
                return EagleLearner(beginning, eagle_start(beginning))
            case DrafterKind.EAGLE3:
                return EagleLearner(beginning, eagle3_start(beginning))
            case DrafterKind.DRAFT_MODEL:
                return DraftModelLearner(beginning)

    def _described(self, examples: Examples, parts: Split) -> Data:
        facts = [examples.facts[place] for place in parts.learnt]
        own = "" if self._job.prompts is None else f" and to those in {self._job.prompts.name}"
        return Data(
            prompts=f"the project's own prompts, written out or from templates{own}",
            texts=len(facts),
            tokens=sum(fact.length - fact.first_reply for fact in facts),
            greedy=sum(fact.temperature == 0 for fact in facts) / len(facts),
            held_out=len(parts.held_out),
        )


def _taps(recipe: Recipe, num_layers: int) -> tuple[int, ...]:
    """The layers whose states are learnt from."""
    layers = chosen_layers(recipe, num_layers)
    return (*layers, FINAL) if recipe.kind is DrafterKind.EAGLE3 else (FINAL,)
