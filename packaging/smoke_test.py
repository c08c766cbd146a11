"""Starts the packaged app as on a stranger's machine, and sees whether it answers.

`python packaging/smoke_test.py FOLDER`, with the folder or the app bundle that was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

WITHOUT_FILES = ("ngram", "suffix", "layer-skip")
READY = "The window is ready."
PASSED = "Self-test: passed."
_KEPT = ("SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "OMP_NUM_THREADS")
"""What Windows starts no program without, and how many threads a shared machine allows."""
_WINDOWS_FOLDERS = ("WIN_PD_OVERRIDE_APPDATA", "WIN_PD_OVERRIDE_LOCAL_APPDATA")
"""Windows is asked for these folders by name, not by HOME; platformdirs reads these first."""
_SHIPPED_CONFIGS = "resources/drafters/*/config.json"
_LOOK_SECONDS = 0.02
_LONGEST_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the app. ready_seconds: from the start of the process to its ready line."""

    status: int
    ready_seconds: float | None
    log: str

    @property
    def passed(self) -> bool:
        """Whether every drafter answered."""
        return self.status == 0 and self.ready_seconds is not None and PASSED in self.log


def program_in(bundle: Path) -> Path:
    """The program of a folder, or of a macOS app bundle."""
    if bundle.suffix == ".app":
        return bundle / "Contents" / "MacOS" / "Draftlight"
    return bundle / ("Draftlight.exe" if os.name == "nt" else "Draftlight")


def drafters_for(bundle: Path) -> list[str]:
    """Four drafters: three without files, and a head that ships; without one, a draft model."""
    shipped = {path.parent.name: path.parent for path in bundle.rglob(_SHIPPED_CONFIGS)}
    heads = sorted(shipped.keys() - {"draft-model"})
    spec = f"{heads[0]}:{shipped[heads[0]]}" if heads else "draft-model:default"
    return [*WITHOUT_FILES, spec]


def start(program: Path, home: Path, drafters: list[str]) -> Start:
    """Run the app's own test under a bare environment until it ends."""
    for log in home.rglob("*.log"):
        log.unlink()
    command = [*_without_network(), str(program), "--self-test", *drafters]
    began = time.monotonic()
    ready = None
    with subprocess.Popen(command, env=bare_environment(home), cwd=home) as app:
        ended = False
        while not ended:
            time.sleep(_LOOK_SECONDS)
            ended = app.poll() is not None
            if ready is None and READY in _logged(home):
                ready = time.monotonic() - began
            if time.monotonic() - began > _LONGEST_SECONDS:
                app.kill()
    return Start(app.returncode, ready, _logged(home))


def bare_environment(home: Path) -> dict[str, str]:
    """No Python on the path, an empty home, no screen; Windows needs a few names more."""
    places = ("HOME", "TMPDIR", "USERPROFILE", "TEMP", "TMP", *_WINDOWS_FOLDERS)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    nowhere = {"PATH": str(home / "nothing"), "QT_QPA_PLATFORM": "offscreen"}
    return {**kept, **dict.fromkeys(places, str(home)), **nowhere}


def _without_network() -> list[str]:
    """Words before a command that take the network from it, where this system has such."""
    words = [shutil.which("unshare") or "unshare", "--map-root-user", "--net"]
    try:
        works = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return words if works else []


def _logged(home: Path) -> str:
    logs = home.rglob("*.log")
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in logs)


def main(bundle: Path) -> int:
    """Two starts, of which the second finds what the first has kept; the exit status."""
    bundle = bundle.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "Prüf ordner" / bundle.name
        shutil.copytree(bundle, place, symlinks=True)
        drafters = drafters_for(place)
        print(f"Drafters: {', '.join(spec.partition(':')[0] for spec in drafters)}", flush=True)
        if not _without_network():
            print("The network can't be taken from one program here, so it is left as it is.")
        home = Path(scratch) / "Heim é"
        home.mkdir()
        for name in ("first", "second"):
            done = start(program_in(place), home, drafters)
            print(done.log, end="")
            if not done.passed:
                print(f"FAILED at the {name} start, with exit status {done.status}.")
                return 1
            print(f"The {name} start showed the window after {done.ready_seconds:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
