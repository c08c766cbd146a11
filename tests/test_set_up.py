"""What the set-up decides and says; the long way itself is taken by every `make test`."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import machine
import set_up
import torch_build

ROOT = Path(__file__).resolve().parent.parent

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd4a9f2000)
\tlibxcb-cursor.so.0 => not found
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1c8a000000)
\tlibEGL.so.1 => not found
\tlibEGL.so.1 => not found
\tlibstrange.so.2 => not found
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A root of its own for the files that set_up writes."""
    folder = tmp_path / "Prüf ordner"
    (folder / ".venv").mkdir(parents=True)
    monkeypatch.setattr(set_up, "ROOT", folder)
    monkeypatch.setattr(set_up, "VENV", folder / ".venv")
    monkeypatch.setattr(set_up, "STAMP", folder / ".venv" / "draftlight.json")
    monkeypatch.setattr(set_up, "PYTHON", Path(sys.executable))
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture
def calls(monkeypatch):
    """What would have been run; nothing is."""
    made: list[tuple[str, ...]] = []

    def note(*words: str, env: dict[str, str] | None = None) -> int:
        made.append(words)
        return 0

    monkeypatch.setattr(set_up, "call", note)
    monkeypatch.setattr(machine, "has_nvidia_driver", lambda: False)
    return made


def test_missing_libraries_are_read_off_ldd_once_each():
    assert machine.libraries_not_found(LDD) == [
        "libEGL.so.1",
        "libstrange.so.2",
        "libxcb-cursor.so.0",
    ]


def test_missing_libraries_get_the_command_that_brings_them():
    advice = machine.how_to_install(machine.libraries_not_found(LDD))

    assert "sudo apt-get install libegl1 libxcb-cursor0" in advice
    assert "libstrange.so.2" in advice.splitlines()[-1]


def test_every_library_that_may_be_missed_is_installed_by_ci():
    # These come with others that are named there.
    implied = {
        "libx11-6",
        "libfreetype6",
        "libxcb1",
        "libxcb-glx0",
        "libxcb-render0",
        "libxcb-util1",
    }
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert set(machine.DEBIAN_PACKAGES.values()) - implied <= set(script.split())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can lack a display")
def test_display_is_needed_on_linux(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    without = machine.has_display()
    monkeypatch.setenv("DISPLAY", ":0")

    assert not without
    assert machine.has_display()


@pytest.mark.parametrize(
    ("offered", "driver", "system", "build"),
    [
        ({"2.13.0", "2.13.0+cpu"}, False, "linux", "2.13.0+cpu"),
        ({"2.13.0", "2.13.0+cpu"}, True, "linux", "2.13.0"),
        ({"2.13.0", "2.13.0+cu126", "2.13.0+cu130"}, True, "linux", "2.13.0+cu130"),
        ({"2.13.0"}, False, "linux", "2.13.0"),
        ({"2.13.0+cpu"}, True, "linux", "2.13.0+cpu"),
        ({"2.13.0"}, True, "win32", "2.13.0"),
        ({"2.13.0", "2.13.0+cu130"}, True, "win32", "2.13.0+cu130"),
        ({"2.13.0", "2.13.0+cu130"}, False, "win32", "2.13.0"),
        ({"2.13.0"}, False, "darwin", None),
        (set(), True, "linux", None),
    ],
)
def test_torch_build_follows_the_machine(offered, driver, system, build):
    assert torch_build.choose_build(offered, driver=driver, system=system) == build


def test_large_download_is_named_before_it_starts():
    sentence = torch_build.explain("2.13.0", driver=False, system="linux")

    assert torch_build.CUDA_DOWNLOAD in sentence
    assert "Choosing a torch build" in sentence


def test_gpu_left_unused_is_told():
    assert "stays unused" in torch_build.explain("2.13.0+cpu", driver=True, system="linux")


def test_sections_that_messages_name_are_in_the_readme():
    assert "# Choosing a torch build" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_nothing_is_installed_when_nothing_has_changed(checkout, calls):
    set_up.install(dev=True)
    first = len(calls)

    set_up.install(dev=True)
    set_up.install(dev=False)

    assert first == 1
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(checkout, calls, name):
    set_up.install(dev=True)
    path = checkout / name
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("tqdm", "tqdm-other"), encoding="utf-8")

    set_up.install(dev=True)

    assert len(calls) == 2


def test_tools_are_added_for_the_tests(checkout, calls):
    set_up.install(dev=False)
    set_up.install(dev=True)

    assert not any("pytest>" in word for word in calls[0])
    assert any("pytest>" in word for word in calls[1])


def test_torch_that_the_user_installed_stays(checkout, calls, monkeypatch, capsys):
    monkeypatch.setattr(set_up, "installed_torch", lambda: "2.7.1+cu118")

    set_up.install(dev=False)

    pins = (checkout / ".venv" / "constraints.txt").read_text(encoding="utf-8")
    assert "torch===2.7.1+cu118\n" in pins
    assert "2.7.1+cu118 is installed already and stays" in capsys.readouterr().out


def test_packager_is_installed_at_its_pin_before_it_packs(checkout, calls, monkeypatch):
    monkeypatch.setattr(set_up, "set_up", lambda: set_up.install(dev=False))

    status = set_up.main(["package"])

    installed, packed = calls[-2:]
    assert status == 0
    assert any(word.startswith("pyinstaller>") for word in installed)
    assert str(checkout / ".venv" / "constraints.txt") in installed
    assert packed == ("packaging/package.py",)


def test_failing_pip_leaves_no_stamp(checkout, calls, monkeypatch):
    monkeypatch.setattr(set_up, "call", lambda *words, env=None: 1)

    with pytest.raises(set_up.SetUpError, match="pip could not install"):
        set_up.install(dev=False)

    assert not set_up.STAMP.exists()


def test_python_without_venv_is_told_what_to_install(checkout, monkeypatch):
    monkeypatch.setattr(set_up, "PYTHON", checkout / ".venv" / "bin" / "python")
    monkeypatch.setattr(set_up, "find_spec", lambda name: None)

    with pytest.raises(set_up.SetUpError, match="apt-get install python3-venv"):
        set_up.make_environment()


def test_run_without_a_display_names_the_console(monkeypatch, capsys):
    monkeypatch.setattr(set_up, "set_up", lambda: None)
    monkeypatch.setattr(machine, "has_display", lambda: False)

    status = set_up.main(["run"])

    assert status == 1
    assert "-m engine chat" in capsys.readouterr().err


def test_window_that_breaks_down_leaves_the_console_as_a_way(calls, monkeypatch, capsys):
    monkeypatch.setattr(set_up, "set_up", lambda: None)
    monkeypatch.setattr(set_up, "check_qt", lambda platform_plugin: None)
    monkeypatch.setattr(machine, "has_display", lambda: True)
    monkeypatch.setattr(set_up, "call", lambda *words, env=None: -6)

    status = set_up.main(["run"])

    assert status == 1
    assert "-m engine chat" in capsys.readouterr().err


def test_checks_that_fail_do_not_hide_the_tests(calls, monkeypatch, capsys):
    def only_pytest_passes(*words: str, env: dict[str, str] | None = None) -> int:
        calls.append(words)
        return 0 if "pytest" in words else 1

    monkeypatch.setattr(set_up, "set_up", lambda *, dev: None)
    monkeypatch.setattr(set_up, "check_qt", lambda platform_plugin: None)
    monkeypatch.setattr(set_up, "call", only_pytest_passes)

    status = set_up.main(["test", "-k", "words"])

    assert status == 1
    assert calls[-1] == ("-m", "pytest", "-k", "words")
    assert "FAILED before the tests: ruff check, ruff format, pyright" in capsys.readouterr().out


def test_unknown_command_lists_those_that_exist(capsys):
    status = set_up.main(["rum"])

    assert status == 2
    assert "run, chat, test" in capsys.readouterr().out


def test_every_requirement_has_one_exact_pin():
    pins = {name.lower() for name in set_up.read_pins()}
    wanted = {
        re.split(r"[\[<>=!]", requirement)[0].lower()
        for requirement in set_up.requirements("dev", "package")
    }

    assert wanted <= pins


def test_files_that_install_things_name_no_address():
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8")


def test_version_is_said_the_same_everywhere():
    import engine

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["version"] == engine.__version__
