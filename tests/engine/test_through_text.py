"""A draft model with another tokenizer: its text is proposed in the target's tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from engine.drafters import FAMILIES, through_text
from engine.drafters.drafter import Context
from engine.drafters.through_text import TextDrafter
from engine.drafters.tokenizer_pair import TokenizerPair
from engine.events import FinishReason
from engine.models.spelling import Spelling
from engine.models.tokenizer import spelling_of
from engine.params import SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine import models_for_tests as tiny
from tests.engine import other_words
from tests.engine.fakes import Bench, ReciterLM, TableLM, spoken
from tests.engine.listed import rules
from tests.engine.other_words import OTHER_WORDS, ids_inside, toy

BYTE_LEVEL = spelling_of(tiny.tokenizer(), "byte-level")
SENTENCE_PIECE = spelling_of(other_words.tokenizer(), "SentencePiece")
OUR_END, THEIR_END = tiny.END_ID, SENTENCE_PIECE.end_id
[DRAFT_MODEL] = [family for family in FAMILIES if family.name == "draft-model"]


class Dictated(TableLM):
    """Says these ids one after the other, whatever stands before; and counts the rows it runs."""

    def __init__(self, script, vocabulary, *, end_ids=frozenset()):
        nothing = torch.zeros(1, 1, 1, vocabulary, dtype=torch.float64)
        super().__init__(nothing, end_ids=end_ids)
        self._script = list(script)
        self.asked = []
        self.said = []

    def logits(self, ids):
        self.said.append(self._script.pop(0) if self._script else 0)
        return one_hot(torch.tensor(self.said[-1]), self.vocabulary).double()

    def score(self, memo, ids, *rest, **options):
        self.asked.append(list(ids))
        return super().score(memo, ids, *rest, **options)


def drafter_of(script, *, ours=BYTE_LEVEL, theirs=SENTENCE_PIECE):
    """A drafter that will write `script`, and its model."""
    lm = Dictated(script, len(theirs.spelled))
    our_ends, their_ends = (
        frozenset([words.end_id] if words.end_id is not None else []) for words in (ours, theirs)
    )
    pair = TokenizerPair(ours, theirs, our_ends, their_ends)
    return TextDrafter(lm, pair, "draft-model"), lm


def proposed(drafter, ids, depth=8, **params):
    context, budget = Context(ids, len(ids)), Budget(depth, depth)
    return drafter.propose(context, budget, SamplingParams(**params), Noise(0))


def drafted(committed, written, *, depth=8, stop=()):
    """What is proposed behind a text of ours when theirs is written."""
    ids = BYTE_LEVEL.at_start(committed)
    drafter, _ = drafter_of([*ids_inside(SENTENCE_PIECE, written), *stop])
    return proposed(drafter, ids, depth)


# What is proposed.


def test_what_it_writes_is_proposed_as_we_spell_it():
    draft = drafted("in the", " sand and")

    assert draft.ids == ids_inside(BYTE_LEVEL, " sand and")
    assert draft.is_chain
    assert draft.is_deterministic
    assert set(draft.drafters) == {"draft-model"}


def test_a_drafted_end_of_turn_is_ours():
    draft = drafted("in the", " sand", stop=[THEIR_END])

    assert draft.ids == (*ids_inside(BYTE_LEVEL, " sand"), OUR_END)


def test_a_draft_stops_before_a_control_that_means_nothing_to_us():
    begin = SENTENCE_PIECE.ids_by_word[other_words.BEGIN]

    draft = drafted("in the", " sand", stop=[begin, *ids_inside(SENTENCE_PIECE, " and")])

    assert draft.ids == ids_inside(BYTE_LEVEL, " sand")


def test_a_control_of_the_same_name_is_proposed_as_ours():
    theirs = Spelling(
        "theirs", [b"a", b""], lambda text: [0] * len(text), controls={1: tiny.ROLES[0]}
    )
    drafter, _ = drafter_of([0, 1, 0], theirs=theirs)

    draft = proposed(drafter, BYTE_LEVEL.at_start("a"))

    assert draft.ids == (*ids_inside(BYTE_LEVEL, "a"), BYTE_LEVEL.ids_by_word[tiny.ROLES[0]])


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_a_draft_is_as_deep_as_was_asked_and_ends_with_no_half_of_a_word(depth):
    ours, theirs = toy([*"abcd", "abcd"]), toy(["cd", "ab"])
    drafter, _ = drafter_of(theirs.at_start("abcd" * 6), ours=ours, theirs=theirs)

    draft = proposed(drafter, ours.at_start("abcd"), depth)

    assert ours.bytes_of(draft.ids) == b"abcd" * depth


def test_it_writes_no_more_than_it_needs():
    words = ids_inside(SENTENCE_PIECE, "2a2a2a2a2a")
    drafter, lm = drafter_of(words)

    proposed(drafter, BYTE_LEVEL.at_start("in"), 3)

    assert len(lm.asked) == 3


# Where the conversation ends inside a word or a character.


@pytest.mark.parametrize(
    ("committed", "cut", "written", "rest"),
    [
        ("in the ", 0, " sand", b"sand"),
        ("so你", 1, "你 and", b"\xa0 and"),
        ("so 你", 2, " 你", b"\xbd\xa0"),
        ("so你", 2, "ä", None),
        ("in the ", 0, "\nsand", None),
    ],
    ids=["a space", "a byte short", "space and bytes", "another character", "no space"],
)
def test_a_draft_goes_on_from_what_is_there_or_is_none(committed, cut, written, rest):
    ids = BYTE_LEVEL.at_start(committed)
    drafter, _ = drafter_of(ids_inside(SENTENCE_PIECE, written))

    draft = proposed(drafter, ids[: len(ids) - cut])

    assert BYTE_LEVEL.bytes_of(draft.ids) == (rest or b"")


numbers = st.lists(st.integers(0, 10_000), max_size=10)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(BYTE_LEVEL, SENTENCE_PIECE), (SENTENCE_PIECE, BYTE_LEVEL), (BYTE_LEVEL, BYTE_LEVEL)],
)
@settings(deadline=None)
@given(committed=numbers, written=numbers, depth=st.integers(1, 6))
@example(committed=[195], written=[3 + 0xA4, 300], depth=4)
def test_any_draft_is_what_was_written_behind_any_conversation(
    ours, theirs, committed, written, depth
):
    ids = [number % len(ours.spelled) for number in committed]
    script = [number % len(theirs.spelled) for number in written]
    drafter, lm = drafter_of(script, ours=ours, theirs=theirs)
    before = list(ids)

    draft = proposed(drafter, ids, depth)

    assert ids == before
    assert len(draft) <= depth
    words = [token for token in draft.ids if ours.spelled[token]]
    assert list(draft.ids[: len(words)]) == words
    assert len(draft) - len(words) <= 1
    said = theirs.bytes_of(lm.said)
    # A space and three bytes of a character may be there already.
    assert any(said[there:].startswith(ours.bytes_of(words)) for there in range(5))


# In a reply.

CUE = "?"
OURS = toy(["the", " cat", " the", "?"], ends=[0])
THEIRS = toy(["?", " ", "c", "at", "the"], ends=[3], end="</end>")
REPLY = "the cat the cat cat the the"


class CountingReciter(ReciterLM):
    """Counts the rows that each of its passes runs."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.rows = []

    def score(self, memo, ids, *rest, **options):
        scores = super().score(memo, ids, *rest, **options)
        self.rows.append(1 + len(scores.rows_before_root))
        return scores


def reciters():
    """A target and a drafter that say the same, each in its own tokens."""
    target, lm = (
        CountingReciter(
            [*words.at_start(REPLY), end],
            cue=words.at_start(CUE)[0],
            vocabulary=len(words.spelled),
            end_id=end,
        )
        for words, end in ((OURS, 0), (THEIRS, 3))
    )
    return target, lm, TokenizerPair.of(target, OURS, lm, THEIRS)


@rules
@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("draft_length", [1, 2, 5])
def test_a_drafter_that_says_the_same_is_accepted_whole(rule, temperature, draft_length):
    target, lm, pair = reciters()
    params = SamplingParams(temperature=temperature, rule=rule)
    drafter = TextDrafter(lm, pair, "draft-model")

    reply = spoken(
        target, drafter, OURS.at_start(f"the cat{CUE}"), params, most=50, draft_length=draft_length
    )

    assert OURS.bytes_of(reply.ids) == REPLY.encode()
    assert reply.reason is FinishReason.END_OF_TURN
    assert reply.accepted == reply.drafted
    assert reply.accepted >= len(reply.ids) - len(reply.rounds)


def test_its_memo_runs_only_what_is_new():
    target, lm, pair = reciters()
    long_prompt = OURS.at_start("the" + " cat the" * 50 + CUE)

    spoken(target, TextDrafter(lm, pair, "d"), long_prompt, SamplingParams(), most=50)

    assert lm.rows[0] > 200
    assert max(lm.rows[1:]) <= 4


@rules
def test_it_draws_nothing_and_follows_the_penalty(rule):
    theirs = toy(["x", "y", "z"])
    lm = TableLM(torch.tensor([3.0, 2.0, 1.0]).double().expand(1, 4, 4, 3))
    ours = toy(["y", "x", "z"])
    pair = TokenizerPair(ours, theirs, frozenset(), frozenset())
    drafter, noise = TextDrafter(lm, pair, "d"), Noise(0)
    context = Context([2], 1)

    likeliest = drafter.propose(
        context, Budget(3, 3), SamplingParams(temperature=1.0, rule=rule), noise
    )
    fresh = drafter.propose(
        context,
        Budget(3, 3),
        SamplingParams(temperature=1.0, repetition_penalty=4.0, rule=rule),
        noise,
    )

    assert likeliest.ids == (1, 1, 1)
    assert fresh.ids == (1, 0, 1)
    assert noise.uniform() == Noise(0).uniform()


def test_the_family_goes_through_text_where_ids_differ(lms, draft_lm):
    bench = Bench(lms["llama"], draft_lm)

    assert isinstance(DRAFT_MODEL.build(bench, OTHER_WORDS), TextDrafter)
    assert not isinstance(DRAFT_MODEL.build(bench, "anywhere"), TextDrafter)
    assert through_text.text_drafter(bench, OTHER_WORDS, "x").proposers == ("x",)


def test_without_room_in_its_context_it_drafts_nothing():
    drafter, lm = drafter_of(ids_inside(SENTENCE_PIECE, " sand"))
    lm.context_length = 3

    assert not len(proposed(drafter, BYTE_LEVEL.at_start("in the sand")))
    assert not lm.asked
