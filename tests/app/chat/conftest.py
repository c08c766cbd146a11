"""A conversation on the screen, and where the user writes."""

from __future__ import annotations

import pytest

from app.chat.composer import Composer
from app.chat.transcript import Transcript
from app.theme import style_sheet
from tests.app.widgets import heard


@pytest.fixture
def transcript(qtbot, theme) -> Transcript:
    made = Transcript(theme)
    made.setStyleSheet(style_sheet(theme))
    qtbot.addWidget(made)
    made.resize(800, 500)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def composer(qtbot, theme) -> Composer:
    made = Composer(theme)
    qtbot.addWidget(made)
    made.resize(700, 100)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def sent(composer) -> list[str]:
    return heard(composer.submitted)
