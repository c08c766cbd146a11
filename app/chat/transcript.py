"""The conversation as a column of turns that follows its end only while the reader is there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.chat.column import EDGE_PIXELS, column_in
from app.chat.turns import Reply, UserTurn
from app.chat.waiting import WaitingLine
from engine.events import Finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from app.theme import Theme
    from engine.events import Event

_BETWEEN_TURNS = 24
_NEAR_THE_END = 8
_LEAST_PAUSE_MS = 66
_PAUSE_PER_WORK = 4  # However long a paragraph grows, showing it takes at most a fifth of the time.
_BUSY = "Wait for the reply, or stop it"
_USER_SHARE = 0.82  # A user's turn never fills the column, so that sides tell who speaks.


class Transcript(QScrollArea):
    """User's turns and replies, oldest first."""

    regenerate_requested = Signal(bool)
    """Whether with the same seed."""
    copy_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._colours_shown = True
        self._sampled = True
        self._busy = False
        self._refusal = ""
        self._turns: list[UserTurn | Reply] = []
        self._following = True
        self._waiting: list[Event] = []
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.timeout.connect(self._show_waiting)
        self._waiting_line = WaitingLine()
        self.setObjectName("transcript")
        self.setAccessibleName("Conversation")
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        body = QWidget()
        body.setObjectName("transcriptBody")
        self._column = QVBoxLayout(body)
        self._column.setSpacing(_BETWEEN_TURNS)
        self._column.addWidget(self._waiting_line)
        self._column.addStretch(1)
        self.setWidget(body)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._note_place)
        bar.rangeChanged.connect(self._follow)
        self._centre()

    def add_user(self, text: str) -> None:
        """Add the user's turn; the reader is taken to it."""
        self._following = True
        self._add(UserTurn(text, self._turn_width()))

    def begin_reply(self) -> None:
        """Add an empty reply for the events that come."""
        self._waiting_line.end()
        reply = Reply(self._theme)
        reply.view.set_colours(self._colours_shown)
        reply.row.copy_requested.connect(lambda: self.copy_requested.emit(reply.view.text))
        reply.row.regenerate_requested.connect(self.regenerate_requested)
        self._add(reply)

    def apply(self, events: Sequence[Event]) -> None:
        """Show what came of the last reply: at once after a pause, else with what follows."""
        self._waiting.extend(events)
        if not self._pause.isActive() or any(isinstance(event, Finished) for event in events):
            self._show_waiting()

    def _show_waiting(self) -> None:
        events, self._waiting = self._waiting, []
        reply = self._last_reply()
        if reply is None or not events:
            return
        begun = time.perf_counter()
        reply.apply(events)
        spent_ms = 1000 * (time.perf_counter() - begun)
        self._pause.start(round(max(_LEAST_PAUSE_MS, _PAUSE_PER_WORK * spent_ms)))

    def fail_reply(self, sentence: str) -> None:
        """End the last reply where a fault ended it, and say so beneath."""
        self._show_waiting()
        reply = self._last_reply()
        if reply is not None:
            reply.fail(sentence)

    def set_busy(self, busy: bool) -> None:
        """Say whether something is being answered; until there is a reply, that takes its place."""
        self._busy = busy
        if busy:
            self._waiting_line.begin()
        else:
            self._waiting_line.end()
        self._offer_again()

    def show_prompt_read(self, done: int, total: int) -> None:
        """Say how far the conversation has been read."""
        self._waiting_line.show_progress(done, total)

    def set_refusal(self, reason: str) -> None:
        """Say why no reply can be written again now; nothing where one can."""
        self._refusal = reason
        self._offer_again()

    def set_sampled(self, sampled: bool) -> None:
        """Say whether a seed has an effect on what is written next."""
        self._sampled = sampled
        self._offer_again()

    def drop_last_reply(self) -> None:
        """Take the last reply away, to answer the turn before it again."""
        reply = self._last_reply()
        if reply is not None:
            self._remove(reply)

    def drop_last_user(self) -> None:
        """Take the user's last turn away, as it goes back to where it was written."""
        if self._turns and isinstance(self._turns[-1], UserTurn):
            self._remove(self._turns[-1])

    def clear(self) -> None:
        """Take every turn away."""
        self._waiting.clear()
        while self._turns:
            self._remove(self._turns[-1])

    def reply_text(self) -> str:
        """The last reply exactly as the model wrote it."""
        self._show_waiting()
        reply = self._last_reply()
        return reply.view.text if reply else ""

    def set_colours(self, shown: bool) -> None:
        """Show or hide where the tokens came from."""
        self._colours_shown = shown
        for turn in self._turns:
            if isinstance(turn, Reply):
                turn.view.set_colours(shown)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self._theme = theme
        for turn in self._turns:
            if isinstance(turn, Reply):
                turn.view.set_theme(theme)

    def _last_reply(self) -> Reply | None:
        last = self._turns[-1] if self._turns else None
        return last if isinstance(last, Reply) else None

    def _add(self, turn: UserTurn | Reply) -> None:
        self._turns.append(turn)
        self._column.insertWidget(len(self._turns) - 1, turn)
        self._offer_again()

    def _remove(self, turn: UserTurn | Reply) -> None:
        self._turns.remove(turn)
        self._column.removeWidget(turn)
        turn.hide()
        turn.deleteLater()
        self._offer_again()

    def _offer_again(self) -> None:
        refusal = _BUSY if self._busy else self._refusal
        for turn in self._turns:
            if isinstance(turn, Reply):
                last = turn is self._turns[-1]
                turn.row.offer_again(last, sampled=self._sampled, refusal=refusal)

    def _note_place(self, value: int) -> None:
        self._following = value >= self.verticalScrollBar().maximum() - _NEAR_THE_END

    def _follow(self, _least: int, most: int) -> None:
        if self._following:
            self.verticalScrollBar().setValue(most)

    def _turn_width(self) -> int:
        return round(_USER_SHARE * column_in(self.width())[1])

    def _centre(self) -> None:
        # By the whole width, so that the scroll bar's coming does not move the text.
        left, column = column_in(self.width())
        scroll_bar = self.width() - self.viewport().width()
        right = max(self.width() - left - column - scroll_bar, 0)
        self._column.setContentsMargins(left, EDGE_PIXELS, right, EDGE_PIXELS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the column centred and the user's turns within their share."""
        super().resizeEvent(event)
        self._centre()
        for turn in self._turns:
            if isinstance(turn, UserTurn):
                turn.set_most(self._turn_width())
