"""Sets Draftlight up in .venv, then opens it, or checks it. Needs nothing but Python and pip.

`make run` and `make test` come here; without make: `python packaging/set_up.py run`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import machine
import torch_build

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "draftlight.json"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
CONSOLE = f"{PYTHON.relative_to(ROOT)} -m engine chat"
CHECKS = (
    ("ruff check", ["-m", "ruff", "check"]),
    ("ruff format", ["-m", "ruff", "format", "--check"]),
    ("pyright", ["-m", "pyright"]),
    ("import-linter", ["-c", "from importlinter.cli import lint_imports_command as go; go()"]),
)


class SetUpError(Exception):
    """Something is missing; the text says what, and what to do."""


def say(text: str) -> None:
    """Tell what is being done, before the programs called print their own lines."""
    print(text, flush=True)


def call(*words: str, env: dict[str, str] | None = None) -> int:
    """Run Python in .venv at the root of the checkout; its exit status."""
    return subprocess.call([str(PYTHON), *words], cwd=ROOT, env=os.environ | (env or {}))


def make_environment() -> None:
    """Make .venv unless it is there and works."""
    if PYTHON.exists() and machine.works(PYTHON):
        return
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        raise SetUpError(
            "This Python has no venv module. On Debian or Ubuntu: sudo apt-get install python3-venv"
        )
    say(f"Making a virtual environment in {VENV} ...")
    if subprocess.call([sys.executable, "-m", "venv", "--clear", str(VENV)]):
        raise SetUpError("The virtual environment could not be made; the lines above say why.")


def requirements(*groups: str) -> list[str]:
    """What pyproject.toml asks for, in ranges; the optional groups named here too."""
    import tomllib  # An older Python must get as far as being told that it is too old.

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    return project["dependencies"] + [each for group in groups for each in optional[group]]


def read_pins() -> dict[str, str]:
    """The exact version of each package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {name: version for name, _, version in pairs}


def read_stamp() -> dict[str, object]:
    """What the last set-up did; empty before the first."""
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def install(*, dev: bool) -> None:
    """Install the requirements at their pins unless the stamp says that this was done."""
    pins = read_pins()
    wanted = requirements("dev") if dev else requirements()
    facts = json.dumps([requirements("dev"), pins])
    key = hashlib.sha256(facts.encode()).hexdigest()
    stamp = read_stamp()
    if stamp.get("key") == key and (stamp.get("dev") or not dev):
        return
    say(f"Installing what Draftlight needs into {VENV.name} ...")
    pins["torch"] = torch_pin(pins["torch"], placed_by_us=stamp.get("torch"))
    # Three equals signs: this build and no other, its label included.
    lines = [f"{name}{'===' if name == 'torch' else '=='}{pins[name]}" for name in pins]
    (VENV / "constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip_install(wanted)
    done = {"key": key, "dev": dev, "torch": installed_torch()}
    STAMP.write_text(json.dumps(done), encoding="utf-8")
    if machine.has_nvidia_driver():
        say_whether_torch_sees_the_gpu()


def pip_install(wanted: list[str]) -> None:
    """Have pip install these at the pins beside .venv's Python."""
    words = ["-m", "pip", "install", "--disable-pip-version-check"]
    if call(*words, "--constraint", str(VENV / "constraints.txt"), *wanted):
        raise SetUpError(
            "pip could not install the requirements; its last lines say why. Without a network or "
            "behind a proxy, set pip up first (pip config), then run this again."
        )


def torch_pin(version: str, *, placed_by_us: object) -> str:
    """The build of torch to install: the user's own if there is one, else by the machine."""
    installed = installed_torch()
    if installed and (installed != placed_by_us or installed.split("+")[0] == version):
        say(f"PyTorch {installed} is installed already and stays.")
        return installed
    if sys.platform == "darwin" and os.uname().machine == "x86_64":
        raise SetUpError(
            "PyTorch has had no builds for Intel Macs, or for an Intel Python on an Apple "
            "processor, since 2.3. Install a Python for Apple silicon, or use another machine."
        )
    driver = machine.has_nvidia_driver()
    build = torch_build.choose_build(torch_build.builds_offered(PYTHON, version), driver=driver)
    say(torch_build.explain(build, driver=driver))
    return build or version


def installed_torch() -> str:
    """The version of torch in .venv, its build's label included; empty if there is none."""
    code = "from importlib import metadata; print(metadata.version('torch'))"
    run = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.strip()


def say_whether_torch_sees_the_gpu() -> None:
    """A driver that is too old for a build shows only when the two meet."""
    code = "import torch; print(torch.cuda.is_available() and torch.cuda.get_device_name())"
    run = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)
    name = run.stdout.strip()
    if name not in ("", "False"):
        say(f"PyTorch sees the GPU: {name}.")
        return
    say(
        "PyTorch does not see the GPU and will use the CPU. Its CUDA may be newer than the driver "
        "allows: update the driver, or see 'Choosing a torch build' in README.md."
    )


def check_qt(platform_plugin: str) -> None:
    """Stop with the packages to install where Qt could not start."""
    for site_packages in VENV.glob("lib/python3*/site-packages"):
        missing = machine.missing_qt_libraries(site_packages, platform_plugin)
        if missing:
            raise SetUpError(machine.how_to_install(missing))


def set_up(*, dev: bool = False) -> None:
    """Everything that running or testing needs, each step only where it is not done yet."""
    make_environment()
    install(dev=dev)
    if call("-m", "engine.models.default_model"):
        raise SetUpError("Draftlight needs its default model to start with.")


def run(arguments: list[str]) -> int:
    """Open the window."""
    set_up()
    if not machine.has_display():
        raise SetUpError(
            "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), and the window "
            f"needs one.\nTo chat in this terminal: {CONSOLE}"
        )
    check_qt("xcb" if os.environ.get("DISPLAY") else "wayland")
    say("Opening Draftlight ...")
    status = call("-m", "app", *arguments)
    if status == -signal.SIGABRT:  # Qt aborts where a display does not answer.
        raise SetUpError(
            "The window could not open, or broke down; the lines above say why.\n"
            f"To chat in this terminal: {CONSOLE}"
        )
    return status


def chat(arguments: list[str]) -> int:
    """Chat in the terminal."""
    set_up()
    return call("-m", "engine", "chat", *arguments)


def test(arguments: list[str]) -> int:
    """Run every check; pytest comes last, so that its closing line ends the output."""
    set_up(dev=True)
    check_qt("offscreen")
    quiet = {
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"
    }  # It would ask a registry for its newest version.
    failed: list[str] = []
    for name, words in CHECKS:
        say(f"Checking with {name} ...")
        if call(*words, env=quiet):
            failed.append(name)
    say(f"FAILED before the tests: {', '.join(failed)}" if failed else "Running the tests ...")
    status = call("-m", "pytest", *arguments, env={"QT_QPA_PLATFORM": "offscreen"})
    if failed:
        say(f"FAILED, further up: {', '.join(failed)}")
    return status or bool(failed)


def format_code(arguments: list[str]) -> int:
    """Put imports and layout into the shape that the checks ask for."""
    set_up(dev=True)
    return call("-m", "ruff", "check", "--fix", *arguments) | call("-m", "ruff", "format")


def gpu_check(arguments: list[str]) -> int:
    """Run all that needs a GPU and print its figures."""
    set_up(dev=True)
    return call("packaging/gpu_check.py", *arguments)


def package(arguments: list[str]) -> int:
    """Build the packaged app for this system, try it out, and print its sizes."""
    set_up()
    pip_install(requirements("package"))
    return call("packaging/package.py", *arguments)


def only_set_up(_arguments: list[str]) -> int:
    """Set up for running and testing, and start nothing."""
    set_up(dev=True)
    say("Draftlight is set up.")
    return 0


COMMANDS = {
    "run": run,
    "chat": chat,
    "test": test,
    "format": format_code,
    "gpu-check": gpu_check,
    "package": package,
    "set-up": only_set_up,
}


def with_newer_python(arguments: list[str]) -> int:
    """Start again with a Python that is new enough."""
    oldest = ".".join(map(str, machine.OLDEST_PYTHON))
    newer = machine.newer_python()
    if newer is None:
        say(
            f"Draftlight needs Python {oldest} or newer; this is {sys.version.split()[0]}. "
            "Install one from your system's packages or from python.org, then run this again."
        )
        return 1
    return subprocess.call([newer, str(Path(__file__).resolve()), *arguments])


def main(arguments: list[str]) -> int:
    """Run the command named first; what follows is passed on. The exit status."""
    if sys.version_info[:2] < machine.OLDEST_PYTHON:
        return with_newer_python(arguments)
    name = arguments[0] if arguments else "run"
    if name not in COMMANDS:
        say(f"There is no command {name!r}; there are: {', '.join(COMMANDS)}.")
        return 2
    try:
        return COMMANDS[name](arguments[1:])
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("Stopped.")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
