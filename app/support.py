"""Help around the window: the welcome, reports, and what is noted in case the app breaks down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QMenu, QPushButton, QWidget

from app.errors import Failure
from app.paths import log_file, resource, settings_file
from app.report import keep_crash_report, problem_report
from app.report_dialog import ReportDialog
from app.theme import system_theme
from app.welcome import Welcome
from engine.models.folders import cache_folder, models_folder

if TYPE_CHECKING:
    from app.crash_watch import Crash, CrashWatch
    from app.engine_host import LoadedTarget
    from app.window import MainWindow


class Support(QObject):
    """Stands beside a window: shows it help, and tells the watch what the window does."""

    def __init__(self, window: MainWindow, watch: CrashWatch) -> None:
        super().__init__(window)
        self._window, self._watch = window, watch
        self._target: LoadedTarget | None = None
        self._answering = ""
        self.help = HelpButton()
        self.help.welcome_requested.connect(self.welcome)
        self.help.report_requested.connect(self.report)
        side = window.sidebar.layout()
        assert side is not None
        side.addWidget(self.help)
        # A narrow window hides the side with the button.
        key = QShortcut(QKeySequence(QKeySequence.StandardKey.HelpContents), window)
        key.activated.connect(self.help.open_menu)
        window.loader.loaded.connect(self._note_target)
        window.chat.busy_changed.connect(self._note_reply)

    def welcome(self) -> None:
        """Show what a new user should know."""
        places = {
            "Models": str(models_folder()),
            "Settings": str(settings_file().parent),
            "Cache": str(cache_folder()),
            "Log": str(log_file().parent),
        }
        theme = system_theme(_app())
        page = Welcome(theme, places, self._window)
        page.target_chosen.connect(self._window.open_target)
        page.open()

    def report(self) -> None:
        """Show what a report of a problem would hold."""
        text = problem_report(self._target, settings_file(), log_file())
        ReportDialog(text, self._window).open()

    def tell_crash(self, crash: Crash) -> None:
        """Say how the last run ended, and leave the window without a model."""
        doing = f" while {crash.doing}" if crash.doing else ""
        self._window.composer.set_ready(False, "Choose a model first")
        self._window.banner.show_failure(
            Failure(
                f"Draftlight ended unexpectedly{doing}. So that it does not happen again at once, "
                "no model was opened this time: choose one at the top.",
                keep_crash_report(crash, log_file()),
            )
        )

    def _note_target(self, target: LoadedTarget) -> None:
        self._target = target

    def _note_reply(self, busy: bool) -> None:
        if busy:
            source = self._target.source if self._target is not None else "no model"
            self._answering = f"answering with {source}"
            self._watch.starts(self._answering)
        else:
            self._watch.ends(self._answering)


class HelpButton(QPushButton):
    """A menu with what there is of help."""

    welcome_requested = Signal()
    report_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Help", parent)
        self.setProperty("kind", "fold")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Help")
        menu = self.choices = QMenu(self)
        menu.addAction("Welcome…").triggered.connect(self.welcome_requested)
        menu.addAction("Report a problem…").triggered.connect(self.report_requested)
        menu.addSeparator()
        menu.addAction("Open the folder of the log").triggered.connect(
            lambda: _open_folder(str(log_file().parent))
        )
        licences = resource().parent / "licences"
        if licences.is_dir():
            menu.addAction("Licences of what is inside").triggered.connect(
                lambda: _open_folder(str(licences))
            )
        self.clicked.connect(self.open_menu)

    def open_menu(self) -> None:
        """Open the menu over the button, or in the middle of a window that hides the button."""
        if self.isVisible():
            self.choices.popup(self.mapToGlobal(QPoint(0, -self.choices.sizeHint().height())))
        else:
            self.choices.popup(self.window().mapToGlobal(self.window().rect().center()))


def _open_folder(path: str) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(path))


def _app() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
