"""The list of drafters, and what it tells."""

from __future__ import annotations

import pytest

from app.lab.drafter_list import DrafterList, DrafterRow
from tests.app.fakes import LOOKAHEAD
from tests.app.lab.rows import CHOICES
from tests.app.widgets import heard


@pytest.fixture
def drafters(qtbot) -> DrafterList:
    made = DrafterList()
    qtbot.addWidget(made)
    made.set_choices(CHOICES)
    made.resize(312, 300)
    made.show()
    return made


@pytest.fixture
def settable(drafters) -> DrafterList:
    """With a drafter of which something can be set."""
    drafters.set_choices([*CHOICES, DrafterRow.of(LOOKAHEAD), DrafterRow("suffix", "Suffix")])
    return drafters


@pytest.fixture
def told(drafters) -> list[str]:
    """Every drafter that was chosen."""
    return heard(drafters.drafter_chosen)


@pytest.fixture
def files(drafters) -> list[str]:
    """Every time that a file was asked for."""
    return heard(drafters.draft_file_requested)
