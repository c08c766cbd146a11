"""A conversation in another model's tokens, and what that one writes in ours."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.drafters.retelling import continued, tail_of
from engine.drafters.tokenizer_pair import TokenizerPair, shared_words
from engine.errors import DrafterMismatch
from engine.models.spelling import Spelling
from engine.models.tokenizer import spelling_of
from tests.engine import models_for_tests as tiny
from tests.engine import other_words
from tests.engine.other_words import toy

BYTE_LEVEL = spelling_of(tiny.tokenizer(), "byte-level")
SENTENCE_PIECE = spelling_of(other_words.tokenizer(), "SentencePiece")
TOYS = toy(["a", "b", " ", "ab"], ends=[0]), toy([" ", "b", "a", "ba"], ends=[2], end="</end>")
PAIRS = {
    "byte-level to SentencePiece": (BYTE_LEVEL, SENTENCE_PIECE),
    "SentencePiece to byte-level": (SENTENCE_PIECE, BYTE_LEVEL),
    "to itself": (BYTE_LEVEL, BYTE_LEVEL),
    "toys": TOYS,
}

pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS.keys())
numbers = st.lists(st.integers(0, 10_000), max_size=12)
texts = st.text(st.one_of(st.sampled_from("the and\n.äß你😀"), st.characters(codec="utf-8")))


def ids_of(spelling, chosen):
    """Any ids from any numbers."""
    return [number % len(spelling.spelled) for number in chosen]


def retelling(ours, theirs, our_ends=(), their_ends=()):
    return TokenizerPair(ours, theirs, frozenset(our_ends), frozenset(their_ends)).retelling()


def told(ours, theirs, ids, **ends):
    """All that another model is told of these ids, in one go."""
    telling = retelling(ours, theirs, **ends)
    telling.follow(ids)
    return telling.to_the_end()


# A conversation told.


@pairs
@settings(deadline=None)
@given(histories=st.lists(st.tuples(st.integers(0, 30), numbers), min_size=1, max_size=6))
def test_after_any_history_it_tells_what_a_fresh_one_tells(ours, theirs, histories):
    telling, ids = retelling(ours, theirs), []

    for kept, more in histories:
        ids = [*ids[:kept], *ids_of(ours, more)]
        telling.follow(ids)

    fresh = retelling(ours, theirs)
    fresh.follow(ids)
    assert telling.to_the_end() == fresh.to_the_end()
    assert telling.to_go_on() == fresh.to_go_on()


@pytest.mark.parametrize(
    ("ours", "theirs"), [(BYTE_LEVEL, SENTENCE_PIECE), (SENTENCE_PIECE, BYTE_LEVEL)]
)
@settings(deadline=None)
@given(text=texts, cut=st.integers(0, 12))
@example(text="naïve 你好 😀 the end ", cut=0)
def test_what_is_told_has_the_same_text_to_the_byte(ours, theirs, text, cut):
    if other_words.BLOCK in text:
        return  # a block is read as a space
    ids = list(ours.at_start(text))
    ids = ids[: max(0, len(ids) - cut)]
    telling = retelling(ours, theirs)
    telling.follow(ids)

    known, held = telling.to_go_on()

    assert (theirs.bytes_of(known) + held).lstrip(b" ") == ours.bytes_of(ids).lstrip(b" ")
    whole = theirs.bytes_of(telling.to_the_end())
    assert whole.lstrip(b" ") == ours.bytes_of(ids).lstrip(b" ")


def test_words_are_spelled_as_their_tokenizer_spells_the_whole_text():
    text = "the cat and the other\nare in the sand, there and then"

    assert told(BYTE_LEVEL, SENTENCE_PIECE, BYTE_LEVEL.at_start(text)) == [
        *SENTENCE_PIECE.at_start(text)
    ]


def test_an_open_word_is_spelled_anew_and_a_closed_one_stands():
    ours = [*BYTE_LEVEL.at_start("the sa"), *BYTE_LEVEL.at_start("nd"), *BYTE_LEVEL.at_start(" i")]

    assert told(BYTE_LEVEL, SENTENCE_PIECE, ours) == [*SENTENCE_PIECE.at_start("the sand i")]


def test_an_unfinished_character_is_held_back_or_told_in_bytes():
    ids = BYTE_LEVEL.at_start("so你")[:-1]
    telling = retelling(BYTE_LEVEL, SENTENCE_PIECE)
    telling.follow(ids)

    known, held = telling.to_go_on()

    assert held == "你".encode()[:-1]
    assert known == [*SENTENCE_PIECE.at_start("so")]
    rest = [SENTENCE_PIECE.ids_by_word[bytes([byte])] for byte in held]
    assert telling.to_the_end() == [*known, *rest]


def test_the_space_of_a_word_to_come_is_left_to_that_word():
    telling = retelling(BYTE_LEVEL, SENTENCE_PIECE)
    telling.follow(BYTE_LEVEL.at_start("the cat "))

    known, held = telling.to_go_on()

    assert held == b" "
    assert known == [*SENTENCE_PIECE.at_start("the cat")]


def test_bytes_that_are_no_text_are_told_as_unknown_characters():
    ids = [BYTE_LEVEL.ids_by_word[bytes([byte])] for byte in b"a\xff\xe4b"]

    assert told(BYTE_LEVEL, SENTENCE_PIECE, ids) == [*SENTENCE_PIECE.at_start("a\ufffd\ufffdb")]


# Controls.


def control(spelling, name):
    return spelling.ids_by_word[name]


def test_a_control_of_the_same_name_is_told_as_itself_and_another_as_its_name():
    theirs = toy(["a", "<", ">", "x"], ends=[1], end="<end>")
    ours = Spelling(
        "ours", [b"a", b"", b""], lambda text: [0] * len(text), controls={1: "<x>", 2: "<end>0"}
    )

    assert told(ours, theirs, [0, 1, 0, 2]) == [0, 2, 4, 3, 0, 1]


def test_an_end_of_turn_is_told_as_theirs():
    ids = [*BYTE_LEVEL.at_start("the"), tiny.END_ID]
    theirs = control(SENTENCE_PIECE, other_words.END)

    ours = told(BYTE_LEVEL, SENTENCE_PIECE, ids, our_ends=[tiny.END_ID], their_ends=[theirs])

    assert ours == [*SENTENCE_PIECE.at_start("the"), theirs]


def test_a_control_that_the_user_has_typed_is_told_as_text():
    ids = BYTE_LEVEL.at_start(other_words.END)

    assert control(SENTENCE_PIECE, other_words.END) not in told(BYTE_LEVEL, SENTENCE_PIECE, ids)


def beginning(name, words, begin):
    made = toy(words, ends=[0], end=f"<{name}>")
    return Spelling(
        name, made.spelled, made.at_start, controls=made.controls, begin_id=begin, end_id=0
    )


def test_what_their_texts_begin_with_comes_first_and_only_once():
    ours, theirs = beginning("ours", ["a", "b"], 0), beginning("theirs", ["b", "a"], 0)

    assert told(ours, theirs, [0, 1, 2]) == [0, 2, 1]
    assert told(ours, theirs, [1, 2]) == [0, 2, 1]


def test_what_means_the_same_is_known_both_ways():
    ours = toy(["a", "b"], ends=[1, 2], end="<end>")
    theirs = Spelling(
        "theirs",
        [b"", b"", b"", b"", b"b", b"c"],
        lambda text: [],
        controls={0: "<end>1", 1: "<stop>", 2: "<tool>", 3: "<stop too>"},
        end_id=3,
    )
    pair = TokenizerPair(ours, theirs, frozenset([1, 2]), frozenset([1, 3]))

    assert pair.controls_told_back() == {0: 2, 1: 1, 2: None, 3: 1}
    assert pair.shared_controls() == {2: 0, 1: 3}
    assert shared_words(ours, theirs) == {3: 4}


def test_without_a_word_in_common_there_is_a_sentence():
    with pytest.raises(DrafterMismatch, match=r"no token in common.* which goes through text\."):
        shared_words(toy(["a", "b"]), toy(["c", "d"]))


# What it costs.


def counting(spelling):
    """The same, and how many characters it has been asked to spell."""
    asked = []

    def encode(text):
        asked.append(len(text))
        return spelling.at_start(text)

    counted = Spelling(spelling.name, spelling.spelled, encode, controls={})
    return counted, asked


@pytest.mark.parametrize("letters", ["ab ", "ab"], ids=["words", "writing without spaces"])
def test_a_long_conversation_costs_a_round_no_more_than_a_short_one(letters):
    ours, theirs = toy(["a", "b", " "]), toy([" ", "b", "a", "ba"])
    theirs, asked = counting(theirs)
    draw = random.Random(5)
    ids = [ours.at_start(draw.choice(letters))[0] for _ in range(4000)]
    telling = retelling(ours, theirs)

    most = []
    for length in range(2, len(ids), 2):
        before = len(asked)
        telling.follow(ids[:length])
        telling.to_go_on()
        most.append(sum(asked[before:]))

    assert max(most) <= 4 * 128
    assert sum(most[-500:]) <= 1.5 * sum(most[500:1000])


# What the other writes, told back.


@pairs
@settings(deadline=None)
@given(committed=numbers, drafted=numbers)
def test_any_draft_behind_any_ids_is_told_back_to_the_byte(ours, theirs, committed, drafted):
    ids, text = ids_of(ours, committed), theirs.bytes_of(ids_of(theirs, drafted))
    before = list(ids)

    found = continued(ours, tail_of(ours, ids), text)

    assert ids == before
    assert text.startswith(ours.bytes_of(found))
    assert all(ours.spelled[token] for token in found)


@settings(deadline=None)
@given(committed=texts, drafted=texts)
@example(committed="so 你", drafted="好 the end")
def test_a_draft_of_whole_characters_is_told_back_whole(committed, drafted):
    ids = BYTE_LEVEL.at_start(committed)

    found = continued(BYTE_LEVEL, tail_of(BYTE_LEVEL, ids), drafted.encode())

    assert BYTE_LEVEL.bytes_of(found) == drafted.encode()


@pytest.mark.parametrize(
    ("committed", "drafted"),
    [("the", " and the"), ("o", "ut"), ("in th", "e sand"), ("the cat\n", "  and"), ("<", "end>")],
)
@pytest.mark.parametrize("ours", [BYTE_LEVEL, SENTENCE_PIECE], ids=["bytes", "SentencePiece"])
def test_a_draft_is_spelled_as_the_tokenizer_spells_the_whole(ours, committed, drafted):
    ids, whole = ours.at_start(committed), ours.at_start(committed + drafted)
    found = [*ids, *continued(ours, tail_of(ours, ids), drafted.encode())]

    # Unless a token of the whole goes over the seam, which stays where it is.
    seam = len(ours.bytes_of(ids))
    ends = {len(ours.bytes_of(whole[:count])) for count in range(len(whole) + 1)}
    assert (found == [*whole]) == (seam in ends)
    assert ours.bytes_of(found) == ours.bytes_of(whole)


def test_a_character_begun_by_us_is_finished():
    ids = BYTE_LEVEL.at_start("so 你")

    found = continued(BYTE_LEVEL, tail_of(BYTE_LEVEL, ids[:-2]), "你".encode()[1:])

    assert [*ids[:-2], *found] == [*ids]


def test_a_character_that_is_not_finished_is_not_told_back():
    found = continued(BYTE_LEVEL, (), b"a\xe4\xbd")

    assert BYTE_LEVEL.bytes_of(found) == b"a"


def test_the_tail_begins_with_a_word_and_stops_at_a_control():
    the_cat = BYTE_LEVEL.at_start("the cat")

    assert BYTE_LEVEL.bytes_of(tail_of(BYTE_LEVEL, the_cat)) == b" cat"
    assert tail_of(BYTE_LEVEL, [*the_cat, tiny.CUE_ID, *the_cat[:1]]) == [*the_cat[:1]]
    assert not tail_of(BYTE_LEVEL, [*the_cat, tiny.CUE_ID])


def test_the_tail_is_short_and_begins_with_a_whole_character():
    ids = BYTE_LEVEL.at_start("你" * 40)

    tail = tail_of(BYTE_LEVEL, ids)

    assert BYTE_LEVEL.bytes_of(tail).decode() == "你" * 5
