"""Suffix decoding against a search by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.draft import ROOT
from engine.drafters import FAMILIES
from engine.drafters.drafter import Context
from engine.drafters.suffix import SuffixDrafter
from engine.errors import DrafterMismatch
from engine.params import SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine.fakes import Bench, TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, rules, targets

texts = st.lists(st.integers(0, 3), min_size=1, max_size=40)
depths = st.integers(1, 9)


def drafted(drafter, ids, depth=4, nodes=0):
    return drafter.propose(
        Context(ids, len(ids)), Budget(depth, max(depth, nodes)), SamplingParams(), Noise(0)
    )


def proposed(drafter, ids, depth=4):
    return list(drafted(drafter, ids, depth).ids)


# Against a search by hand.


def followers(text, run):
    """What followed a run: per token how often, and where last."""
    places = [end for end in range(len(run), len(text)) if text[end - len(run) : end] == run]
    return Counter(text[end] for end in places), {text[end]: end for end in places}


def match_by_hand(text):
    lengths = range(len(text) - 1, 0, -1)
    return next((n for n in lengths if followers(text, text[len(text) - n :])[0]), 0)


def most_frequent(text, run):
    counts, newest = followers(text, run)
    return sorted(counts, key=lambda token: (counts[token], newest[token]))[-1]


def start_by_hand(text):
    """What to go on from: the match, or for a last token that is new what the one before meant."""
    length = match_by_hand(text)
    if length or len(text) < 2:
        return text[len(text) - length :], length
    before = text[:-1]
    length = match_by_hand(before)
    run = before[len(before) - length :]
    return ([*run, most_frequent(before, run)] if length else []), length


def chain_by_hand(text, depth):
    run, length = start_by_hand(text)
    chain, share = [], 1.0
    while run and len(chain) < min(depth, 8 * length):
        counts, _ = followers(text, run)
        if not counts:
            run = run[1:]
            continue
        token = most_frequent(text, run)
        share *= counts[token] / counts.total()
        if share < 0.1:
            break
        chain.append(token)
        run = [*run, token]
    return chain


@given(texts, depths)
def test_a_chain_follows_the_longest_match_by_counts_and_then_the_newest(text, depth):
    assert proposed(SuffixDrafter(), text, depth) == chain_by_hand(text, depth)


@given(texts, depths)
def test_the_grade_is_the_length_of_the_match(text, depth):
    draft = drafted(SuffixDrafter(), text, depth)

    assert set(draft.grades) <= {min(match_by_hand(text), 8)}
    assert not any(row is not None for row in draft.q_rows)


@given(texts, depths, st.integers(1, 20))
def test_a_tree_holds_its_best_paths_within_its_budget(text, depth, more):
    draft = drafted(SuffixDrafter(), text, depth, depth + more)

    assert len(draft) <= depth + more
    assert max(draft.depths, default=0) <= depth
    for children in draft.children.values():
        ids = [draft.ids[node] for node in children]
        assert len(set(ids)) == len(ids) <= 4
    first = draft.first_path()
    chain = chain_by_hand(text, depth)
    assert list(first) == chain[: len(first)]


def test_siblings_stand_in_the_order_of_their_counts():
    text = [1, 7, 20, 1, 8, 21, 1, 8, 22, 1, 9, 23, 1, 9, 24, 1, 9, 25, 1]

    draft = drafted(SuffixDrafter(), text, 1, 3)

    assert draft.ids == (9, 8, 7)
    assert draft.parents == (ROOT,) * 3


def test_the_longer_the_match_the_further_it_drafts():
    text = [*range(100, 140), 3, 100]

    assert proposed(SuffixDrafter(), text, 30) == list(range(101, 109))
    assert proposed(SuffixDrafter(), [*text, 101], 30) == list(range(102, 118))


def test_a_copy_goes_on_behind_a_token_that_is_new_in_it():
    text = [1, 2, 3, 4, 5, 6, 60, 2, 3, 40]

    draft = drafted(SuffixDrafter(), text, 2)

    assert draft.ids == (5, 6)
    assert draft.grades == (0, 0)


def test_a_path_goes_no_further_than_an_end_of_turn():
    drafter = SuffixDrafter(end_ids=frozenset([9]))

    assert proposed(drafter, [1, 2, 9, 4, 5, 1, 2]) == [9]


def test_nothing_repeats_nothing_is_proposed():
    assert proposed(SuffixDrafter(), [1, 2, 3, 4]) == []
    assert proposed(SuffixDrafter(), [1]) == []


# Other conversations, edited ones, and the past.

conversations = st.lists(
    st.lists(st.integers(0, 1), min_size=1, max_size=14), min_size=1, max_size=5
)


@given(conversations, conversations)
def test_a_used_drafter_says_what_a_fresh_one_says(conversations, past):
    drafter = SuffixDrafter(past=past)

    for ids in conversations:
        fresh = SuffixDrafter(past=past)
        assert drafted(drafter, ids) == drafted(fresh, ids)
        assert drafted(drafter, ids, 3, 8) == drafted(SuffixDrafter(past=past), ids, 3, 8)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=25), st.data())
def test_a_reply_that_is_taken_back_leaves_no_trace(ids, data):
    drafter = SuffixDrafter()
    proposed(drafter, ids)
    shorter = ids[: data.draw(st.integers(1, len(ids)))]

    assert drafted(drafter, shorter) == drafted(SuffixDrafter(), shorter)


def test_the_past_speaks_where_it_matches_more():
    past = [[5, 6, 7, 8], [6, 7, 1]]

    assert proposed(SuffixDrafter(past=past), [6, 3, 5, 6]) == [7, 8]
    assert proposed(SuffixDrafter(), [6, 3, 5, 6]) == [3, 5, 6, 3]
    assert proposed(SuffixDrafter(past=past), [5, 6, 3, 5, 6], 2) == [3, 5]


@given(st.lists(texts, max_size=4), texts, depths)
def test_no_draft_runs_from_one_past_reply_into_another(past, text, depth):
    draft = drafted(SuffixDrafter(past=past), text, depth, 12)

    assert all(token >= 0 for token in draft.ids)


# In the loop.


@targets
@rules
def test_with_trees_the_text_is_still_plain_decodings(target, rule, lms):
    params = SamplingParams(rule=rule)
    plain = spoken(lms[target], nobody(), LONG_PROMPT, params, most=24)

    reply = spoken(
        lms[target], SuffixDrafter(), LONG_PROMPT, params, most=24, draft_length=3, tree_nodes=9
    )

    assert reply.ids == plain.ids
    assert any(not done.draft.is_chain for done in reply.rounds)


def test_a_choice_that_means_nothing_is_refused():
    [family] = [family for family in FAMILIES if family.name == "suffix"]
    lm = TableLM.random(1)

    with pytest.raises(DrafterMismatch, match="takes no choice"):
        family.build(Bench(lm, lm), "5")
