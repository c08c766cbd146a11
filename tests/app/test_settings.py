"""What is remembered between runs, and what a damaged file does to it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect

from app.settings import DEFAULT_SIZE, MAX_RECENT, Settings, SettingsStore, reachable

SCREEN = QRect(0, 0, 1920, 1080)
SECOND_SCREEN = QRect(1920, 0, 1280, 1024)


def test_settings_come_back_as_they_were_saved(tmp_path):
    saved = Settings(
        target="/models/ä 模型.gguf",
        drafter="off",
        drafters={"lookahead": "lookahead@9x5x7"},
        draft_length=7,
        tree_nodes=15,
        colours=False,
        recent=("/a", "/b"),
        geometry=(10, 20, 900, 700),
        sampling={"temperature": 0.0, "stop_texts": ["one\ntwo"], "seed": 2**62},
    )

    SettingsStore(tmp_path / "settings.ini").save(saved)

    assert SettingsStore(tmp_path / "settings.ini").load() == saved


def test_saving_says_whether_it_could_be_done(tmp_path):
    (tmp_path / "file").write_text("no folder")

    assert SettingsStore(tmp_path / "settings.ini").save(Settings())
    assert not SettingsStore(tmp_path / "file" / "settings.ini").save(Settings())


def test_without_a_file_everything_has_its_default(tmp_path):
    assert SettingsStore(tmp_path / "none" / "settings.ini").load() == Settings()


@pytest.mark.parametrize(
    "line",
    [
        "drafter=7",
        "drafter=not json",
        r'geometry="[1, 2, \"three\", 4]"',
        r'recent="\"a string\""',
        "draft_length=true",
        "sampling=[1, 2]",
        "drafters=7",
        "tree_nodes=null",
        r'colours="\"yes\""',
        "something_unknown=1",
    ],
)
def test_a_bad_entry_gives_its_default_and_leaves_the_others_alone(tmp_path, line):
    path = tmp_path / "settings.ini"
    SettingsStore(path).save(Settings(device="cuda:0"))
    name = line.partition("=")[0]
    kept = [entry for entry in path.read_text().splitlines() if not entry.startswith(f"{name}=")]
    path.write_text("\n".join([*kept, line]))

    assert SettingsStore(path).load() == Settings(device="cuda:0")


def test_bytes_that_are_no_settings_at_all_give_the_defaults(tmp_path):
    path = tmp_path / "settings.ini"
    path.write_bytes(bytes(range(256)) * 10)

    assert SettingsStore(path).load() == Settings()


def test_an_opened_target_comes_first_once_and_the_list_stays_short():
    settings = Settings(recent=tuple("abcdef"))

    assert settings.with_recent("c") == tuple("cabdef")
    assert settings.with_recent("g") == tuple("gabcde")
    assert len(settings.with_recent("g")) == MAX_RECENT
    assert settings.with_recent("default") == settings.recent


@pytest.mark.parametrize(
    "wanted",
    [
        (),
        (100, 100, 0, 0),
        (100, 100, 800, 600),
        (2000, 100, 800, 600),
        (-5000, -5000, 800, 600),
        (1800, 1060, 800, 600),
        (100, -300, 800, 600),
        (0, 0, 9000, 9000),
    ],
)
@pytest.mark.parametrize("screens", [[SCREEN], [SCREEN, SECOND_SCREEN], [SECOND_SCREEN]])
def test_a_window_always_lies_on_a_screen_that_is_there(wanted, screens):
    rect = reachable(wanted, screens)

    assert any(screen.contains(rect) for screen in screens)


def test_a_window_that_lies_on_a_screen_stays_where_it_is():
    assert reachable((1950, 30, 800, 600), [SCREEN, SECOND_SCREEN]) == QRect(1950, 30, 800, 600)


def test_the_first_window_is_centred_at_the_default_size():
    rect = reachable((), [SCREEN])

    assert rect.size().toTuple() == DEFAULT_SIZE
    assert abs(rect.center().x() - SCREEN.center().x()) <= 1
