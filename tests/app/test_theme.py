"""Both themes: every role is there, every text can be read, nothing else names a colour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.theme import Theme, load_theme, palette, style_sheet

if TYPE_CHECKING:
    from PySide6.QtGui import QColor

APP = Path(__file__).resolve().parents[2] / "app"
THEMES = [load_theme("light"), load_theme("dark")]
ON_BACKGROUNDS = ("background", "surface", "hover", "user_tint", "code_tint")


def luminance(color: QColor) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (color.redF(), color.greenF(), color.blueF())
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(theme: Theme, role: str, other: str) -> float:
    bright, dim = sorted(
        (luminance(theme.color(role)), luminance(theme.color(other))), reverse=True
    )
    return (bright + 0.05) / (dim + 0.05)


def test_both_themes_have_the_same_roles():
    assert THEMES[0].roles.keys() == THEMES[1].roles.keys()


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
@pytest.mark.parametrize("tint", ["accepted_tint", "resampled_tint", "target_tint", "selection"])
def test_text_on_every_tint_can_be_read(theme, tint):
    assert contrast(theme, "text", tint) >= 4.5


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
@pytest.mark.parametrize("background", ON_BACKGROUNDS)
@pytest.mark.parametrize("role", ["text", "muted"])
def test_words_can_be_read_wherever_they_stand(theme, role, background):
    assert contrast(theme, role, background) >= 4.5


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
@pytest.mark.parametrize(
    ("role", "background"),
    [
        ("on_strong", "strong"),
        ("on_accent", "accent"),
        ("text", "error_tint"),
        ("error", "surface"),
        ("accepted_line", "surface"),
    ],
)
def test_words_on_their_own_ground_can_be_read(theme, role, background):
    assert contrast(theme, role, background) >= 4.5


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
@pytest.mark.parametrize("line", ["accepted_line", "resampled_line", "target_line"])
def test_lines_under_tokens_stand_out_from_the_page(theme, line):
    assert contrast(theme, line, "surface") >= 3


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
def test_the_style_sheet_has_every_role_filled_in(theme):
    sheet = style_sheet(theme)

    assert "${" not in re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    assert theme.roles["accent"] in sheet


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
def test_the_palette_follows_the_theme(theme, qapp):
    assert palette(theme).text().color() == theme.color("text")
    assert palette(theme).base().color() == theme.color("surface")


def test_no_file_of_the_app_names_a_colour():
    literal = re.compile(
        r"""["']#[0-9a-fA-F]{3,8}["']|QColor\(\s*\d|Qt\.GlobalColor\.(?!transparent)"""
    )
    found = [path.name for path in APP.rglob("*.py") if literal.search(path.read_text("utf-8"))]

    assert found == []
