"""Lookahead decoding: the target guesses many positions ahead at once, and n-grams of that draft.

Fu, Bailis, Stoica and Zhang, arXiv 2402.02057. No second model: the guesses ride in the pass.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.draft import NO_DRAFT, NO_PASSENGERS, ROOT, Draft, Passengers
from engine.drafters.family import Family, Setting, Target, needs_rewind
from engine.drafters.jacobi_window import JacobiWindow, NgramPool
from engine.errors import DrafterMismatch
from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafters.drafter import Context, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise

COLUMNS, ORDER, GUESSES = 7, 5, 7
_LEAST_ORDER = 3
MOST_ROWS = 64
"""Of a pass: the root's, the window's and the guesses'."""


class LookaheadDrafter:
    """Drafts what the pool holds after the root, while a window of guesses fills the pool.

    columns, order, guesses: W, N and G of the paper. context_length: the target's; no row goes
    beyond it. end_ids: a guess stops after one of these.

    The pool begins with the text's own n-grams. A new reply begins a new pool and window.
    """

    name = "lookahead"
    proposers: tuple[str, ...] = (name,)
    taps: tuple[int, ...] = ()

    def __init__(
        self,
        *,
        context_length: int,
        columns: int = COLUMNS,
        order: int = ORDER,
        guesses: int = GUESSES,
        end_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._columns = columns
        self._order = order
        self._guesses = guesses
        self._context_length = context_length
        self._end_ids = end_ids
        self._begin(0)

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """The pool's n-grams after the root as a tree, the newest first; a chain where it must."""
        del params, noise
        self._asked_at = None
        if not budget.depth:
            return NO_DRAFT
        self._follow(context)
        self._asked_at = context.root_position
        guesses = self._pool.after(context.ids[-1])
        ids, parents = self._tree([guess[: budget.depth] for guess in guesses], budget.nodes)
        nothing = (None,) * len(ids)
        return Draft(tuple(ids), tuple(parents), (self.name,) * len(ids), nothing, nothing)

    def passengers(self, context: Context) -> Passengers:
        """The window, in rounds in which this was asked to draft and there is room for it."""
        if self._asked_at != context.root_position:
            return NO_PASSENGERS
        if self._window is None:
            self._window = JacobiWindow(self._columns, self._order, context.ids)
        rows = self._window.rows()
        if context.root_position + max(rows.offsets) >= self._context_length:
            return NO_PASSENGERS
        return rows

    def observe(self, outcome: Observation) -> None:
        """What the target said after the window's topmost tokens is the next level."""
        if outcome.passenger_logits is None or self._window is None:
            return
        said = outcome.passenger_logits[-self._columns :].argmax(-1)
        root = outcome.ids[outcome.first]
        for ngram in self._window.advance(root, cast("list[int]", said.tolist())):
            self._pool.add(ngram)

    def _begin(self, prompt_tokens: int) -> None:
        self._prompt_tokens = prompt_tokens
        self._seen: list[int] = []
        self._pool = NgramPool(self._guesses)
        self._window: JacobiWindow | None = None
        self._asked_at: int | None = None

    def _follow(self, context: Context) -> None:
        """Bring the pool to hold the text's n-grams; begin anew where this is another reply."""
        ids = context.ids
        known = common_prefix(self._seen, ids)
        if known < len(self._seen) or context.prompt_tokens != self._prompt_tokens:
            self._begin(context.prompt_tokens)
            known = 0
        for end in range(max(known + 1, self._order), len(ids) + 1):
            self._pool.add(tuple(ids[end - self._order : end]))
        self._seen.extend(ids[known:])

    def _tree(self, guesses: Sequence[Sequence[int]], most: int) -> tuple[list[int], list[int]]:
        """Guesses that begin alike share nodes; ids and parents of the first `most` nodes."""
        ids, parents = list[int](), list[int]()
        children: dict[tuple[int, int], int] = {}
        for guess in guesses:
            node = ROOT
            for token in guess:
                if (node, token) not in children:
                    if len(ids) == most:
                        return ids, parents
                    children[node, token] = len(ids)
                    ids.append(token)
                    parents.append(node)
                node = children[node, token]
                if token in self._end_ids:
                    break
        return ids, parents


def read_choice(choice: str) -> tuple[int, int, int]:
    """Window, order and guesses, as in "7x5x7" or "7,5,7".

    Raises:
        DrafterMismatch: they are no such numbers, or ask for too little or too much.
    """
    numbers = choice.replace("x", ",").split(",")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        raise DrafterMismatch(
            f'Lookahead takes window, n-gram and guesses, as in "lookahead@7x5x7"; not "{choice}".'
        )
    columns, order, guesses = map(int, numbers)
    rows = (columns + guesses) * (order - 1)
    if not columns or not guesses or order < _LEAST_ORDER:
        raise DrafterMismatch(
            f"Lookahead needs a window and guesses of 1 or more, and n-grams of {_LEAST_ORDER} or "
            f'more; "{choice}" has less.'
        )
    if rows > MOST_ROWS:
        raise DrafterMismatch(
            f'Lookahead fills at most {MOST_ROWS} rows; "{choice}" asks for {rows:,}: (window + '
            "guesses) × (n-gram - 1). Make one of them smaller."
        )
    return columns, order, guesses


def _build(target: Target, choice: str | None) -> LookaheadDrafter:
    columns, order, guesses = (COLUMNS, ORDER, GUESSES) if choice is None else read_choice(choice)
    return LookaheadDrafter(
        context_length=target.lm.context_length,
        columns=columns,
        order=order,
        guesses=guesses,
        end_ids=target.lm.end_ids,
    )


def _settings(target: Target) -> tuple[Setting, ...]:
    """Each as far as it can go while the others are at their least."""
    del target
    longest_order = MOST_ROWS // 2 + 1
    most_columns = MOST_ROWS // (_LEAST_ORDER - 1) - 1
    return (
        Setting("Window", 1, most_columns, COLUMNS),
        Setting("N-gram", _LEAST_ORDER, longest_order, ORDER),
        Setting("Guesses", 1, most_columns, GUESSES),
    )


FAMILY = Family(
    name="lookahead",
    label="Lookahead",
    build=_build,
    reason=needs_rewind,
    grows_trees=True,
    numbers=read_choice,
    settings=_settings,
)
