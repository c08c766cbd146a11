"""The column: centred, never too wide, never outside."""

from __future__ import annotations

import pytest

from app.chat.column import column_in


@pytest.mark.parametrize(
    ("width", "begins", "pixels"), [(780, 50, 680), (728, 24, 680), (500, 24, 452), (40, 20, 0)]
)
def test_the_column_is_centred_and_keeps_its_edges(width, begins, pixels):
    assert column_in(width) == (begins, pixels)
