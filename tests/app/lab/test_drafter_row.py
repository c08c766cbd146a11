"""What a row says of its drafter, and where there is room for it."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from app.lab.drafter_list import DrafterRow
from tests.app.lab.rows import fact, fact_label, fold, radio, row

LONG = "Suffix + draft model, shared words…"


def test_what_is_known_of_a_drafter_stands_in_its_row_until_it_was_measured(drafters):
    note = "no exit of this model pays; it was not trained for it"
    drafters.set_choices([DrafterRow("layer-skip", "Layer skip", note=note)])

    before = fact(drafters, "Layer skip"), row(drafters, "Layer skip").toolTip()
    drafters.apply_measure("layer-skip", 1.1, 0.8, 9)

    assert before == ("no exit of this model pays", note)
    assert radio(drafters, "Layer skip").isEnabled()
    assert fact(drafters, "Layer skip") == "1.1 · 0.8 ×"
    assert note in row(drafters, "Layer skip").toolTip()


def test_it_says_nothing_of_what_the_user_has_set(drafters):
    drafters.set_choices([DrafterRow("layer-skip", "Layer skip", note="no exit of this pays")])

    drafters.select("layer-skip@20")

    assert fact(drafters, "Layer skip") == ""


def test_figures_say_what_they_are(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2, 9)

    assert "Tokens per pass · times plain speed" in row(drafters, "N-gram").toolTip()


def test_rows_show_what_was_measured_here_last(drafters):
    drafters.apply_measure("ngram", 1.3, 1.1, 9)
    drafters.apply_measure("ngram", 1.4, 1.2, 9)
    drafters.apply_measure("off", 1.0, 1.0, 0)
    drafters.apply_measure("layer-skip", 1.8, None, 9)

    assert fact(drafters, "N-gram") == "1.4 · 1.2 ×"
    assert fact(drafters, "Off") == "1.0 · plain"
    assert fact(drafters, "Layer skip") == "1.8"


def test_where_nothing_was_drafted_it_says_so_and_compares_no_speed(drafters):
    drafters.apply_measure("ngram", 1.0, 0.98, 0)
    drafters.apply_measure("layer-skip", 1.0, 0.9, 12)

    assert fact(drafters, "N-gram") == "1.0 · nothing drafted"
    assert fact(drafters, "Layer skip") == "1.0 · 0.9 ×"


def test_it_says_whether_a_model_or_a_folder_is_to_be_chosen(drafters):
    drafters.set_choices(
        [
            DrafterRow("draft-model", "Draft model…", needs="a model"),
            DrafterRow("eagle", "EAGLE…", needs="a folder"),
        ]
    )

    assert fact(drafters, "Draft model…") == "choose a model"
    assert fact(drafters, "EAGLE…") == "choose a folder"


def places(drafters, label):
    """Where label and fact lie in their row, and how wide the fact would be."""
    QApplication.processEvents()
    words = fact_label(drafters, label)
    return radio(drafters, label).geometry(), words.geometry(), words.sizeHint().width()


def test_where_label_and_fact_do_not_fit_into_one_line_the_fact_stands_beneath(drafters):
    drafters.set_choices([DrafterRow("suffix+shared-draft-model", LONG, needs="a model")])
    fold(drafters).click()

    label, words, width = places(drafters, LONG)

    assert words.top() >= label.bottom()
    assert words.left() == label.left()
    assert words.width() == width


def test_where_they_fit_the_fact_stands_at_the_right(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2, 9)

    label, words, width = places(drafters, "N-gram")

    assert words.left() > label.right()
    assert words.width() == width
    assert drafters.width() - words.right() < 16


def test_a_row_that_becomes_wide_enough_has_one_line_again(drafters):
    drafters.set_choices([DrafterRow("suffix+shared-draft-model", LONG, needs="a model")])
    fold(drafters).click()

    drafters.resize(640, 300)

    label, words, _ = places(drafters, LONG)
    assert words.left() > label.right()
