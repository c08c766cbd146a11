"""Tokens by offset: who wrote which character, and where the origin changes."""

from __future__ import annotations

import pytest

from app.chat.token_runs import TokenRuns, facts_of
from tests.app.events import ACCEPTED, RESAMPLED, TARGET_ONLY, spoken


@pytest.fixture
def runs() -> TokenRuns:
    """ "the" accepted, " the" accepted, "" held, " the" resampled, at offsets 0, 3 and 7."""
    made = TokenRuns()
    texts = ("the", " the", "", " the")
    offset = 0
    for facts in facts_of(spoken(*texts, origins="aatr")):
        owner = made.add(facts)
        if facts.token.text:
            made.wrote(owner, offset, offset + len(facts.token.text))
            offset += len(facts.token.text)
    return made


@pytest.mark.parametrize(
    ("offset", "token_id"), [(0, 100), (2, 100), (3, 101), (7, 103), (10, 103)]
)
def test_a_character_belongs_to_the_token_that_wrote_it(runs, offset, token_id):
    found = runs.at(offset)

    assert found is not None
    assert found.token.id == token_id


@pytest.mark.parametrize("offset", [-1, 11, 500])
def test_no_token_stands_outside_the_reply(runs, offset):
    assert runs.at(offset) is None


def test_neighbours_of_one_origin_are_one_stretch(runs):
    assert list(runs.stretches(0, 11)) == [(0, 7, ACCEPTED), (7, 11, RESAMPLED)]


def test_a_stretch_is_cut_to_what_is_asked_for(runs):
    assert list(runs.stretches(2, 8)) == [(2, 7, ACCEPTED), (7, 8, RESAMPLED)]


def test_text_that_nobody_wrote_has_no_stretch():
    assert list(TokenRuns().stretches(0, 5)) == []


def test_the_sentence_names_what_the_user_may_ask():
    facts = list(facts_of(spoken("a", "b", origins="at", index=12)))

    assert facts[0].sentence() == (
        "accepted · ngram\nid 100 · round 12 · depth 1\np 0.8 · margin 1.50 nats"
    )
    assert facts[1].token.origin is TARGET_ONLY


def test_a_token_not_drafted_names_the_drafter_in_charge():
    facts = next(facts_of(spoken("a", origins="t")))

    assert facts.drafter == "ngram"
