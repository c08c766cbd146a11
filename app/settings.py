"""What the app remembers between runs, in an INI file; a damaged entry gives its default."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QRect, QSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEFAULT_SIZE = (1360, 860)
MAX_RECENT = 6
_ITEM_TYPES = {"recent": str, "geometry": int}


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's choices.

    drafters: by family, the drafter that was chosen of it last. draft_length: 0 for as far as it
        pays. tree_nodes: 0 for chains. recent: targets opened by file or folder, newest first.
        geometry: x, y, width, height of the window; empty until it was once shown. sampling: what
        SamplingSection calls its values.
    """

    target: str = "default"
    device: str = "auto"
    drafter: str = "auto"
    drafters: Mapping[str, Any] = field(default_factory=dict)
    draft_length: int = 0
    tree_nodes: int = 0
    colours: bool = True
    panel: bool = True
    maximised: bool = False
    recent: tuple[str, ...] = ()
    geometry: tuple[int, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def with_recent(self, target: str) -> tuple[str, ...]:
        """The recent targets after `target` was opened."""
        if target == "default":
            return self.recent
        return (target, *(other for other in self.recent if other != target))[:MAX_RECENT]


class SettingsStore:
    """Reads and writes the settings of one file."""

    def __init__(self, path: Path) -> None:
        self._file = QSettings(str(path), QSettings.Format.IniFormat)

    def load(self) -> Settings:
        """The settings; every entry that cannot be read has its default."""
        defaults = Settings()
        found = {
            entry.name: _read(
                entry.name, self._file.value(entry.name), getattr(defaults, entry.name)
            )
            for entry in fields(Settings)
        }
        return Settings(**cast("dict[str, Any]", found))

    def save(self, settings: Settings) -> bool:
        """Write all of them; QSettings replaces the file as a whole. Says whether it could be."""
        for entry in fields(Settings):
            self._file.setValue(entry.name, json.dumps(_plain(getattr(settings, entry.name))))
        self._file.sync()
        return self._file.status() is not QSettings.Status.AccessError


def reachable(wanted: Sequence[int], screens: Sequence[QRect]) -> QRect:
    """A window rectangle that lies on a screen, title bar and all, as near to `wanted` as it goes.

    wanted: x, y, width, height, or empty. screens: the usable areas, the primary one first.
    """
    primary = screens[0]
    if len(wanted) != 4 or wanted[2] <= 0 or wanted[3] <= 0:
        rect = QRect(0, 0, *DEFAULT_SIZE)
        rect.moveCenter(primary.center())
        screen = primary
    else:
        rect = QRect(*wanted)
        screen = max(screens, key=lambda area: _overlap(area, rect))
    rect.setSize(rect.size().boundedTo(screen.size()))
    rect.moveLeft(min(max(rect.left(), screen.left()), screen.right() - rect.width() + 1))
    rect.moveTop(min(max(rect.top(), screen.top()), screen.bottom() - rect.height() + 1))
    return rect


def _overlap(area: QRect, rect: QRect) -> int:
    shared = area.intersected(rect)
    return shared.width() * shared.height()


def _read(name: str, stored: object, default: object) -> object:
    """The stored JSON if it has the default's type, else the default."""
    try:
        value = json.loads(stored) if isinstance(stored, str) else default
    except ValueError:
        return default
    if name in _ITEM_TYPES:
        items = value if isinstance(value, list) else [None]
        fits = all(type(item) is _ITEM_TYPES[name] for item in items)
        return tuple(items) if fits else default
    return value if type(value) is type(default) else default


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value
