"""Where files live: what ships with the app, and the user's own folders."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_NAME = "Draftlight"
_RESOURCES = Path(__file__).resolve().parent.parent / "resources"


def resource(*parts: str) -> Path:
    """A file that ships with the app, such as `resource("themes", "dark.toml")`."""
    return _RESOURCES.joinpath(*parts)


def settings_file() -> Path:
    """The user's settings, an INI file."""
    return platformdirs.user_config_path(_NAME, appauthor=False) / "settings.ini"


def log_file() -> Path:
    """The newest log; older ones stand beside it."""
    return platformdirs.user_log_path(_NAME, appauthor=False) / "draftlight.log"
