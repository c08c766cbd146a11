"""What each id of a tokenizer spells, and text back into ids, as it stands within another text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from engine.errors import ModelError
from engine.models.tokenizer import spelling_of
from tests.engine import models_for_tests as tiny
from tests.engine import other_words
from tests.engine.other_words import ids_inside

TOKENIZERS = {"byte-level": tiny.tokenizer, "SentencePiece": other_words.tokenizer}
SPELLINGS = {kind: spelling_of(make(), kind) for kind, make in TOKENIZERS.items()}

kinds = pytest.mark.parametrize("kind", TOKENIZERS)
texts = st.text(st.one_of(st.sampled_from("the and\n.äß你😀"), st.characters(codec="utf-8")))


@kinds
@settings(deadline=None)
@given(text=texts)
@example(text="the cat\n  and the 你好 😀 naïve ")
def test_the_bytes_of_a_texts_ids_are_the_text(kind, text):
    spelling = SPELLINGS[kind]

    spelled = spelling.bytes_of(spelling.at_start(text))

    begun = b" " if kind == "SentencePiece" and text else b""
    assert spelled == begun + text.encode()


@kinds
@settings(deadline=None)
@given(text=texts)
@example(text=" the")
@example(text="the")
@example(text="\nthe")
@example(text=".the")
@example(text="  the")
def test_inside_another_text_a_text_has_no_byte_more(kind, text):
    spelling = SPELLINGS[kind]

    if kind == "SentencePiece" and other_words.BLOCK in text:
        assert spelling.inside(text) is None  # a block is read as a space
    else:
        assert spelling.bytes_of(ids_inside(spelling, text)) == text.encode()


@pytest.mark.parametrize(
    "text", ["the cat", " the cat", "\nthe", "and", "  and", "你", "\n\n", "."]
)
@kinds
def test_inside_another_text_words_are_spelled_as_usual(kind, text):
    spelling = SPELLINGS[kind]
    before = spelling.at_start("2")  # nothing merges with it

    ids = ids_inside(spelling, text)

    assert [*before, *ids] == [*spelling.at_start(f"2{text}")]


@kinds
def test_controls_spell_nothing_and_are_not_made_from_text(kind):
    spelling = SPELLINGS[kind]

    for token, name in spelling.controls.items():
        assert spelling.spelled[token] == b""
        assert spelling.controls.keys().isdisjoint(ids_inside(spelling, name))
        assert spelling.ids_by_word[name] == token


def test_where_a_byte_has_two_ids_its_own_letter_has_the_word():
    spelling, words = SPELLINGS["SentencePiece"], other_words.tokenizer()

    assert spelling.ids_by_word[b"e"] == words.convert_tokens_to_ids("e")
    assert spelling.ids_by_word[b"\xc3"] == words.convert_tokens_to_ids("<0xC3>")


def test_every_byte_has_a_word_in_a_byte_level_vocabulary():
    words = SPELLINGS["byte-level"].ids_by_word

    assert all(bytes([byte]) in words for byte in range(256))


def test_a_text_begins_with_what_the_tokenizer_or_its_template_puts_there():
    own = tiny.tokenizer(chat_template="{{ bos_token }}{{ messages }}")

    assert spelling_of(own, "x").begin_id == tiny.BEGIN_ID
    assert SPELLINGS["byte-level"].begin_id is None
    assert SPELLINGS["byte-level"].end_id == tiny.END_ID


def test_a_writing_that_nobody_knows_is_a_sentence():
    core = Tokenizer(WordLevel({"<unk>": 0, "the": 1, "words": 2}, unk_token="<unk>"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    words = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>")

    with pytest.raises(ModelError, match=r"The tokenizer of odd spells .* of the same family\."):
        spelling_of(words, "odd")
