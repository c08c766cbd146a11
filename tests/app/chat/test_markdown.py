"""The streaming fence reader: the same lines however the text is cut; nothing lost or flashing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.markdown import FenceReader, Piece

CODE = "Look:\n\n```python\nx = 1\n\n  y = 2\n```\n\nDone."


def shown(pieces: list[Piece]) -> list[tuple[int, str]]:
    """The lines as a view would show them: (block, text)."""
    lines: list[tuple[int, str]] = []
    for piece in pieces:
        lines.extend((piece.block, "") for _ in range(piece.breaks))
        block, text = lines.pop() if lines else (piece.block, "")
        lines.append((block if text else piece.block, text + piece.text))
    return lines


def read(parts: list[str]) -> list[Piece]:
    reader = FenceReader()
    pieces = [piece for owner, part in enumerate(parts) for piece in reader.feed(part, owner)]
    return [*pieces, *reader.finish()]


def test_a_fenced_block_shows_its_code_without_the_fences():
    lines = shown(read([CODE]))

    assert lines == [(0, "Look:"), (1, "x = 1"), (1, ""), (1, "  y = 2"), (0, "Done.")]


def test_text_fed_one_character_at_a_time_gives_the_same_lines():
    assert shown(read(list(CODE))) == shown(read([CODE]))


def test_back_ticks_of_a_fence_are_never_given_out_while_streaming():
    reader = FenceReader()

    pieces = [piece for character in CODE for piece in reader.feed(character, 0)]

    assert "`" not in "".join(piece.text for piece in pieces)


def test_a_fence_that_never_closes_is_code_to_the_end():
    code = [f"line {number}" for number in range(1500)]

    lines = shown(read(["```\n", *(f"{line}\n" for line in code)]))

    assert lines == [(1, line) for line in code]


def test_a_closing_fence_at_the_very_end_needs_no_line_break():
    assert shown(read(["```\nx\n```"])) == [(1, "x")]


@pytest.mark.parametrize(
    "text",
    [
        "`inline` code",
        "``two`` ticks",
        "```all on one line``` of prose",
        "```" + "far too many words to be the name of a language, so prose",
        "```python",
        "``",
        "<think>hidden?</think>",
        "<img src=x onerror=alert(1)>",
        "<?php echo 1;",
    ],
)
def test_what_is_no_fence_is_shown_literally(text):
    assert shown(read(list(text))) == [(0, text)]


def test_a_fence_inside_a_list_is_a_fence():
    assert shown(read(["- see\n  ```sh\n  ls\n  ```\n- next"])) == [
        (0, "- see"),
        (1, "  ls"),
        (0, "- next"),
    ]


def test_a_shorter_or_much_deeper_fence_does_not_close():
    lines = shown(read(["````\n```\n        ````\n````\nend"]))

    assert lines == [(1, "```"), (1, "        ````"), (0, "end")]


def test_two_blocks_in_a_row_are_two_blocks():
    assert shown(read(["```\na\n```\n```\nb\n```"])) == [(1, "a"), (2, "b")]


def test_an_empty_block_leaves_no_line_behind():
    assert shown(read(["```\n```\nhello"])) == [(0, "hello")]


def test_held_back_text_keeps_its_owner():
    pieces = read(["`", "`", "x", " y"])

    owners = [(piece.text, piece.owner) for piece in pieces]
    assert owners == [("`", 0), ("`", 1), ("x", 2), (" y", 3)]


def test_a_fork_leaves_the_original_where_it_was():
    reader = FenceReader()
    list(reader.feed("a\n``", 0))

    forked = list(reader.fork().feed("`sh\nls", 1))

    assert [piece.block for piece in forked] == [1]
    assert [piece.text for piece in reader.finish()] == ["``"]


def test_a_held_line_is_looked_at_once():
    reader = FenceReader()

    pieces = [piece for _ in range(10_000) for piece in reader.feed("``` ", 0)]

    assert len(pieces) == 10_000


@given(st.text(alphabet="`a \n", max_size=60), st.data())
def test_however_a_text_is_cut_the_lines_are_the_same(text, data):
    cut = data.draw(st.integers(0, len(text)))

    assert shown(read([text[:cut], text[cut:]])) == shown(read([text]))


@given(st.text(alphabet="a<>& \n", max_size=60))
def test_nothing_but_outer_blank_lines_is_lost_without_fences(text):
    assert "\n".join(line for _, line in shown(read([text]))) == text.strip("\n")
