"""The suffix automaton against a search by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.suffix_automaton import ROOT, SuffixAutomaton

texts = st.lists(st.integers(0, 2), max_size=40)


def grown(text):
    automaton = SuffixAutomaton()
    for token in text:
        automaton.add(token)
    return automaton


def ends(text, run):
    """Where a run ends in a text."""
    return [end for end in range(len(run), len(text) + 1) if text[end - len(run) : end] == run]


def longest_match(text):
    lengths = range(len(text) - 1, -1, -1)
    return next(length for length in lengths if len(ends(text, text[len(text) - length :])) > 1)


@given(texts)
def test_the_match_is_the_longest_ending_that_stood_there_before(text):
    _, length = grown(text).match

    assert length == (longest_match(text) if text else 0)


@given(texts)
def test_every_run_is_counted_with_its_newest_place(text):
    automaton = grown(text)

    for first in range(len(text)):
        state = ROOT
        for last in range(first, len(text)):
            state = automaton.following(state)[text[last]]
            places = ends(text, text[first : last + 1])
            assert automaton.counts[state] == len(places)
            assert automaton.newest[state] == places[-1] - 1


@given(texts)
def test_what_followed_a_run_is_known_and_nothing_else(text):
    automaton = grown(text)
    state, length = automaton.match
    run = text[len(text) - length :]

    followers = {text[end] for end in ends(text, run) if end < len(text)}

    assert set(automaton.following(state)) == followers


@given(texts, st.lists(st.integers(0, 3), max_size=12))
def test_stepping_through_another_text_follows_its_longest_known_ending(text, other):
    automaton, state, length = grown(text), ROOT, 0

    for place, token in enumerate(other, start=1):
        state, length = automaton.step(state, length, token)
        known = [n for n in range(place + 1) if ends(text, other[place - n : place])]
        assert length == max(known)


@given(texts)
def test_the_endings_of_a_state_grow_shorter_and_stand_at_more_places(text):
    automaton = grown(text)

    endings = list(automaton.endings(automaton.match[0]))

    lengths = [length for _, length in endings]
    counts = [automaton.counts[state] for state, _ in endings]
    assert lengths == sorted(set(lengths), reverse=True)
    assert counts == sorted(set(counts))
    assert 0 not in lengths


def test_a_text_that_repeats_itself_for_long_is_still_matched_whole():
    automaton = grown([5] * 3000)

    state, length = automaton.match

    assert length == 2999
    assert set(automaton.following(state)) == {5}
