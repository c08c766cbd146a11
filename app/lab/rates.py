"""The live curves' numbers, from round events alone: of fixed length, free of Qt and of clocks."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from engine.events import Finished, Prefilled, Round

if TYPE_CHECKING:
    from engine.events import Event

POINTS = 240
_WINDOW_SECONDS = 2.0
_POINT_SECONDS = 0.1
_FIRST_POINT_SECONDS = 0.5  # A rate over less is a spike.
_WINDOW_NODES = 32


class SpeedCurve:
    """Tokens a second over the last two seconds of decoding, a point every tenth of a second."""

    def __init__(self) -> None:
        self.points: deque[float] = deque(maxlen=POINTS)
        self._rounds: deque[tuple[float, int]] = deque()
        self._seconds = 0.0
        self._tokens = 0
        self._since_point = 0.0
        self._reply_seconds = 0.0
        self._over = False

    @property
    def rate(self) -> float | None:
        """The rate now; None while too little has been decoded to tell."""
        enough = self._over or self._reply_seconds >= _FIRST_POINT_SECONDS
        return self._tokens / self._seconds if enough and self._seconds else None

    def add(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Prefilled():
                self._begin_reply()
            case Round():
                if self._over:
                    self._begin_reply()
                self._add_round(event.seconds, len(event.tokens))
            case Finished():
                self._over = True
                if self._reply_seconds < _FIRST_POINT_SECONDS and self.rate is not None:
                    self.points.append(self.rate)

    def _begin_reply(self) -> None:
        if self._reply_seconds:
            # A gap: the curve of one reply does not lead over to the next.
            self.points.append(math.nan)
        self._over = False
        self._rounds.clear()
        self._seconds = self._since_point = self._reply_seconds = 0.0
        self._tokens = 0

    def _add_round(self, seconds: float, tokens: int) -> None:
        self._rounds.append((seconds, tokens))
        self._seconds += seconds
        self._tokens += tokens
        self._reply_seconds += seconds
        self._since_point += seconds
        while self._seconds - self._rounds[0][0] >= _WINDOW_SECONDS:
            old_seconds, old_tokens = self._rounds.popleft()
            self._seconds -= old_seconds
            self._tokens -= old_tokens
        if self._reply_seconds >= _FIRST_POINT_SECONDS and self._since_point >= _POINT_SECONDS:
            self.points.append(self._tokens / self._seconds)
            self._since_point = 0.0


class AcceptanceCurve:
    """Accepted of drafted tokens: in the last rounds, a point for each, and in the reply so far."""

    def __init__(self) -> None:
        self.points: deque[float] = deque(maxlen=POINTS)
        self._rounds: deque[tuple[int, int]] = deque()
        self._window = 0
        self._window_accepted = 0
        self._begin_reply()

    @property
    def so_far(self) -> float | None:
        """The reply's acceptance rate; None while nothing was drafted."""
        return self._accepted / self._drafted if self._drafted else None

    @property
    def tokens_per_pass(self) -> float | None:
        """The reply's mean accepted length; None before its first round."""
        return self._tokens / self._passes if self._passes else None

    def add(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case Prefilled():
                self._begin_reply()
            case Round():
                if self._over:
                    self._begin_reply()
                self._passes += 1
                self._tokens += len(event.tokens)
                if event.nodes:
                    self._add_draft(len(event.nodes), event.accepted)
            case Finished():
                # The figures of the reply that just ended stay until the next one begins.
                self._over = True

    def _begin_reply(self) -> None:
        self._over = False
        self._accepted = self._drafted = self._tokens = self._passes = 0

    def _add_draft(self, drafted: int, accepted: int) -> None:
        self._drafted += drafted
        self._accepted += accepted
        self._rounds.append((drafted, accepted))
        self._window += drafted
        self._window_accepted += accepted
        while self._window - self._rounds[0][0] >= _WINDOW_NODES:
            old_drafted, old_accepted = self._rounds.popleft()
            self._window -= old_drafted
            self._window_accepted -= old_accepted
        self.points.append(self._window_accepted / self._window)
