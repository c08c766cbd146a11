"""What goes into the packaged app, and what is made beside it; the app itself: `make package`."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

import contents
import icons
import licences
import package
import smoke_test

ROOT = Path(__file__).resolve().parent.parent
LINUX = ROOT / "packaging" / "linux"


@pytest.mark.parametrize(
    "path",
    [
        "PySide6/Qt/lib/libQt6Core.so.6",
        "PySide6/QtWidgets.abi3.so",
        "PySide6/Qt/plugins/platforms/libqxcb.so",
        r"PySide6\plugins\platforms\qwindows.dll",
        "PySide6/Qt/lib/QtGui.framework/Versions/A/QtGui",
        "PySide6/Qt/lib/libicudata.so.73",
        "torch/bin/torch_shm_manager",
        "torch/lib/libtorch_cpu.so",
        "transformers/models/llama/modeling_llama.py",
        "gguf-0.19.0.dist-info/METADATA",
        "resources/models/SmolLM2-135M-Instruct.Q4_1.gguf",
    ],
)
def test_what_the_app_needs_is_bundled(path):
    assert contents.is_wanted(path)


@pytest.mark.parametrize(
    "path",
    [
        "libQt6Quick.so.6",
        "Qt6Pdf.dll",
        "PySide6/QtQml.abi3.so",
        "PySide6/Qt/plugins/platformthemes/libqgtk3.so",
        "PySide6/Qt/lib/QtQuick.framework/Versions/A/QtQuick",
        "PySide6/Qt/translations/qt_de.qm",
        "torch/bin/protoc",
        "torch/include/torch/torch.h",
        "torch/lib/libtorchbind_test.so",
        "pytest_timeout-2.4.0.dist-info/METADATA",
        "torch-2.13.0+cpu.dist-info/RECORD",
    ],
)
def test_what_nobody_needs_is_left_out(path):
    assert not contents.is_wanted(path)


def test_every_model_of_transformers_is_named_and_only_pictures_and_sound_are_not():
    names = set(contents.transformers_modules())

    assert "transformers.models.llama.modeling_llama" in names
    assert "transformers.models.auto.image_processing_auto" in names
    assert "transformers.feature_extraction_utils" in names
    assert "transformers" in names
    assert "transformers.models.clip.image_processing_clip" not in names
    assert "transformers.cli" not in names


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bring no orphans")
def test_a_library_that_only_a_left_out_one_asked_for_goes():
    libraries = [
        ("PySide6/Qt/plugins/platforms/libqxcb.so", "/qt/libqxcb.so", "BINARY"),
        ("libxcb.so.1", "/usr/lib/libxcb.so.1", "BINARY"),
        ("libXau.so.6", "/usr/lib/libXau.so.6", "BINARY"),
        ("libgtk-3.so.0", "/usr/lib/libgtk-3.so.0", "BINARY"),
        ("libpython3.11.so.1.0", "/usr/lib/libpython3.11.so.1.0", "BINARY"),
        ("libQt6Core.so.6", "PySide6/Qt/lib/libQt6Core.so.6", "SYMLINK"),
    ]
    asks = {"/qt/libqxcb.so": ["libxcb.so.1"], "/usr/lib/libxcb.so.1": ["libXau.so.6"]}

    left = contents.without_orphans(
        libraries, lambda path: [(name, None) for name in asks.get(path, ())]
    )

    gone = {name for name, *_ in libraries} - {name for name, *_ in left}
    assert gone == {"libgtk-3.so.0"}


def test_icons_hold_the_sizes_that_they_name(qapp):
    ico, icns = icons.ico(), icons.icns()
    count = struct.unpack_from("<H", ico, 4)[0]
    first_size, first_place = struct.unpack_from("<2I", ico, 6 + 8)

    assert count == 7
    assert QImage.fromData(ico[first_place : first_place + first_size]).width() == 16
    assert struct.unpack_from(">I", icns, 4)[0] == len(icns)
    assert QImage.fromData(icons.png(256)).size().toTuple() == (256, 256)


def test_licences_are_copied_and_listed(tmp_path):
    licences.collect(["numpy.linalg", "jinja2", "app.window"], [], tmp_path / "licences")

    listed = (tmp_path / "licences" / "bundled.txt").read_text(encoding="utf-8")
    assert "numpy 2" in listed
    assert "Jinja2 3" in listed
    assert "SmolLM2" in listed
    assert any((tmp_path / "licences" / "numpy").iterdir())
    assert any((tmp_path / "licences" / "Python").iterdir())


@pytest.fixture
def bundle(tmp_path) -> Path:
    """A folder as PyInstaller makes it, with a program that logs what the real one logs."""
    folder = tmp_path / "with space é" / "Draftlight"
    (folder / "_internal").mkdir(parents=True)
    program = folder / "Draftlight"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nfrom pathlib import Path\n"
        "log = Path(os.environ['HOME'], 'log', 'draftlight.log')\nlog.parent.mkdir(exist_ok=True)\n"
        f"log.write_text('{smoke_test.READY}\\n' + ' '.join(sys.argv[1:]) + os.environ['PATH'])\n"
        f"log.write_text(log.read_text() + '\\n{smoke_test.PASSED}\\n')\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    (folder / "draftlight.png").write_bytes(b"png")
    for file in LINUX.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
        (folder / file.name).chmod(file.stat().st_mode)
    return folder


posix = pytest.mark.skipif(os.name == "nt", reason="the scripts are for a shell")


@posix
def test_the_smoke_test_passes_a_program_that_says_so(bundle, capsys):
    status = smoke_test.main(bundle)

    said = capsys.readouterr().out
    assert status == 0
    assert "Drafters: ngram, suffix, layer-skip, draft-model" in said
    assert "--self-test ngram suffix layer-skip draft-model:default" in said
    assert "/nothing" in said


@posix
def test_the_smoke_test_fails_a_program_that_says_nothing(bundle, capsys):
    (bundle / "Draftlight").write_text("#!/bin/sh\n", encoding="utf-8")

    assert smoke_test.main(bundle) == 1
    assert "FAILED at the first start" in capsys.readouterr().out


def test_a_head_that_ships_is_tried_in_place_of_a_draft_model(tmp_path):
    shipped = tmp_path / "_internal" / "resources" / "drafters"
    for name in ("draft-model", "eagle", "medusa"):
        (shipped / name).mkdir(parents=True)
        (shipped / name / "config.json").write_text("{}")

    head = shipped / "eagle"
    assert smoke_test.drafters_for(tmp_path) == [*smoke_test.WITHOUT_FILES, f"eagle:{head}"]


@posix
def test_what_the_installer_puts_in_the_uninstaller_takes_out(bundle, tmp_path):
    home = tmp_path / "Heim é"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    subprocess.run([bundle / "install.sh"], env=environment, check=True, capture_output=True)
    entry = home / ".local/share/applications/draftlight.desktop"
    program = home / ".local/opt/Draftlight/Draftlight"
    installed = entry.read_text(encoding="utf-8")
    started = subprocess.run(
        [home / ".local/bin/draftlight"], env=environment, check=False, capture_output=True
    )
    kept = home / ".config/Draftlight"
    kept.mkdir(parents=True)
    removed = subprocess.run(
        [program.with_name("uninstall.sh")],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )

    assert f'Exec="{program}" %f' in installed
    assert program.name == "Draftlight"
    assert started.returncode == 0
    assert str(kept) in removed.stdout
    left = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in left if "mime" not in path.parts and "log" not in path.parts] == []
    assert not any("gguf" in path.read_text(errors="replace") for path in left)


@posix
def test_a_newer_version_takes_the_place_of_the_older_one_whole(bundle, tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    (bundle / "_internal" / "old.so").write_text("old")
    subprocess.run([bundle / "install.sh"], env=environment, check=True, capture_output=True)
    (bundle / "_internal" / "old.so").unlink()

    subprocess.run([bundle / "install.sh"], env=environment, check=True, capture_output=True)

    assert not list(tmp_path.joinpath(".local/opt/Draftlight").rglob("old.so"))
    assert not tmp_path.joinpath(".local/opt/Draftlight.new").exists()


@posix
def test_scripts_can_be_run():
    for script in [*LINUX.glob("*.sh"), *ROOT.joinpath("packaging").glob("macos/*.sh")]:
        assert script.stat().st_mode & stat.S_IXUSR
        subprocess.run(["sh", "-n", script], check=True)


def test_the_archive_is_named_after_version_system_and_torch():
    import engine

    name = package.name_of_archive()

    assert name.startswith(f"Draftlight-{engine.__version__}-")
