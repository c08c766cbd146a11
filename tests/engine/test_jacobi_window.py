"""Lookahead's window and pool: what its rows see, and which n-grams come out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.jacobi_window import JacobiWindow, NgramPool

TEXT = [3, 1, 4, 1, 5, 9, 2, 6]

shapes = pytest.mark.parametrize(
    ("columns", "order"), [(1, 3), (1, 6), (2, 3), (5, 3), (3, 4), (7, 5), (4, 8)]
)


def windows(columns, order):
    """A window at each stage of its warm-up and some passes further."""
    window = JacobiWindow(columns, order, TEXT)
    for at in range(order + 3):
        yield window
        window.advance(1000 + at, [100 * at + column for column in range(columns)])


@shapes
def test_it_takes_so_many_rows_and_fills_up_a_level_a_pass(columns, order):
    counts = [len(window.rows()) for window in windows(columns, order)]

    warm_up = [columns + order - 3 - at + at * columns for at in range(order - 2)]
    full = columns * (order - 1) - 1
    assert counts == warm_up + [full] * (len(counts) - len(warm_up))


@shapes
def test_a_row_sees_the_run_before_its_column_and_the_column_below_it(columns, order):
    for window in windows(columns, order):
        rows, (run, *higher) = window.rows(), window.levels
        before = order - 2 - len(higher)  # what of the run stands in front of the first column's
        expected = [run[: place + 1] for place in range(len(run))]
        for level in range(len(higher)):
            for column in range(columns):
                below = [tokens[column] for tokens in higher[: level + 1]]
                expected.append([*run[: before + column], *below])

        seen = [
            [token for token, sees in zip(rows.ids, line, strict=True) if sees]
            for line in rows.sees.tolist()
        ]
        assert seen == expected


@shapes
def test_what_a_row_sees_reads_as_one_text_from_the_root_to_itself(columns, order):
    for window in windows(columns, order):
        rows = window.rows()

        for row, line in enumerate(rows.sees.tolist()):
            offsets = [offset for offset, sees in zip(rows.offsets, line, strict=True) if sees]
            assert sorted(offsets) == list(range(1, rows.offsets[row] + 1))
            assert line[row]


@shapes
def test_the_last_rows_are_the_ends_of_the_columns_side_by_side(columns, order):
    for window in windows(columns, order):
        offsets = window.rows().offsets[-columns:]

        assert list(offsets) == list(range(offsets[0], offsets[0] + columns))


@shapes
def test_the_ngrams_are_what_the_target_said_after_its_own_words(columns, order):
    """The target here says each time one more than the last token that it sees."""
    window, found = JacobiWindow(columns, order, TEXT), []
    for at in range(2 * order):
        ends = window.rows().ids[-columns:]
        found.append(window.advance(40 + at, [token + 1 for token in ends]))

    assert found[: order - 2] == [[]] * (order - 2)
    for at, ngrams in enumerate(found[order - 2 :], start=order - 2):
        assert [len(ngram) for ngram in ngrams] == [order] * columns
        assert ngrams[0][0] == 40 + at
        for ngram in ngrams[1:]:
            assert list(ngram) == list(range(ngram[0], ngram[0] + order))


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), max_size=30),
)
def test_the_pool_keeps_the_newest_few_of_each_first_token(most, ngrams):
    pool = NgramPool(most)

    for ngram in ngrams:
        pool.add(ngram)

    for first in (0, 1):
        newest = dict.fromkeys(ngram[1:] for ngram in reversed(ngrams) if ngram[0] == first)
        assert pool.after(first) == list(newest)[:most]
    assert pool.after(9) == []
