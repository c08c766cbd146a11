"""What can be chosen as a target, a device and a draft model."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QFileDialog, QToolButton, QWidget

from app.engine_host import LoadedTarget
from app.model_manager.picker import DraftModelPicker, TargetPicker, choose_file, choose_folder
from app.theme import load_theme, style_sheet
from tests.app.fakes import FakeDevice

if TYPE_CHECKING:
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QMenu

    from engine.engine import Device


def loaded(source: str) -> LoadedTarget:
    devices = cast("tuple[Device, ...]", (FakeDevice(), FakeDevice("cuda:0", "H200", 139 * 2**30)))
    return LoadedTarget("M", source, "cpu", "float32", 2048, False, (), (), devices)


def entries(menu: QMenu) -> dict[str, QAction]:
    menu.aboutToShow.emit()
    return {action.text(): action for action in menu.actions() if action.text()}


def shown(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.isVisible()]


@pytest.fixture
def picker(qtbot) -> TargetPicker:
    made = TargetPicker()
    qtbot.addWidget(made)
    return made


def test_before_a_target_is_loaded_every_way_to_one_is_offered(picker):
    found = list(entries(picker))

    assert found[0].startswith("SmolLM2 135M Instruct")
    assert found[1:] == ["Open a GGUF file…", "Open a model folder…", "Run on"]


def test_recent_targets_are_offered_by_name_and_chosen_by_path(picker, qtbot):
    picker.set_choices(loaded("/m/b & c.gguf"), "auto", ["/m/b & c.gguf", "/n/a"])
    found = entries(picker)
    marked = [words for words, action in found.items() if action.isChecked()]

    with qtbot.waitSignal(picker.target_chosen) as chosen:
        found["a"].trigger()

    assert chosen.args == ["/n/a"]
    assert marked == ["b && c.gguf"]


def test_devices_are_offered_with_their_memory(picker, qtbot):
    picker.set_choices(loaded("default"), "cpu", [])
    devices = {
        action.text(): action
        for action in cast("QMenu", entries(picker)["Run on"].menu()).actions()
    }

    with qtbot.waitSignal(picker.device_chosen) as chosen:
        devices["H200 · 139 GB"].trigger()

    assert list(devices) == ["Automatic", "CPU, 2 cores · 4 GB", "H200 · 139 GB"]
    assert chosen.args == ["cuda:0"]


def test_the_default_model_can_draft(qtbot):
    picker = DraftModelPicker()
    qtbot.addWidget(picker)

    with qtbot.waitSignal(picker.spec_chosen) as chosen:
        entries(picker)["SmolLM2 135M Instruct (comes with Draftlight)"].trigger()

    assert chosen.args == ["draft-model:default"]


def test_heads_are_asked_for_as_a_folder_and_chosen_for_their_family(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    picker = DraftModelPicker(window)

    picker.ask("eagle3", False, QPoint())

    [dialog] = window.findChildren(QFileDialog)
    with qtbot.waitSignal(picker.spec_chosen) as chosen:
        dialog.fileSelected.emit("/heads")
    assert dialog.fileMode() is QFileDialog.FileMode.Directory
    assert chosen.args == ["eagle3:/heads"]


@pytest.mark.parametrize(
    ("choose", "mode"),
    [
        (choose_file, QFileDialog.FileMode.ExistingFile),
        (choose_folder, QFileDialog.FileMode.Directory),
    ],
)
def test_a_dialog_hands_on_what_was_chosen_without_blocking(qtbot, choose, mode):
    chosen: list[str] = []
    dialog = choose(None, "Open a model", chosen.append)
    qtbot.addWidget(dialog)

    dialog.fileSelected.emit("/模型/ä.gguf")

    assert dialog.fileMode() is mode
    assert chosen == ["/模型/ä.gguf"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_signs_of_the_dialogs_buttons_have_room(qtbot, theme):
    window = QWidget()
    qtbot.addWidget(window)
    window.setStyleSheet(style_sheet(load_theme(theme)))

    dialog = choose_folder(window, "Open a model", print)

    buttons = [found for found in dialog.findChildren(QToolButton) if found.isVisible()]
    assert len(buttons) == 6
    assert all(button.sizeHint().width() <= button.width() for button in buttons)


@pytest.mark.qt_log_ignore("^This plugin does not support", extend=True)
def test_a_draft_model_is_asked_for_by_a_menu_where_its_row_ends(qtbot):
    picker = DraftModelPicker()
    qtbot.addWidget(picker)

    picker.ask("suffix+draft-model", False, QPoint(40, 50))

    qtbot.waitUntil(picker.isVisible)
    assert picker.pos() == QPoint(40, 50)
    assert shown(picker) == [
        "SmolLM2 135M Instruct (comes with Draftlight)",
        "Open a GGUF file…",
        "Open a model folder…",
    ]
    picker.close()


@pytest.mark.qt_log_ignore("^This plugin does not support", extend=True)
def test_where_heads_ship_they_can_be_gone_back_to(qtbot):
    picker = DraftModelPicker()
    qtbot.addWidget(picker)

    picker.ask("eagle3", True, QPoint())
    qtbot.waitUntil(picker.isVisible)
    with qtbot.waitSignal(picker.spec_chosen) as chosen:
        entries(picker)["The one made for this model (included)"].trigger()

    assert shown(picker) == [
        "The one made for this model (included)",
        "Open a folder with heads…",
    ]
    assert chosen.args == ["eagle3"]
    picker.close()
