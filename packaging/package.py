"""Builds the packaged app for this system, tries it out, and packs it; prints the figures.

`make package` comes here; what it makes lies in dist/.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import time
from importlib import metadata
from pathlib import Path

import smoke_test

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
DIST = ROOT / "dist"
MADE = ROOT / "build" / "draftlight" / "made"
_MB = 1e6


def main() -> int:
    """Build, try, pack; the exit status."""
    began = time.monotonic()
    bundle = build()
    print(f"Built in {time.monotonic() - began:.0f} s.", flush=True)
    status = smoke_test.main(bundle)
    if status:
        return status
    archive = PACKERS[sys.platform](bundle)
    print(f"Unpacked:   {size_of(bundle) / _MB:6.0f} MB  {bundle}")
    for name, bytes_taken in largest_parts(bundle):
        print(f"            {bytes_taken / _MB:6.0f} MB  {name}")
    print(f"Compressed: {size_of(archive) / _MB:6.0f} MB  {archive}")
    return 0


def build() -> Path:
    """Run PyInstaller; the folder or the app bundle that it makes."""
    folders = ["--distpath", str(DIST), "--workpath", str(MADE.parents[1])]
    words = ["-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", *folders]
    subprocess.run([sys.executable, *words, str(PACKAGING / "draftlight.spec")], check=True)
    if sys.platform == "darwin":
        return DIST / "Draftlight.app"
    bundle = DIST / "Draftlight"
    if sys.platform == "linux":
        _strip(bundle)
        _add_installer(bundle)
    return bundle


def name_of_archive() -> str:
    """Draftlight, its version, the system, and which torch is inside."""
    version = metadata.version("torch")
    torch = "cuda" if "+cu" in version or _has_cuda_libraries() else "cpu"
    system = {"linux": "linux", "win32": "windows", "darwin": "macos"}[sys.platform]
    sys.path.insert(0, str(ROOT))
    from engine import __version__

    words = ["Draftlight", __version__, system, platform.machine().lower()]
    return "-".join(words if sys.platform == "darwin" else [*words, torch])


def size_of(path: Path) -> int:
    """Bytes of a file, or of all in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file() and not file.is_symlink())


def largest_parts(bundle: Path) -> list[tuple[str, int]]:
    """What takes most of the room: the parts of the folder where the libraries lie."""
    inside = bundle / ("Contents/Frameworks" if bundle.suffix == ".app" else "_internal")
    sizes = [(part.name, size_of(part)) for part in inside.iterdir()]
    return sorted(sizes, key=lambda part: part[1], reverse=True)[:8]


def _has_cuda_libraries() -> bool:
    """A build of torch without a label is the CUDA one where NVIDIA's libraries are beside it."""
    return any(name.startswith("nvidia-") for name in _installed())


def _installed() -> list[str]:
    return [found.name.lower() for found in metadata.distributions()]


def _strip(bundle: Path) -> None:
    """Take the symbols out of torch's libraries, where they are a fifth, and out of Python's.

    Not out of all: numpy's algebra does not survive it.
    """
    patterns = ("torch/lib/*.so*", "libpython*.so*", "python3.*/lib-dynload/*.so")
    libraries = [path for each in patterns for path in (bundle / "_internal").glob(each)]
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)


def _add_installer(bundle: Path) -> None:
    """What puts the app into the menu, and takes it out again."""
    for file in (PACKAGING / "linux").iterdir():
        shutil.copy(file, bundle)
    shutil.copy(MADE / "draftlight.png", bundle)


def _pack_linux(bundle: Path) -> Path:
    """As xz at its quickest, which takes a sixth less room than gzip at its best."""
    archive = DIST / f"{name_of_archive()}.tar.xz"
    with tarfile.open(archive, "w:xz", preset=1) as packed:
        packed.add(bundle, arcname=bundle.name)
    return archive


def _pack_windows(bundle: Path) -> Path:
    """Not yet run."""
    return Path(shutil.make_archive(str(DIST / name_of_archive()), "zip", DIST, bundle.name))


def _pack_macos(bundle: Path) -> Path:
    """Not yet run."""
    image = DIST / f"{name_of_archive()}.dmg"
    subprocess.run([str(PACKAGING / "macos" / "make_dmg.sh"), bundle, image], check=True)
    return image


PACKERS = {"linux": _pack_linux, "win32": _pack_windows, "darwin": _pack_macos}


if __name__ == "__main__":
    sys.exit(main())
