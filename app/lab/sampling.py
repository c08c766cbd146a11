"""Rule and sampling: one line that unfolds to every choice a reply's text depends on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from PySide6.QtCore import QRegularExpression, QSignalBlocker, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.lab.fields import FieldGrid, LinesField, decimal_field, whole_field
from engine.params import ReplyParams, Rule, SamplingParams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QResizeEvent

_HIGHEST_SEED = 2**63 - 1
_DRAWN_SEEDS = 1_000_000  # Few enough digits to read out.
_GREEDY = "At temperature 0 the most probable token is always taken, so this has no effect."
_RULES = {Rule.COUPLED: "Coupled", Rule.REJECTION: "Rejection"}
_RULE_HINTS = {
    Rule.COUPLED: "One seed gives one text, whatever drafts.",
    Rule.REJECTION: "The most tokens accepted; what drafts changes the text, not its distribution.",
}


class SamplingSection(QWidget):
    """What the user chooses; `changed` tells of every change by hand."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._fold = QPushButton()
        self._fold.setProperty("kind", "fold")
        self._fold.setCheckable(True)
        # Its words are broken to the width there is; they must not decide on it.
        self._fold.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._rule = QComboBox()
        for rule, name in _RULES.items():
            self._rule.addItem(name, rule)
        self._temperature = decimal_field(0.7, 0.0, 5.0, step=0.1)
        self._top_k = whole_field(0, 0, 1_000_000, zero="off")
        self._top_p = decimal_field(0.95, 0.01, 1.0, step=0.05)
        self._min_p = decimal_field(0.0, 0.0, 1.0, step=0.05)
        self._penalty = decimal_field(1.0, 0.01, 10.0, step=0.05)
        self._seed = QLineEdit("42")
        self._seed.setValidator(
            QRegularExpressionValidator(QRegularExpression(r"\d{1,19}"), self._seed)
        )
        self._new_seed = QCheckBox("New seed for each reply")
        self._new_seed.setChecked(True)
        self._most_tokens = whole_field(1024, 1, 1_000_000)
        self._stops = LinesField("One a line", pixels=56)
        self._system = LinesField("How the model should answer", pixels=88)
        self._assemble()
        self._connect()
        self._show_state()

    def params(self, seed: int | None = None) -> ReplyParams:
        """The choices as they stand; seed: another one than the field's."""
        sampling = SamplingParams(
            temperature=self._temperature.value(),
            top_k=self._top_k.value(),
            top_p=self._top_p.value(),
            min_p=self._min_p.value(),
            repetition_penalty=self._penalty.value(),
            seed=self._pinned_seed() if seed is None else seed,
            rule=Rule(self._rule.currentData()),
        )
        return ReplyParams(sampling, self._most_tokens.value(), self._stop_texts())

    def next_params(self) -> ReplyParams:
        """The choices for a new reply: with a fresh seed if each reply is to have its own."""
        return self.fresh_params() if self._new_seed.isChecked() else self.params()

    def fresh_params(self) -> ReplyParams:
        """The choices with a fresh seed; one that is to stay in its field stays there."""
        seed = random.randrange(_DRAWN_SEEDS)
        if self._new_seed.isChecked():
            self._seed.setText(str(seed))
        return self.params(seed)

    def system_prompt(self) -> str:
        """What the model is told before the conversation."""
        return self._system.toPlainText().strip()

    def values(self) -> dict[str, object]:
        """Everything chosen, as plain values to be kept; `set_values` takes them back."""
        params = self.params()
        sampling = params.sampling
        return {
            "rule": str(sampling.rule),
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "repetition_penalty": sampling.repetition_penalty,
            "seed": sampling.seed,
            "new_seed": self._new_seed.isChecked(),
            "max_new_tokens": params.max_new_tokens,
            "stop_texts": list(params.stop_texts),
            "system_prompt": self._system.toPlainText(),
        }

    def set_values(self, values: Mapping[str, object]) -> None:
        """Take kept values; one that is missing or makes no sense leaves its field as it is."""
        numbers = {
            "temperature": self._temperature,
            "top_k": self._top_k,
            "top_p": self._top_p,
            "min_p": self._min_p,
            "repetition_penalty": self._penalty,
            "max_new_tokens": self._most_tokens,
        }
        with QSignalBlocker(self):
            for name, field in numbers.items():
                field.take(values.get(name))
            self._set_others(values)
        self._show_state()

    def _set_others(self, values: Mapping[str, object]) -> None:
        match values.get("rule"):
            case str(rule) if rule in list(Rule):
                self._rule.setCurrentIndex(self._rule.findData(Rule(rule)))
        match values.get("seed"):
            case int(seed) if 0 <= seed <= _HIGHEST_SEED:
                self._seed.setText(str(int(seed)))
        match values.get("new_seed"):
            case bool(new_seed):
                self._new_seed.setChecked(new_seed)
        match values.get("stop_texts"):
            case [*texts]:
                self._stops.setPlainText("\n".join(str(text) for text in texts))
        match values.get("system_prompt"):
            case str(prompt):
                self._system.setPlainText(prompt)

    def _pinned_seed(self) -> int:
        return min(int(self._seed.text() or 0), _HIGHEST_SEED)

    def _stop_texts(self) -> tuple[str, ...]:
        return tuple(line for line in self._stops.toPlainText().split("\n") if line)

    def _assemble(self) -> None:
        self._grid = FieldGrid()
        self._grid.add("Rule", self._rule)
        self._grid.add("Temperature", self._temperature)
        self._grid.add("Top-k", self._top_k)
        self._grid.add("Top-p", self._top_p)
        self._grid.add("Min-p", self._min_p)
        self._grid.add("Repetition penalty", self._penalty)
        self._grid.add("Seed", self._seed)
        self._grid.add_across(self._new_seed)
        self._grid.add("Most new tokens", self._most_tokens)
        self._grid.add_over("Stop texts", self._stops)
        self._grid.add_over("System prompt", self._system)
        self._grid.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._fold)
        column.addWidget(self._grid)

    def _connect(self) -> None:
        self._fold.toggled.connect(self._grid.setVisible)
        self._fold.toggled.connect(self._show_state)
        self._rule.currentIndexChanged.connect(self._note_change)
        self._new_seed.toggled.connect(self._note_change)
        self._seed.textEdited.connect(lambda: self._new_seed.setChecked(False))
        for field in (self._temperature, self._top_p, self._min_p, self._penalty):
            field.valueChanged.connect(self._note_change)
        for field in (self._top_k, self._most_tokens):
            field.valueChanged.connect(self._note_change)
        for field in (self._seed, self._stops, self._system):
            field.textChanged.connect(self._note_change)

    def _note_change(self) -> None:
        self._show_state()
        self.changed.emit()

    def _show_state(self) -> None:
        greedy = self._temperature.value() == 0.0
        rule = Rule(self._rule.currentData())
        self._rule.setToolTip(_GREEDY if greedy else _RULE_HINTS[rule])
        self._rule.setEnabled(not greedy)
        for field in (self._top_k, self._top_p, self._min_p, self._seed, self._new_seed):
            field.setEnabled(not greedy)
            field.setToolTip(_GREEDY if greedy else "")
        self._fold.setText(self._summary(greedy=greedy))

    def _summary(self, *, greedy: bool) -> str:
        """The folded line; what does not fit goes on in further ones."""
        first, *others = ["Temperature 0"] if greedy else self._sampled_parts()
        arrow = "▾" if self._fold.isChecked() else "▸"
        lines = [first]
        for part in others:
            longer = f"{lines[-1]} · {part}"
            if self._fold.fontMetrics().horizontalAdvance(f"{longer} {arrow}") > self.width() - 24:
                lines.append(part)
            else:
                lines[-1] = longer
        return "\n".join(lines) + f" {arrow}"

    def _sampled_parts(self) -> list[str]:
        parts = [self._rule.currentText(), f"temperature {self._temperature.value():g}"]
        if self._top_k.value():
            parts.append(f"top-k {self._top_k.value()}")
        if self._top_p.value() < 1:
            parts.append(f"top-p {self._top_p.value():g}")
        if self._min_p.value():
            parts.append(f"min-p {self._min_p.value():g}")
        if self._new_seed.isChecked():
            return [*parts, "new seed each time"]
        return [*parts, f"seed {self._seed.text() or 0}"]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the folded line anew."""
        super().resizeEvent(event)
        self._show_state()
