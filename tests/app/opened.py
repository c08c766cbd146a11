"""The window with a played engine, and how a test takes hold of its parts."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.engine_thread import EngineThread
from app.theme import load_theme
from app.window import MainWindow
from tests.app.fakes import (
    FakeLoad,
    until,
)

if TYPE_CHECKING:
    from app.settings import SettingsStore
    from engine.events import Origin


@asynccontextmanager
async def opened(load: FakeLoad, store: SettingsStore, theme: str = "light"):
    """The window on the screen with its target loaded, as `python -m app` opens it."""
    async with EngineThread(load) as engine:
        window = MainWindow(engine, store, load_theme(theme))
        window.show()
        ended = []
        window.loader.ended.connect(lambda: ended.append(True))
        try:
            window.open_target()
            await until(lambda: ended and (window.chat.drafter != "off" or load.error))
            yield window
        finally:
            window.close()
            await window.finish()
            window.deleteLater()


def type_and_send(window: MainWindow, text: str) -> None:
    box = box_of(window)
    QTest.keyClicks(box, text)
    QTest.keyClick(box, Qt.Key.Key_Return)


def last_reply(window: MainWindow):
    reply = window.transcript._last_reply()
    assert reply is not None
    return reply.view


def origins_shown(window: MainWindow) -> list[tuple[str, Origin]]:
    """Each token of the last reply as it can be found in the view."""
    view = last_reply(window)
    text = view.toPlainText()
    found = [(text[at], view._runs.at(at)) for at in range(len(text))]
    return [(letter, facts.token.origin) for letter, facts in found if facts is not None]


def box_of(window: MainWindow) -> QPlainTextEdit:
    return cast("QPlainTextEdit", window.composer.findChild(QPlainTextEdit))


def target_of(window: MainWindow) -> QPushButton:
    return cast("QPushButton", window.header.findChild(QPushButton, "target"))


async def button(window: MainWindow, words: str) -> QPushButton:
    """The last one of these words, once it is shown: what a layout takes in is shown later."""

    def shown() -> list[QPushButton]:
        every = window.findChildren(QPushButton)
        return [each for each in every if each.text() == words and each.isVisible()]

    await until(shown)
    return shown()[-1]
