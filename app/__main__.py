"""Starts the window: `python -m app [--target T] [--drafter D] [--measure]`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import logging.handlers
import multiprocessing
import signal
import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":
    # Windows: torch's libraries must be loaded before Qt's, or they cannot be loaded at all.
    import torch  # noqa: F401

import qasync
from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QApplication

from app.engine_thread import EngineThread
from app.errors import install_excepthook
from app.garbage import collected_here
from app.paths import log_file, settings_file
from app.settings import SettingsStore
from app.theme import system_theme
from app.window import MainWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger("app")

_LOG_BYTES = 1_000_000
_OLD_LOGS = 3
_SWITCH_SECONDS = 0.0005
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the app to its end; returns the exit code."""
    multiprocessing.freeze_support()
    options = _options(arguments)
    _start_log()
    # The engine's kernels release the interpreter; it should get it back from the window quickly.
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = App(sys.argv[:1])
    app.setApplicationName("Draftlight")
    app.setStyle("Fusion")
    # The window's closing ends the loop's last coroutine; Qt must not end the loop under it.
    app.setQuitOnLastWindowClosed(False)
    with (
        collected_here(),
        asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner,
    ):
        try:
            return runner.run(_run(app, options))
        except KeyboardInterrupt:
            return _INTERRUPTED


class App(QApplication):
    """Asks for the window to be closed where Qt would end the event loop under it."""

    quit_requested = Signal()

    def event(self, event: QEvent) -> bool:
        """Take the system's wish to quit as the user's wish to close the window."""
        if event.type() is QEvent.Type.Quit:
            self.quit_requested.emit()
            return True
        return super().event(event)


async def _run(app: App, options: argparse.Namespace) -> int:
    async with EngineThread() as engine:
        window = MainWindow(engine, SettingsStore(settings_file()), system_theme(app))
        install_excepthook(window.banner.show_failure)
        app.styleHints().colorSchemeChanged.connect(lambda: window.set_theme(system_theme(app)))
        closed = asyncio.Event()
        window.closed.connect(closed.set)
        app.quit_requested.connect(window.close)
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, window.close)
        window.show()
        logger.info("The window is ready.")
        if options.measure:
            from app.measure import measure

            return await measure(window, engine, options.target, options.drafter)
        window.open_target(options.target, options.drafter)
        try:
            await closed.wait()
        finally:
            window.close()
            await window.finish()
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app", description="Draftlight's window.")
    parser.add_argument("--target", help='"default", a model folder or a GGUF file')
    parser.add_argument("--drafter", help="auto, off, ngram, layer-skip, draft-model:FILE, ...")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="run the same prompt with the window open and without, and print both speeds",
    )
    return parser.parse_args(arguments)


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


if __name__ == "__main__":
    sys.exit(main())
