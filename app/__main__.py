"""Starts the window: `python -m app [FILE] [--target T] [--drafter D] [--measure]`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import logging.handlers
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform == "win32":
    # Windows: torch's libraries must be loaded before Qt's, or they cannot be loaded at all.
    import torch  # noqa: F401

import qasync
from PySide6.QtCore import QEvent, Signal, qInstallMessageHandler
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QMessageBox

from app.crash_watch import CrashWatch, watched
from app.engine_host import load_engine
from app.engine_thread import EngineThread
from app.errors import install_excepthook
from app.garbage import collected_here
from app.paths import log_file, settings_file
from app.settings import SettingsStore
from app.single_instance import SingleInstance
from app.support import Support
from app.theme import system_theme
from app.window import MainWindow

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from PySide6.QtCore import QMessageLogContext, QtMsgType

logger = logging.getLogger("app")

_LOG_BYTES = 1_000_000
_OLD_LOGS = 3
_SWITCH_SECONDS = 0.0005
_INTERRUPTED = 130
_SILENT = "Draftlight is running already, but it does not answer. End it, then start it again."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the app to its end; returns the exit code."""
    multiprocessing.freeze_support()
    _give_streams()
    _give_back_library_path()
    _leave_missing_folder()
    options = _options(arguments)
    _start_log()
    # The engine's kernels release the interpreter; it should get it back from the window quickly.
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = App(sys.argv[:1])
    app.setApplicationName("Draftlight")
    app.setDesktopFileName("draftlight")
    app.setStyle("Fusion")
    # The window's closing ends the loop's last coroutine; Qt must not end the loop under it.
    app.setQuitOnLastWindowClosed(False)
    if options.measure or options.self_test:
        return _in_loop(app, _try(app, options))
    first = SingleInstance(settings_file().parent)
    if not first.claim():
        if not first.hand_over(options.file):
            QMessageBox.warning(None, "Draftlight", _SILENT)
        return 0
    try:
        return _in_loop(app, _run(app, options, first))
    finally:
        first.release()


class App(QApplication):
    """Asks for the window to be closed where Qt would end the event loop under it.

    file: the last one that the system has asked to open (macOS does so by an event).
    """

    quit_requested = Signal()
    file_requested = Signal(str)

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(list(arguments))
        self.file = ""

    def event(self, event: QEvent) -> bool:
        """Take the system's wish to quit as the user's wish to close the window."""
        if event.type() is QEvent.Type.Quit:
            self.quit_requested.emit()
            return True
        if isinstance(event, QFileOpenEvent):
            self.file = event.file()
            self.file_requested.emit(self.file)
            return True
        return super().event(event)


def _in_loop(app: App, work: Coroutine[None, None, int]) -> int:
    with (
        collected_here(),
        asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner,
    ):
        try:
            return runner.run(work)
        except KeyboardInterrupt:
            return _INTERRUPTED
        except Exception:
            logger.exception("Draftlight can't go on.")
            raise


async def _run(app: App, options: argparse.Namespace, first: SingleInstance) -> int:
    """The app as a user sees it."""
    newcomer = not settings_file().exists()
    watch = CrashWatch(log_file().parent)
    with watch.run() as crash:
        async with EngineThread(watched(load_engine, watch)) as engine:
            window = _window(app, engine)
            support = Support(window, watch)
            closed = asyncio.Event()
            window.closed.connect(closed.set)
            first.handed_over.connect(lambda file: _come_forward(window, file))
            app.file_requested.connect(lambda file: _come_forward(window, file))
            file = app.file or options.file
            if crash is not None and not file:
                support.tell_crash(crash)
            else:
                window.open_target(file or options.target, options.drafter)
            if newcomer:
                support.welcome()
            try:
                await closed.wait()
            finally:
                window.close()
                await window.finish()
    return 0


async def _try(app: App, options: argparse.Namespace) -> int:
    """The app as it measures or tests itself: beside another one if need be, and by itself."""
    async with EngineThread() as engine:
        window = _window(app, engine)
        try:
            if options.measure:
                from app.measure import measure

                return await measure(window, engine, options.target, options.drafter)
            from app.self_test import self_test

            return await self_test(window, options.target or "default", options.self_test)
        finally:
            window.close()
            await window.finish()


def _window(app: App, engine: EngineThread) -> MainWindow:
    """The window, shown; without a model yet."""
    window = MainWindow(engine, SettingsStore(settings_file()), system_theme(app))
    install_excepthook(window.banner.show_failure)
    app.styleHints().colorSchemeChanged.connect(lambda: window.set_theme(system_theme(app)))
    app.quit_requested.connect(window.close)
    if sys.platform != "win32":
        for ending in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(ending, window.close)
    window.show()
    logger.info("The window is ready.")
    return window


def _come_forward(window: MainWindow, file: str) -> None:
    """Another start, or the system, wants the window to be seen, with a file or without."""
    window.showNormal() if window.isMinimized() else window.show()
    window.raise_()
    window.activateWindow()
    if file:
        window.open_target(file)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app", description="Draftlight's window.")
    parser.add_argument("file", nargs="?", default="", type=_absolute, help="a model to open")
    parser.add_argument("--target", help='"default", a model folder or a GGUF file')
    parser.add_argument("--drafter", help="auto, off, ngram, layer-skip, draft-model:FILE, ...")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="run the same prompt with the window open and without, and print both speeds",
    )
    parser.add_argument(
        "--self-test",
        nargs="+",
        metavar="D",
        help="answer one prompt with each of these drafters, write in the log how, and end",
    )
    return parser.parse_args(arguments)


def _absolute(path: str) -> str:
    """A path that means the same to a window started in another folder."""
    return str(Path(path).expanduser().absolute()) if path else ""


def _give_streams() -> None:
    """A packaged app on Windows has no console, and libraries print all the same."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end


def _give_back_library_path() -> None:
    """Programs that are started from here, such as the file manager, find their own libraries."""
    if getattr(sys, "frozen", False):
        theirs = os.environ.get("LD_LIBRARY_PATH_ORIG")
        os.environ.pop("LD_LIBRARY_PATH", None)
        if theirs is not None:
            os.environ["LD_LIBRARY_PATH"] = theirs


def _leave_missing_folder() -> None:
    """Libraries of torch break down where the folder that the app was started in is gone."""
    try:
        os.getcwd()
    except FileNotFoundError:
        os.chdir(Path.home())


def _start_log() -> None:
    """Into the user's log folder; where that cannot be written to, to the terminal."""
    path = log_file()
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=_LOG_BYTES, backupCount=_OLD_LOGS, encoding="utf-8"
        )
    except OSError:
        handler = logging.StreamHandler()
    logging.basicConfig(level=logging.INFO, handlers=[handler], format=form)
    qInstallMessageHandler(_log_qt)


def _log_qt(_kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    """Qt's last words are often all that is known of why a window would not open."""
    logger.warning("Qt: %s", message)
    print(message, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
