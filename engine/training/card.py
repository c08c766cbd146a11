"""A trained drafter's card: what it was made of and how, and how far its drafts go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.training.acceptance import CHAIN
from engine.training.recipe import DrafterKind
from engine.training.teacher import DRAWN, LIKELY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.training.checkpoint import Point
    from engine.training.recipe import Recipe

_NAMES = {
    DrafterKind.MEDUSA: "Medusa heads",
    DrafterKind.EAGLE: "An EAGLE head",
    DrafterKind.EAGLE3: "An EAGLE-3 head",
    DrafterKind.DRAFT_MODEL: "A small draft model",
}
_PAPERS = {
    DrafterKind.MEDUSA: "Cai et al., arXiv 2401.10774",
    DrafterKind.EAGLE: "Li et al., arXiv 2401.15077; trained on its own guesses as in 2503.01840",
    DrafterKind.EAGLE3: "Li et al., arXiv 2503.01840",
    DrafterKind.DRAFT_MODEL: "Leviathan et al., arXiv 2211.17192; distilled",
}
_BEGINNINGS = {
    DrafterKind.MEDUSA: "a linear guess, fitted",
    DrafterKind.EAGLE: "a linear guess, fitted",
    DrafterKind.EAGLE3: "a linear guess, fitted, and attention that copies",
    DrafterKind.DRAFT_MODEL: "layers of the target, and a linear map, fitted",
}


@dataclass(frozen=True, slots=True)
class Data:
    """What was learnt from. texts, tokens: replies and the tokens in them; greedy: share of texts.

    prompts: in words. held_out: texts that were measured on.
    """

    prompts: str
    texts: int
    tokens: int
    greedy: float
    held_out: int


@dataclass(frozen=True, slots=True)
class Made:
    """A drafter and its making. licence: of the target."""

    recipe: Recipe
    target: str
    fingerprint: str
    licence: str
    data: Data
    curve: Sequence[Point]
    parameters: int


def card(made: Made) -> str:
    """The card as Markdown."""
    recipe, data = made.recipe, made.data
    return "\n".join(
        [
            f"# {_NAMES[recipe.kind]} for {made.target}",
            "",
            f"Drafts for {made.target} in Draftlight: "
            f"`python -m engine chat --drafter {recipe.kind}:FOLDER`. It borrows the target's "
            "embedding and head, so it is of use with these very weights "
            f"(fingerprint `{made.fingerprint}`) and no others. Drafts change how fast a text "
            "comes, never the text.",
            "",
            f"Method: {_PAPERS[recipe.kind]}. {made.parameters:,} parameters of its own, "
            f"bfloat16; it drafts the {recipe.vocabulary:,} ids that the target says most, at the "
            "most.",
            "",
            "## Data",
            "",
            f"{data.texts:,} replies ({data.tokens:,} tokens) that the target itself wrote to "
            f"{data.prompts}, {data.greedy:.0%} of them at temperature 0 and the others drawn. "
            f"{data.held_out} replies to other prompts were held out.",
            "",
            "## Recipe",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in _recipe(recipe)),
            "",
            "## Figures",
            "",
            f"Mean accepted length on the held-out replies, temperature 0, a chain of {CHAIN}; "
            "survival: the share of places at which a chain is right up to a depth.",
            "",
            "| learnt for | tokens met | loss | mean accepted length | survival at depth 1, 2, … |",
            "|---|---|---|---|---|",
            *(_row(point) for point in _some(made.curve)),
            "",
            "## Licence",
            "",
            f"As the target: {made.licence}.",
            "",
        ]
    )


def _recipe(recipe: Recipe) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [
        ("optimiser", f"AdamW, decay {recipe.decay}, gradients clipped at {recipe.clip}"),
        (
            "learning rate",
            f"{recipe.rate} after {recipe.warm_up:.0%} of the run, then along a cosine to "
            f"{recipe.least:.0%} of that",
        ),
        ("rows a batch", recipe.rows),
        ("beginning", _BEGINNINGS[recipe.kind]),
        (
            "loss",
            f"cross-entropy with the target's {LIKELY} likeliest drafted ids at a temperature of "
            f"{recipe.temperature}, over all that are "
            f"likely in a batch and {DRAWN} drawn ones that stand for the rest",
        ),
        ("taught behind", "replies' tokens" + (" and prompts'" if recipe.prompts else "")),
        ("depths", _depths(recipe)),
        ("weight of the distance to the target's state", recipe.feature_weight),
        ("noise on states", recipe.noise),
        ("seed", recipe.seed),
    ]
    if recipe.kind is DrafterKind.MEDUSA:
        rows.append(("residual blocks a head", recipe.blocks))
    if recipe.layers:
        rows.append(("layers of the target", ", ".join(map(str, recipe.layers))))
    return rows


def _depths(recipe: Recipe) -> str:
    counting = f"{recipe.depths}, each counting {recipe.fading} of the one before"
    return (
        f"{counting}; only the first in {recipe.alone:.0%} of the run" if recipe.alone else counting
    )


def _some(curve: Sequence[Point]) -> Sequence[Point]:
    """About ten of the points, the last one among them."""
    every = max(1, len(curve) // 10)
    return curve[::-1][::every][::-1]


def _row(point: Point) -> str:
    survival = " · ".join(f"{share:.3f}" for share in point.survival)
    return (
        f"| {point.seconds / 60:.0f} min | {point.tokens:,} | {point.loss:.3f} | "
        f"{point.length:.3f} | {survival} |"
    )
