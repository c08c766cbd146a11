"""N-gram lookup against a search by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.drafter import Context
from engine.drafters.ngram import NgramDrafter
from engine.params import SamplingParams
from engine.planning import Budget
from engine.sampling import Noise


def proposed(drafter, ids, depth=4):
    draft = drafter.propose(
        Context(ids, len(ids)), Budget(depth, depth), SamplingParams(), Noise(0)
    )
    return list(draft.ids)


def by_hand(ids, *, longest, shortest, depth):
    for length in range(longest, shortest - 1, -1):
        for end in range(len(ids) - 1, length - 1, -1):
            if ids[end - length : end] == ids[len(ids) - length :]:
                going_on = list(ids)
                for at in range(end, end + depth):
                    going_on.append(going_on[at])
                return going_on[len(ids) :]
    return []


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(0, 6))
def test_the_longest_match_wins_and_then_the_newest(ids, depth):
    drafter = NgramDrafter(longest=4, shortest=2)

    assert proposed(drafter, ids, depth) == by_hand(ids, longest=4, shortest=2, depth=depth)


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=4))
def test_a_used_drafter_says_what_a_fresh_one_says(conversations):
    drafter = NgramDrafter(longest=3, shortest=1)

    for ids in conversations:
        assert proposed(drafter, ids) == proposed(NgramDrafter(longest=3, shortest=1), ids)


def test_a_draft_goes_no_further_than_an_end_of_turn():
    drafter = NgramDrafter(end_ids=frozenset([9]))

    assert proposed(drafter, [1, 2, 9, 4, 5, 1, 2]) == [9]


def test_nothing_repeats_nothing_is_proposed():
    assert proposed(NgramDrafter(), [1, 2, 3, 4]) == []
