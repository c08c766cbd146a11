"""What this machine has: a Python new enough, an NVIDIA driver, a display, the libraries of Qt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OLDEST_PYTHON = (3, 11)

# Which Debian package holds a library that Qt needs and a bare system lacks.
DEBIAN_PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}


def works(python: str | Path) -> bool:
    """Whether this interpreter starts and is new enough."""
    code = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    try:
        return subprocess.call([str(python), "-c", code], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def newer_python() -> str | None:
    """A Python that is new enough, where `python3` is not."""
    found = (shutil.which(f"python3.{minor}") for minor in (14, 13, 12, 11))
    return next((python for python in found if python and works(python)), None)


def has_nvidia_driver() -> bool:
    """Whether an NVIDIA driver answers and names a GPU."""
    program = shutil.which("nvidia-smi")
    if not program:
        return False
    try:
        run = subprocess.run([program, "-L"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0 and b"GPU" in run.stdout


def has_display() -> bool:
    """Whether a window can be shown; only Linux can be without a display here."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def missing_qt_libraries(site_packages: Path, platform_plugin: str) -> list[str]:
    """The shared libraries that Qt and its platform plugin need and this Linux system lacks."""
    ldd = shutil.which("ldd")
    if not ldd or not sys.platform.startswith("linux"):
        return []
    pyside = site_packages / "PySide6"
    files = [pyside / f"Qt{part}.abi3.so" for part in ("Gui", "Widgets")]
    files.append(pyside / "Qt" / "plugins" / "platforms" / f"libq{platform_plugin}.so")
    run = subprocess.run([ldd, *map(str, files)], capture_output=True, text=True, check=False)
    return libraries_not_found(run.stdout)


def libraries_not_found(ldd_output: str) -> list[str]:
    """The names that ldd could not resolve, each once."""
    lines = (line.split() for line in ldd_output.splitlines() if line.endswith("not found"))
    return sorted({words[0] for words in lines})


def how_to_install(libraries: list[str]) -> str:
    """One sentence that says which libraries Qt misses and what brings them."""
    packages = sorted({DEBIAN_PACKAGES.get(name, "") for name in libraries} - {""})
    unknown = [name for name in libraries if name not in DEBIAN_PACKAGES]
    advice = f"Qt, which draws the window, misses system libraries: {', '.join(libraries)}."
    if packages:
        advice += f"\nOn Debian or Ubuntu: sudo apt-get install {' '.join(packages)}"
    if unknown:
        advice += f"\nInstall what your system calls the packages with {', '.join(unknown)}."
    return advice
