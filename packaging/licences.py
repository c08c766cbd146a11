"""The licences of everything that is bundled: one folder each, and a list of all."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
_WORDS = ("licen", "copying", "notice", "authors", "copyright")


def collect(modules: Iterable[str], libraries: Iterable[str], folder: Path) -> None:
    """Copy the licences into `folder`, which is made anew.

    modules: names of what was bundled, dots and all. libraries: paths of the libraries that were,
    as they lie on this system.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = ["Draftlight: Apache-2.0", "SmolLM2 135M Instruct, the default model: Apache-2.0"]
    shutil.copy(ROOT / "LICENSE", folder / "Draftlight and SmolLM2.txt")
    lines.append(f"Python {sys.version.split()[0]}: PSF-2.0")
    _copy([_python_licence()], folder / "Python")
    for found in _distributions({name.partition(".")[0] for name in modules}):
        lines.append(f"{found.name} {found.version}: {_licence_of(found)}")
        _copy(_licence_files(found), folder / found.name)
    for package in _system_packages(libraries):
        lines.append(f"{package}: see its file")
        _copy([Path("/usr/share/doc") / package / "copyright"], folder / package)
    (folder / "bundled.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _distributions(packages: set[str]) -> list[metadata.Distribution]:
    """What brought these packages here, by name."""
    owners = metadata.packages_distributions()
    names = {name for package in packages for name in owners.get(package, ())}
    return [metadata.distribution(name) for name in sorted(names, key=str.lower)]


def _licence_of(found: metadata.Distribution) -> str:
    """As the distribution calls it; older ones say it among their classifiers."""
    facts = found.metadata
    for field in ("License-Expression", "License"):
        if field in facts and facts[field] and "\n" not in facts[field]:
            return facts[field]
    lines: list[str] = facts.get_all("Classifier") or []
    classified = [line.rpartition(" :: ")[2] for line in lines if line.startswith("License")]
    return ", ".join(classified) or "see its files"


def _licence_files(found: metadata.Distribution) -> list[Path]:
    named = [file for file in found.files or () if any(w in file.name.lower() for w in _WORDS)]
    return [Path(str(found.locate_file(file))) for file in named if file.suffix != ".py"]


def _python_licence() -> Path:
    """Where Python's own licence lies: beside its library, or on Windows beside its program."""
    places = (Path(sysconfig.get_path("stdlib")), Path(sys.base_prefix))
    files = [place / name for place in places for name in ("LICENSE.txt", "LICENSE")]
    return next((file for file in files if file.is_file()), files[0])


def _system_packages(libraries: Iterable[str]) -> list[str]:
    """The Debian packages that libraries of the system come from; none on other systems."""
    if shutil.which("dpkg-query") is None:
        return []
    ours = (sys.prefix, sys.base_prefix, str(ROOT))
    files = sorted({str(Path(path).resolve()) for path in libraries if not path.startswith(ours)})
    places = [f"*{file.removeprefix('/usr')}" for file in files if ".so" in file]
    if not places:
        return []
    run = subprocess.run(
        ["dpkg-query", "--search", *places], capture_output=True, text=True, check=False
    )
    return sorted({line.partition(":")[0] for line in run.stdout.splitlines()})


def _copy(files: list[Path], folder: Path) -> None:
    """Files of one name are kept apart by a number."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.is_file():
            place = folder / file.name
            number = 1
            while place.exists():
                number += 1
                place = folder / f"{file.stem} {number}{file.suffix}"
            shutil.copyfile(file, place)
