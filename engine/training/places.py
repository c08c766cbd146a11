"""Where a drafter and its texts are to be: looked at before hours of work depend on it."""

from __future__ import annotations

from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from engine.drafters.head_files import read_config
from engine.errors import DrafterMismatch, EngineError

if TYPE_CHECKING:
    from pathlib import Path


def check_replaceable(folder: Path, target: str) -> None:
    """See that nothing is lost if a drafter is written there.

    It may be a folder to be made, one without files of its own, or that of a drafter which was
    trained here. target: the fingerprint of what that one drafts for.

    Raises:
        EngineError: it holds something else, or can't be looked into.
    """
    try:
        files = [each.name for each in folder.iterdir() if each.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unusable(folder, error) from error
    others = sorted(name for name in files if not name.startswith(".") and _is_whole(name))
    if others and not _is_trained_here(folder, target):
        raise EngineError(
            f"The folder {folder} holds {others[0]}, which is of no drafter that was trained here "
            "for this model. Choose a new folder with --out."
        )


def check_writable(folder: Path) -> None:
    """Make a folder where there is none, and see that files can be written to it.

    Raises:
        EngineError: they can't.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder):
            pass
    except FileExistsError as error:
        raise EngineError(f"{folder} is a file. Choose a folder.") from error
    except OSError as error:
        raise _unusable(folder, error) from error


def _is_whole(name: str) -> bool:
    """Unlike what a kill while writing leaves."""
    return not name.endswith(".part")


def _is_trained_here(folder: Path, target: str) -> bool:
    try:
        return read_config(folder).get("base_model_fingerprint") == target
    except DrafterMismatch:
        return False


def _unusable(folder: Path, error: OSError) -> EngineError:
    return EngineError(
        f"The folder {folder} can't be written to: {error.strerror or error}. Choose another."
    )
