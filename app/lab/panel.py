"""The side panel from the top: drafters, the planner, live plots, rounds, rule and sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.lab.drafter_list import DrafterList
from app.lab.estimates import EstimatesTable
from app.lab.plots import AcceptancePlot, SpeedPlot
from app.lab.rounds import RoundsSection
from app.lab.sampling import SamplingSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from app.engine_host import Outlook
    from app.settings import Settings
    from app.theme import Theme
    from engine.events import Event

PANEL_PIXELS = 344
_EDGE = 16
_INDENT = 8


class LabPanel(QScrollArea):
    """Its parts stand open to whoever connects them."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.drafters = DrafterList()
        self.speed = SpeedPlot(theme)
        self.acceptance = AcceptancePlot(theme)
        self.rounds = RoundsSection()
        self.sampling = SamplingSection()
        self._plan = QLabel()
        self._plan.setProperty("kind", "muted")
        self._plan.setTextFormat(Qt.TextFormat.PlainText)
        self._plan.setWordWrap(True)
        self._plan.setContentsMargins(_INDENT, 0, _INDENT, 0)
        self._plan.setAccessibleName("Plan")
        self._estimates = EstimatesTable()
        self.setObjectName("panel")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFixedWidth(PANEL_PIXELS)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its parts are stops of the tab key; the keys that scroll reach it from each of them.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.drafters.focus_moved.connect(self.ensureWidgetVisible)
        self._assemble()

    def restore(self, settings: Settings) -> None:
        """Take back what the user chose before."""
        self.drafters.keep(settings.drafters)
        self.drafters.set_draft_length(settings.draft_length)
        self.drafters.set_tree_nodes(settings.tree_nodes)
        self.sampling.set_values(settings.sampling)

    def apply(self, events: Sequence[Event]) -> None:
        """Show a reply's events."""
        self.speed.apply(events)
        self.acceptance.apply(events)
        self.rounds.apply(events)

    def set_plan(self, sentence: str) -> None:
        """Show what the planner does now, and why."""
        self._plan.setText(sentence)

    def set_outlook(self, outlook: Outlook) -> None:
        """Show the plan with what it goes by, and the measured speed without speculation."""
        self.set_plan(outlook.plan)
        self._estimates.show_estimates(outlook.estimates)
        self.speed.set_baseline(outlook.baseline)

    def reset(self) -> None:
        """Forget what replies have shown."""
        self.speed.reset()
        self.acceptance.reset()
        self.rounds.reset()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self.speed.set_theme(theme)
        self.acceptance.set_theme(theme)

    def _assemble(self) -> None:
        body = QWidget()
        body.setObjectName("panelBody")
        column = self._column = QVBoxLayout(body)
        column.setSpacing(8)
        column.addWidget(_heading("Drafter"))
        column.addWidget(self.drafters)
        column.addWidget(self._plan)
        column.addWidget(self._estimates)
        column.addSpacing(4)
        column.addWidget(self.speed)
        column.addWidget(self.acceptance)
        column.addSpacing(8)
        column.addWidget(_heading("Round by round"))
        column.addWidget(self.rounds)
        column.addSpacing(8)
        column.addWidget(_heading("Rule and sampling"))
        column.addWidget(self.sampling)
        column.addStretch(1)
        self.setWidget(body)
        self._keep_edges()

    def _keep_edges(self) -> None:
        # By the whole width, so that the scroll bar takes of the edge and nothing moves.
        scroll_bar = self.width() - 1 - self.viewport().geometry().right()
        self._column.setContentsMargins(_EDGE, _EDGE, max(_EDGE - scroll_bar, 0), _EDGE)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The viewport's, which also changes when the scroll bar comes or goes."""
        super().resizeEvent(event)
        self._keep_edges()


def _heading(words: str) -> QLabel:
    label = QLabel(words)
    label.setProperty("kind", "heading")
    label.setContentsMargins(_INDENT, 0, _INDENT, 0)
    return label
