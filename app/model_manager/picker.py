"""Where a model is chosen: the menus, and the dialogs for a folder or a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QPoint

    from app.engine_host import LoadedTarget
    from engine.engine import Device

_GGUF_FILTER = "GGUF models (*.gguf);;All files (*)"
_GIB = 2**30
_DRAFT_MODEL = "draft-model"


class TargetPicker(QMenu):
    """Offers the default model, recent ones, a folder, a file, and the device to run on."""

    target_chosen = Signal(str)
    device_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._target = ""
        self._device = "auto"
        self._recent: Sequence[str] = ()
        self._devices: Sequence[Device] = ()
        self.aboutToShow.connect(self._build)

    def set_choices(self, target: LoadedTarget, device: str, recent: Sequence[str]) -> None:
        """Mark what is in use, and offer the devices that the engine has found.

        device: as it was asked for, "auto" included. recent: paths.
        """
        self._target, self._devices = target.source, target.devices
        self._device, self._recent = device, recent

    def _build(self) -> None:
        self.clear()
        self._add_target("SmolLM2 135M Instruct (comes with Draftlight)", "default")
        for path in self._recent:
            self._add_target(Path(path).name, path)
        self.addSeparator()
        self.addAction("Open a GGUF file…").triggered.connect(self._open_file)
        self.addAction("Open a model folder…").triggered.connect(self._open_folder)
        self.addSeparator()
        self._add_devices()

    def _add_target(self, words: str, target: str) -> None:
        action = self.addAction(words.replace("&", "&&"))
        action.setCheckable(True)
        action.setChecked(target == self._target)
        action.setToolTip(target)
        action.triggered.connect(lambda: self.target_chosen.emit(target))

    def _add_devices(self) -> None:
        menu = self.addMenu("Run on")
        group = QActionGroup(menu)
        choices = [("auto", "Automatic"), *((d.id, _device_words(d)) for d in self._devices)]
        for device, words in choices:
            action = QAction(words, menu, checkable=True)
            action.setChecked(device == self._device)
            action.triggered.connect(lambda _=False, device=device: self.device_chosen.emit(device))
            group.addAction(action)
            menu.addAction(action)

    def _open_file(self) -> None:
        choose_file(self.parentWidget(), "Open a model", self.target_chosen.emit)

    def _open_folder(self) -> None:
        choose_folder(self.parentWidget(), "Open a model", self.target_chosen.emit)


class DraftModelPicker(QMenu):
    """Offers what a draft model or heads can come from."""

    spec_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._family = _DRAFT_MODEL
        included = self._offer("The one made for this model (included)", self._choose_included)
        own = self._offer(
            "SmolLM2 135M Instruct (comes with Draftlight)", lambda: self._choose("default")
        )
        file = self._offer("Open a GGUF file…", self._open_file)
        folder = self._offer("Open a model folder…", self._open_folder)
        heads = self._offer("Open a folder with heads…", self._open_heads)
        self._included, self._models, self._heads = included, (own, file, folder), heads

    def ask(self, family: str, ships: bool, place: QPoint) -> None:
        """Ask for what a family of drafters needs; place: where on the screen a menu may open.

        Heads lie in a folder of their own; a draft model can be a file too. ships: whether one is
        included that may be gone back to.
        """
        self._family = family
        is_model = family.endswith(_DRAFT_MODEL)
        if not is_model and not ships:
            self._open_heads()
            return
        self._included.setVisible(ships)
        self._heads.setVisible(not is_model)
        for way in self._models:
            way.setVisible(is_model)
        self.popup(place)

    def _offer(self, words: str, on_chosen: Callable[[], object]) -> QAction:
        action = self.addAction(words)
        action.triggered.connect(lambda: on_chosen())
        return action

    def _open_file(self) -> None:
        choose_file(self.parentWidget(), "Open a draft model", self._choose)

    def _open_folder(self) -> None:
        choose_folder(self.parentWidget(), "Open a draft model", self._choose)

    def _open_heads(self) -> None:
        choose_folder(self.parentWidget(), "Open heads", self._choose)

    def _choose_included(self) -> None:
        self.spec_chosen.emit(self._family)

    def _choose(self, path: str) -> None:
        self.spec_chosen.emit(f"{self._family}:{path}")


def choose_file(
    parent: QWidget | None, title: str, on_chosen: Callable[[str], object]
) -> QFileDialog:
    """Ask for a GGUF file without blocking; `on_chosen` gets its path."""
    dialog = QFileDialog(parent, title, str(Path.home()), _GGUF_FILTER)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    return _ask(dialog, on_chosen)


def choose_folder(
    parent: QWidget | None, title: str, on_chosen: Callable[[str], object]
) -> QFileDialog:
    """Ask for a folder with a model's files without blocking; `on_chosen` gets its path."""
    dialog = QFileDialog(parent, title, str(Path.home()))
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    return _ask(dialog, on_chosen)


def _ask(dialog: QFileDialog, on_chosen: Callable[[str], object]) -> QFileDialog:
    dialog.fileSelected.connect(on_chosen)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
    return dialog


def _device_words(device: Device) -> str:
    return f"{device.label} · {device.memory_bytes / _GIB:.0f} GB"
