"""Colours by role, the fonts, and the style sheet; nothing else in the app names a colour.

Widgets ask for a look by the dynamic property `kind`, which resources/themes/window.qss knows:

- QPushButton: none (outlined), "primary" (filled), "toggle" (checkable), "quiet", "fold".
- QToolButton: "quiet"; none is left as the system has it.
- QLabel: none (15 px), "muted" (13 px), "small" (12 px), "heading" (12 px, half bold), "title"
  (15 px, half bold), "number" (15 px, bold), "pill-value" (12 px, half bold).
- QFrame: "card", "user-turn", "code", "composer", "pill", "row", "banner", "note".
- QProgressBar: "thin". QPlainTextEdit: "field" (framed). QTextEdit: "error" (12 px).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette

from app.paths import resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QGuiApplication

STEP = 4
"""Spacing goes in steps of this many pixels."""
CARD_RADIUS = 12
TEXT_PIXELS = 15
SMALL_PIXELS = 12
CODE_PIXELS = 13
LINE_HEIGHT_PER_CENT = 155


@dataclass(frozen=True, slots=True)
class Theme:
    """A look: the colour of every role. name: "light" or "dark"."""

    name: str
    roles: Mapping[str, str]

    def color(self, role: str) -> QColor:
        """The colour of a role; KeyError for a role that no theme file has."""
        return QColor(self.roles[role])


def load_theme(name: str) -> Theme:
    """The theme in resources/themes under this name."""
    data = tomllib.loads(resource("themes", f"{name}.toml").read_text(encoding="utf-8"))
    colors = data["colors"]
    return Theme(name, {role: colors[color] for role, color in data["roles"].items()})


def system_theme(app: QGuiApplication) -> Theme:
    """The theme that the system asks for; light where it says nothing."""
    dark = app.styleHints().colorScheme() is Qt.ColorScheme.Dark
    return load_theme("dark" if dark else "light")


def style_sheet(theme: Theme) -> str:
    """The whole style sheet of the window, its dialogs and menus."""
    template = Template(resource("themes", "window.qss").read_text(encoding="utf-8"))
    images = resource("icons").as_posix()
    return template.substitute(theme.roles, theme=theme.name, icons=images)


def palette(theme: Theme) -> QPalette:
    """The theme for what a style sheet does not reach: selections, placeholders, scroll areas."""
    made = QPalette()
    for role, name in _PALETTE_ROLES.items():
        made.setColor(role, theme.color(name))
    disabled = QPalette.ColorGroup.Disabled
    for role in (
        QPalette.ColorRole.Text,
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.ButtonText,
    ):
        made.setColor(disabled, role, theme.color("disabled"))
    return made


def small_font() -> QFont:
    """The system's UI font at the size of small print."""
    return _sized(QFontDatabase.SystemFont.GeneralFont, SMALL_PIXELS)


def code_font() -> QFont:
    """The system's fixed font at the size of code."""
    return _sized(QFontDatabase.SystemFont.FixedFont, CODE_PIXELS)


def _sized(family: QFontDatabase.SystemFont, pixels: int) -> QFont:
    font = QFontDatabase.systemFont(family)
    font.setPixelSize(pixels)
    return font


_PALETTE_ROLES = {
    QPalette.ColorRole.Window: "background",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "surface",
    QPalette.ColorRole.AlternateBase: "hover",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.PlaceholderText: "muted",
    QPalette.ColorRole.Button: "surface",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "error",
    QPalette.ColorRole.Highlight: "selection",
    QPalette.ColorRole.HighlightedText: "text",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.ToolTipBase: "surface",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.Accent: "accent",
}
