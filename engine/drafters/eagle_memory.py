"""What an EAGLE drafter remembers of a conversation: the target's states, and its own rows.

The row of a position takes the target's state there and the token after it, so the newest state
waits until the next token is known, and a row falls with either of the two.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from engine.drafters.eagle_head import EagleHead
    from engine.models.causal_lm import CausalLM

_CHUNK_ROWS = 256


class EagleMemory:
    """A memo of ids, as the target's cache is one: what two conversations begin with is kept.

    States come as they are told, and rows are made of them when a draft is wanted. States that
    nobody told (the drafter was changed in mid-chat) are read again by the target on a memo of its
    own, which costs one more reading of the conversation up to there.
    """

    def __init__(self, head: EagleHead, lm: CausalLM) -> None:
        self.cache = head.layer.new_cache()
        self._head = head
        self._lm = lm
        self._ids: list[int] = []
        self._known: list[bool] = []  # per position, whether its feature is there
        self._features: Tensor | None = None
        self._rows = 0

    def observe(self, ids: Sequence[int], first: int, hidden: Mapping[int, Tensor]) -> None:
        """Take in the target's states from position `first` on; they replace older ones."""
        self._follow(ids)
        if any(tap not in hidden for tap in self._head.taps):
            return
        features = self._head.features(hidden)
        if len(features):
            self._put(features, range(first, first + len(features)))
            self._rows = min(self._rows, first)

    def catch_up(self, ids: Sequence[int]) -> Tensor:
        """Make the rows up to the root's predecessor; the guessed feature of the root, (1, width).

        Needs two ids at least. The last row is always made anew: what it gives is wanted.
        """
        end = len(ids) - 1
        self._follow(ids)
        self._read_missing(ids[:end])
        assert self._features is not None
        guess: Tensor | None = None
        start = min(self._rows, end - 1)
        while start < end:
            last = min(end, start + _CHUNK_ROWS)
            guess = self._head.step(
                self._features[start:last],
                ids[start + 1 : last + 1],
                range(start, last),
                self.cache,
                start,
            )
            start = last
        self._rows = end
        assert guess is not None
        return guess[-1:]

    def _follow(self, ids: Sequence[int]) -> None:
        """Let go of what belongs to other ids."""
        common = common_prefix(self._ids, ids)
        if common < len(self._ids):
            del self._known[common:]
            self._rows = max(0, min(self._rows, common - 1))
        self._ids = list(ids)

    def _read_missing(self, ids: Sequence[int]) -> None:
        """Have the target read again up to the last of `ids` whose state nobody told."""
        if len(self._known) >= len(ids) and all(self._known[: len(ids)]):
            return
        missing = [at for at in range(len(ids)) if at >= len(self._known) or not self._known[at]]
        self._rows = min(self._rows, missing[0])
        lacking = set(missing)
        # The last id is never read; any token serves.
        again = [*ids[: missing[-1] + 1], 0]
        for chunk in self._lm.read(self._lm.new_memo(), again, self._head.taps):
            rows = [row for row in range(chunk.rows) if chunk.first + row in lacking]
            if rows:
                hidden = {tap: states[rows] for tap, states in chunk.hidden.items()}
                self._put(self._head.features(hidden), [chunk.first + row for row in rows])

    @torch.inference_mode()
    def _put(self, features: Tensor, places: Sequence[int]) -> None:
        end = places[-1] + 1
        if self._features is None:
            self._features = features.new_empty(max(_CHUNK_ROWS, end), features.shape[1])
        elif end > len(self._features):
            room = max(end, 2 * len(self._features)) - len(self._features)
            more = features.new_empty(room, features.shape[1])
            self._features = torch.cat([self._features, more])
        self._features[list(places)] = features
        self._known.extend([False] * (end - len(self._known)))
        for place in places:
            self._known[place] = True
