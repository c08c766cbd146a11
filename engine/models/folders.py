"""Where Draftlight keeps what it got for the user. Free of torch."""

import os
from pathlib import Path

import platformdirs

DATA_VARIABLE = "DRAFTLIGHT_DATA"
"""The environment variable that names another data folder, for a portable copy or a test."""


def data_folder() -> Path:
    """The user's data folder of Draftlight; it need not exist yet."""
    chosen = os.environ.get(DATA_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_data_path("Draftlight", appauthor=False)


def models_folder() -> Path:
    """The folder for models that Draftlight got itself."""
    return data_folder() / "models"


def cache_folder() -> Path:
    """The folder for what can be made again; it need not exist yet."""
    if os.environ.get(DATA_VARIABLE):
        return data_folder() / "cache"
    return platformdirs.user_cache_path("Draftlight", appauthor=False)
