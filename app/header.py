"""The line over the transcript: the target and its loading, the exactness seal, two switches.

Where there is no left column, a button for a new chat stands before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QPainter
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from app.theme import STEP

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from app.theme import Theme

_HEIGHT = 51
_BAR_HEIGHT = 3
_SWEEP_MILLISECONDS = 33
_SWEEP_STEPS = 45
_EXACT = "same text, checked"
_NEARLY_EXACT = "near ties may differ"
_EXACT_REASON = (
    "On this device the engine has checked that reading several tokens in one pass gives the very "
    "same numbers as reading them one by one. The text is the same with every drafter, to the last "
    "byte."
)
_NEARLY_EXACT_REASON = (
    "Every drafter gives the same text, except where two tokens are so nearly equal that the "
    "order in which this device adds numbers decides between them."
)


class Header(QFrame):
    """Shows the target; asks for the picker, or to give a load up; says what is switched."""

    picker_requested = Signal(QPoint)
    cancel_requested = Signal()
    colours_toggled = Signal(bool)
    panel_toggled = Signal(bool)
    new_chat_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self.setFixedHeight(_HEIGHT)
        self._new_chat = _new_chat_button()
        self._new_chat.clicked.connect(self.new_chat_requested)
        self._new_chat.hide()
        self._target = TargetButton(theme)
        self._target.clicked.connect(self._ask_for_picker)
        self._cancel = QPushButton("Cancel")
        self._cancel.setProperty("kind", "quiet")
        self._cancel.setAccessibleName("Cancel loading")
        self._cancel.clicked.connect(self.cancel_requested)
        self._seal = QLabel()
        self._seal.setObjectName("seal")
        self._seal_on = False
        self._colours = _switch("Colours", "Colour tokens by where they came from")
        self._colours.toggled.connect(self.colours_toggled)
        self._panel = _switch("Panel", "Show the panel with drafters and plots")
        self._panel.toggled.connect(self.panel_toggled)
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(3 * STEP, 0, 5 * STEP, 0)
        row.setSpacing(2 * STEP)
        row.addWidget(self._new_chat)
        row.addWidget(self._target)
        row.addWidget(self._cancel)
        row.addWidget(self._seal, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch()
        row.addWidget(self._colours)
        row.addWidget(self._panel)
        self.show_no_target()

    def show_no_target(self) -> None:
        """There is nothing to talk to."""
        self._show("Choose a model", loading=False)
        self._seal_on = False
        self._fit()

    def show_target(self, name: str, details: str, *, bit_exact: bool) -> None:
        """A target is in use. details: where it runs, shown on hovering."""
        self._show(name, loading=False)
        self._target.setToolTip(details)
        self._seal.setText(_EXACT if bit_exact else _NEARLY_EXACT)
        self._seal.setToolTip(_EXACT_REASON if bit_exact else _NEARLY_EXACT_REASON)
        self._seal.setProperty("checked", bit_exact)
        self._seal.style().unpolish(self._seal)
        self._seal.style().polish(self._seal)
        self._seal_on = True
        self._fit()

    def show_loading(self, stage: str, share: float | None) -> None:
        """A target is being loaded. share: 0 to 1, or None where it is unknown."""
        per_cent = "" if share is None else f" {share:.0%}".replace("%", "\u202f%")
        self._show(f"{stage}{per_cent}", loading=True, share=share)
        self._seal_on = False
        self._fit()

    def set_colours(self, shown: bool) -> None:
        """Set the switch without asking for anything."""
        _set_quietly(self._colours, shown)

    def set_panel(self, shown: bool, fits: bool) -> None:
        """Set the switch without asking for anything. fits: whether there is room for the panel."""
        _set_quietly(self._panel, shown)
        self._panel.setEnabled(fits)
        self._panel.setToolTip(
            "Show the panel with drafters and plots"
            if fits
            else "Widen the window to show the panel"
        )

    def set_new_chat(self, shown: bool) -> None:
        """Say whether the button for a new chat has to stand here."""
        self._new_chat.setVisible(shown)
        self._fit()

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme's colours."""
        self._target.set_theme(theme)

    def _show(self, words: str, *, loading: bool, share: float | None = None) -> None:
        self._target.show_words(words if loading else f"{words} ▾", loading=loading, share=share)
        self._target.setAccessibleName(words if loading else f"Model: {words}. Choose another.")
        self._cancel.setVisible(loading)

    def _fit(self) -> None:
        self._seal.ensurePolished()
        parts = [self._target, self._seal, self._colours, self._panel]
        if not self._new_chat.isHidden():
            parts.append(self._new_chat)
        edges = self._row.contentsMargins()
        gaps = len(parts) * self._row.spacing()  # The stretch before the switches has one too.
        wanted = sum(part.sizeHint().width() for part in parts) + gaps
        room = self.width() - edges.left() - edges.right()
        self._seal.setVisible(self._seal_on and wanted <= room)

    def _ask_for_picker(self) -> None:
        self.picker_requested.emit(self._target.mapToGlobal(self._target.rect().bottomLeft()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The target's name comes before the seal."""
        super().resizeEvent(event)
        self._fit()


class TargetButton(QPushButton):
    """A button with a progress bar along its lower edge while something is loading."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("target")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._theme = theme
        self._share: float | None = None
        self._words = ""
        self._step = 0
        self._sweep = QTimer(self)
        self._sweep.setInterval(_SWEEP_MILLISECONDS)
        self._sweep.timeout.connect(self._move_on)
        self._loading = False

    def show_words(self, words: str, *, loading: bool, share: float | None) -> None:
        """Set the words and the bar. share: None makes the bar run to and fro."""
        self._words, self._loading, self._share = words, loading, share
        self.setEnabled(not loading)
        self._elide()
        self.updateGeometry()
        if loading and share is None:
            self._sweep.start()
        else:
            self._sweep.stop()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Paint the bar in another theme's colours."""
        self._theme = theme
        self.update()

    def _move_on(self) -> None:
        self._step = (self._step + 1) % (2 * _SWEEP_STEPS)
        self.update()

    def _elide(self) -> None:
        room = self.width() - 4 * STEP if self.isVisible() else self.sizeHint().width()
        mode = Qt.TextElideMode.ElideRight
        words = self.fontMetrics().elidedText(self._words, mode, max(room, 20 * STEP))
        self.setText(words.replace("&", "&&"))  # Else it would underline the letter behind it.

    def _bar(self) -> QRectF:
        whole = QRectF(self.rect()).adjusted(2 * STEP, 0, -2 * STEP, 0)
        top = self.height() - _BAR_HEIGHT - 1
        if self._share is not None:
            return QRectF(whole.left(), top, whole.width() * min(self._share, 1.0), _BAR_HEIGHT)
        width = whole.width() / 4
        place = 1 - abs(self._step - _SWEEP_STEPS) / _SWEEP_STEPS
        return QRectF(whole.left() + place * (whole.width() - width), top, width, _BAR_HEIGHT)

    def sizeHint(self) -> QSize:
        """Room for the words, whatever is left out of them now."""
        hint = super().sizeHint()
        return QSize(self.fontMetrics().horizontalAdvance(self._words) + 5 * STEP, hint.height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's own method
        """Long names may be cut short."""
        return QSize(24 * STEP, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as much of the words as there is room for."""
        super().resizeEvent(event)
        self._elide()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar over the button."""
        super().paintEvent(event)
        if not self._loading:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect()).adjusted(
            2 * STEP, self.height() - _BAR_HEIGHT - 1, -2 * STEP, -1
        )
        for bar, role in ((track, "meter_track"), (self._bar(), "accent")):
            painter.setBrush(self._theme.color(role))
            painter.drawRoundedRect(bar, _BAR_HEIGHT / 2, _BAR_HEIGHT / 2)


def _new_chat_button() -> QPushButton:
    button = QPushButton("+")
    shortcut = QKeySequence(QKeySequence.StandardKey.New)
    keys = shortcut.toString(QKeySequence.SequenceFormat.NativeText)
    button.setToolTip(f"New chat ({keys})")
    button.setAccessibleName("New chat")
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


def _switch(words: str, explanation: str) -> QPushButton:
    button = QPushButton(words)
    button.setCheckable(True)
    button.setChecked(True)
    button.setProperty("kind", "toggle")
    button.setToolTip(explanation)
    button.setAccessibleName(explanation)
    return button


def _set_quietly(button: QPushButton, checked: bool) -> None:
    blocked = button.blockSignals(True)
    button.setChecked(checked)
    button.blockSignals(blocked)
