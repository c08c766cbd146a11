"""Text while it arrives: whole characters, stop texts, ends (cases.md 1 to 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.events import FinishReason
from engine.text import ReplyText, StopFilter, StreamDecoder
from tests.engine import models_for_tests as tiny

WORDS = tiny.tokenizer()


def decode(ids) -> str:
    return WORDS.decode(list(ids), skip_special_tokens=True)  # pyright: ignore[reportReturnType]


def encode(text):
    return WORDS.encode(text, add_special_tokens=False)


def reply_text(*, stop_texts=(), most=100, room=100):
    return ReplyText(
        decode,
        end_ids=frozenset([tiny.END_ID]),
        stop_texts=stop_texts,
        max_new_tokens=most,
        context_room=room,
    )


def test_a_face_and_two_chinese_characters_never_show_a_replacement_mark():
    decoder = StreamDecoder(decode)

    pieces = [decoder.push(token_id) for token_id in encode("🙂你好")]

    assert "".join(pieces) == "🙂你好"
    assert [piece for piece in pieces if piece] == ["🙂", "你", "好"]


def test_a_character_belongs_to_the_token_that_completes_it():
    ids = encode("a🙂b")
    decoder = StreamDecoder(decode)

    pieces = [decoder.push(token_id) for token_id in ids]

    assert pieces == ["a", "", "", "", "🙂", "b"]


def test_an_unfinished_character_is_dropped_at_the_end_and_what_is_whole_is_not():
    decoder = StreamDecoder(decode)

    shown = "".join(decoder.push(token_id) for token_id in encode("ok🙂")[:-1])

    assert shown + decoder.flush() == "ok"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_streams_to_itself(text):
    text = text.replace("\ufffd", "")
    decoder = StreamDecoder(decode)

    shown = "".join(decoder.push(token_id) for token_id in encode(text))

    assert shown + decoder.flush() == decode(encode(text))


def test_a_preview_is_not_remembered():
    decoder = StreamDecoder(decode)
    decoder.push(encode("a")[0])

    assert decoder.peek(encode("🙂")[:3]) == ""
    assert decoder.peek(encode(" the end")) == " the end"
    assert decoder.push(encode("b")[0]) == "b"


@given(
    st.lists(st.text(alphabet="ab", max_size=4), max_size=12),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
)
def test_the_filter_shows_everything_before_the_first_stop_text_and_nothing_of_it(pieces, stops):
    text = "".join(pieces)
    ends = [text.find(stop) for stop in stops if stop in text]
    expected = text
    # The stop that is completed first ends the reply.
    for end in range(len(text) + 1):
        found = [text[:end].find(stop) for stop in stops if stop in text[:end]]
        if found:
            expected = text[: min(found)]
            break
    stop_filter = StopFilter(stops)

    shown, stopped = "", False
    for character in text:
        more, stopped = stop_filter.push(character)
        shown += more
        if stopped:
            break

    assert stopped == bool(ends)
    assert shown + ("" if stopped else stop_filter.flush()) == expected


def test_a_stop_text_of_two_words_inside_one_block_ends_the_reply_before_it():
    ids = encode("yes. The end of it")

    cut = reply_text(stop_texts=["The end"]).cut(ids)

    assert "".join(cut.texts) == "yes. "
    assert cut.reason is FinishReason.STOP_TEXT
    assert decode(ids[: len(cut.texts)]) == "yes. The end"


def test_a_stop_text_may_come_over_several_rounds():
    reply = reply_text(stop_texts=["<stop>"])

    cuts = [reply.cut([token_id]) for token_id in encode("a <stop> b")[:8]]

    assert "".join(text for cut in cuts for text in cut.texts) == "a "
    assert cuts[-1].reason is FinishReason.STOP_TEXT
    assert all(cut.reason is None for cut in cuts[:-1])


def test_what_only_begins_like_a_stop_text_is_shown_at_the_end():
    ids = [*encode("a <st"), tiny.END_ID]

    cut = reply_text(stop_texts=["<stop>"]).cut(ids)

    assert "".join(cut.texts) == "a <st"
    assert cut.reason is FinishReason.END_OF_TURN


def test_an_end_of_turn_in_the_middle_of_a_block_is_the_end():
    cut = reply_text().cut([*encode("hi"), tiny.END_ID, *encode(" there")])

    assert "".join(cut.texts) == "hi"
    assert len(cut.texts) == 3
    assert cut.reason is FinishReason.END_OF_TURN


def test_a_limit_of_two_is_exactly_two():
    reply = reply_text(most=2)

    cut = reply.cut(encode("abcdef"))

    assert cut.texts == ("a", "b")
    assert cut.reason is FinishReason.LENGTH
    assert reply.remaining_tokens == 0


def test_the_end_of_the_context_is_told_from_the_users_limit():
    assert reply_text(most=9, room=3).cut(encode("abcdef")).reason is FinishReason.CONTEXT


def test_the_preview_ends_at_an_end_of_turn():
    assert reply_text().preview([*encode("hi"), tiny.END_ID, *encode("no")]) == "hi"
