"""Set up before any test: Qt without a screen, and an event loop that Qt and asyncio share."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_API", "pyside6")

import pytest
import qasync
from PySide6.QtWidgets import QApplication

from app.garbage import collected_here
from app.settings import SettingsStore
from app.theme import Theme, load_theme


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep goes with them, at least where the system lets the cache be elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def run(qapp: QApplication):
    """Runs a coroutine to its end in the app's event loop, and cancels what it leaves behind."""
    # A test may close its window and go on.
    qapp.setQuitOnLastWindowClosed(False)
    with (
        collected_here(),
        asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(qapp)) as runner,
    ):
        yield runner.run


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    """The light theme."""
    return load_theme("light")


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    """Settings that nobody has saved yet."""
    return SettingsStore(tmp_path / "settings.ini")
