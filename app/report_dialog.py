"""A report of a problem, seen and edited by the user before anything is shared."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.theme import STEP

_SENTENCE = (
    "This is all that the report holds. Nothing has been sent, and nothing will be: read it, take "
    "out what you would rather not share, save it, and attach the file to your message."
)


class ReportDialog(QDialog):
    """The text can be changed, copied, and saved as a file."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Report a problem")
        self.resize(180 * STEP, 140 * STEP)
        sentence = QLabel(_SENTENCE)
        sentence.setWordWrap(True)
        self._text = QPlainTextEdit(text)
        self._text.setProperty("kind", "field")
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setAccessibleName("The report")
        self._trouble = QLabel()
        self._trouble.setProperty("kind", "error")
        self._trouble.setWordWrap(True)
        self._trouble.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        save = buttons.addButton("Save as a file…", QDialogButtonBox.ButtonRole.ActionRole)
        save.clicked.connect(self._ask_where)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(5 * STEP, 5 * STEP, 5 * STEP, 4 * STEP)
        column.setSpacing(3 * STEP)
        column.addWidget(sentence)
        column.addWidget(self._text, 1)
        column.addWidget(self._trouble)
        column.addWidget(buttons)

    def text(self) -> str:
        """The report as it stands now."""
        return self._text.toPlainText()

    def save(self, path: str) -> None:
        """Write the report into a file, or say why that can't be done."""
        try:
            Path(path).write_text(self.text(), encoding="utf-8")
        except OSError as error:
            self._trouble.setText(
                f"The report can't be written to {path}: {error.strerror}. Choose another folder."
            )
            self._trouble.show()
        else:
            self.accept()

    def _ask_where(self) -> None:
        place = Path.home() / "Draftlight report.txt"
        dialog = QFileDialog(self, "Save the report", str(place), "Text (*.txt)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("txt")
        dialog.selectFile(place.name)
        dialog.fileSelected.connect(self.save)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
