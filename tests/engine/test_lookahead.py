"""Lookahead decoding in the loop: rows that ride along, guesses, and what becomes of them."""

from __future__ import annotations

import pytest
import torch

from engine.draft import NO_DRAFT, ROOT, Draft
from engine.drafters import FAMILIES
from engine.drafters.drafter import Context, Observation
from engine.drafters.jacobi_window import JacobiWindow
from engine.drafters.lookahead import MOST_ROWS, LookaheadDrafter
from engine.errors import DrafterMismatch
from engine.params import Rule, SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine.fakes import Bench, ReciterLM, TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, rules, targets

[LOOKAHEAD] = [family for family in FAMILIES if family.name == "lookahead"]
CUE = 99


def lookahead(columns=4, order=4, guesses=3, **options):
    options = {"context_length": 512, **options}
    return LookaheadDrafter(columns=columns, order=order, guesses=guesses, **options)


def drafted(drafter, ids, depth=8, nodes=40, prompt_tokens=None):
    context = Context(ids, len(ids) if prompt_tokens is None else prompt_tokens)
    return drafter.propose(context, Budget(depth, nodes), SamplingParams(), Noise(0))


def riding(drafter, ids):
    return drafter.passengers(Context(ids, len(ids)))


# What it drafts.


def test_guesses_are_the_newest_ngrams_after_the_root_as_a_tree():
    text = [1, 2, 3, 4, 1, 2, 3, 5, 1, 6, 7, 8, 1]

    draft = drafted(lookahead(), text)

    assert draft.ids == (6, 7, 8, 2, 3, 5, 4)
    assert draft.parents == (ROOT, 0, 1, ROOT, 3, 4, 4)


def test_a_budget_for_a_chain_gets_one_guess():
    text = [1, 2, 3, 4, 1, 6, 7, 8, 1]

    assert drafted(lookahead(), text, depth=2, nodes=2).ids == (6, 7)
    assert drafted(lookahead(), text, depth=0, nodes=0) == NO_DRAFT


def test_a_guess_goes_no_further_than_an_end_of_turn():
    text = [1, 2, 9, 4, 1]

    assert drafted(lookahead(end_ids=frozenset([9])), text).ids == (2, 9)


# The window in a pass.


@targets
@rules
def test_the_window_changes_nothing_for_the_drafts_rows(target, rule, lms):
    lm, window = lms[target], JacobiWindow(5, 4, LONG_PROMPT)
    draft = Draft((7, 8, 9), (ROOT, 0, ROOT), ("x",) * 3, (None,) * 3, (None,) * 3)
    alone = lm.score(lm.new_memo(), LONG_PROMPT, draft).logits

    for at in range(4):
        scores = lm.score(lm.new_memo(), LONG_PROMPT, draft, window.rows())
        said = scores.logits[-5:].argmax(-1).tolist()
        window.advance(at, said)

        torch.testing.assert_close(scores.logits[: len(alone)], alone)


@targets
def test_a_row_of_the_window_says_what_the_target_says_after_its_text(target, lms):
    lm, window = lms[target], JacobiWindow(3, 4, LONG_PROMPT)

    for at in range(4):
        rows = window.rows()
        logits = lm.score(lm.new_memo(), LONG_PROMPT, NO_DRAFT, rows).logits[1:]

        for row, line in enumerate(rows.sees.tolist()):
            seen = [token for token, sees in zip(rows.ids, line, strict=True) if sees]
            alone = lm.score(lm.new_memo(), [*LONG_PROMPT, *seen]).logits[0]
            torch.testing.assert_close(logits[row], alone)
        window.advance(at, logits[-3:].argmax(-1).tolist())


def test_the_rows_of_a_pass_stay_within_the_limit(lms):
    bench = Bench(lms["llama"], lms["llama"])

    reply = spoken(
        bench.lm,
        LOOKAHEAD.build(bench, None),
        LONG_PROMPT,
        SamplingParams(),
        most=24,
        draft_length=20,
        tree_nodes=60,
    )

    most = max(done.rows for done in reply.rounds)
    assert 7 * 4 < most <= MOST_ROWS
    assert reply.accepted > 0


def test_no_row_lies_beyond_the_targets_context():
    drafter = lookahead(context_length=20)

    drafted(drafter, [1, 2, 3])
    assert max(riding(drafter, [1, 2, 3]).offsets) == 5
    drafted(drafter, [1] * 15)
    assert max(riding(drafter, [1] * 15).offsets) + 14 == 19
    drafted(drafter, [1] * 16)
    assert len(riding(drafter, [1] * 16)) == 0


def test_nothing_rides_in_a_round_that_it_sits_out():
    drafter = lookahead()

    drafted(drafter, [1, 2, 3])
    drafted(drafter, [1, 2, 3, 4], depth=0, nodes=0, prompt_tokens=3)

    assert len(riding(drafter, [1, 2, 3, 4])) == 0
    assert len(riding(lookahead(), [1, 2, 3, 4])) == 0


def test_a_round_without_its_rows_leaves_the_window_as_it_is():
    drafter = lookahead()
    drafted(drafter, [1, 2, 3])
    before = riding(drafter, [1, 2, 3]).ids

    drafter.observe(Observation([1, 2, 3, 4], 2))
    drafted(drafter, [1, 2, 3, 4], prompt_tokens=3)

    assert riding(drafter, [1, 2, 3, 4]).ids == before


# What it gains.


@rules
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_it_finds_ngrams_that_never_stood_in_the_text(rule, temperature):
    """The text says nothing twice, so all that is kept comes out of the window."""
    text = list(range(60))
    lm = ReciterLM(text, cue=CUE, vocabulary=100, end_id=59)
    params = SamplingParams(temperature=temperature, rule=rule)

    reply = spoken(lm, lookahead(), [98, 97, CUE], params, most=70, draft_length=3, tree_nodes=9)

    assert reply.ids == text
    assert len(text) / len(reply.rounds) > 1.5


def test_the_next_level_is_the_likeliest_token_after_each_column():
    drafter = lookahead()
    logits = torch.randn(4, 9, generator=torch.Generator().manual_seed(1))
    drafted(drafter, [1, 2, 3])
    riding(drafter, [1, 2, 3])

    drafter.observe(Observation([1, 2, 3, 4], 2, passenger_logits=logits))

    drafted(drafter, [1, 2, 3, 4], prompt_tokens=3)
    assert list(riding(drafter, [1, 2, 3, 4]).ids[-4:]) == logits.argmax(-1).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_coupled_text_is_the_same_with_trees_of_guesses(seed, lms):
    params = SamplingParams(temperature=0.8, rule=Rule.COUPLED, seed=seed)
    plain = spoken(lms["gemma"], nobody(), LONG_PROMPT, params, most=24)

    reply = spoken(
        lms["gemma"], lookahead(), LONG_PROMPT, params, most=24, draft_length=3, tree_nodes=9
    )

    assert reply.ids == plain.ids


# Other conversations.


@pytest.mark.parametrize(
    "prompt", [LONG_PROMPT, LONG_PROMPT[:20], [5, *LONG_PROMPT]], ids=["again", "edited", "another"]
)
def test_a_new_reply_begins_as_with_a_fresh_drafter(prompt, lms):
    params, used = SamplingParams(), lookahead()
    spoken(lms["llama"], used, LONG_PROMPT, params, most=12)

    first = spoken(lms["llama"], used, prompt, params, most=12)

    second = spoken(lms["llama"], lookahead(), prompt, params, most=12)
    assert [done.draft.ids for done in first.rounds] == [done.draft.ids for done in second.rounds]
    assert [done.rows for done in first.rounds] == [done.rows for done in second.rounds]


# How it is asked for.


@pytest.mark.parametrize("choice", ["7x5x7", "7,5,7", None])
def test_window_order_and_guesses_can_be_chosen(choice):
    lm = TableLM.random(1)

    drafter = LOOKAHEAD.build(Bench(lm, lm), choice)

    drafted(drafter, [1, 2, 3])
    assert len(riding(drafter, [1, 2, 3])) == 7 + 5 - 3


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ("7", "as in"),
        ("7x5", "as in"),
        ("7x5xmany", "as in"),
        ("0x5x7", "1 or more"),
        ("7x2x7", '3 or more; "7x2x7" has less'),
        ("10x5x7", 'at most 64 rows; "10x5x7" asks for 68'),
    ],
)
def test_a_choice_that_does_not_work_is_refused(choice, sentence):
    lm = TableLM.random(1)

    with pytest.raises(DrafterMismatch, match=sentence):
        LOOKAHEAD.build(Bench(lm, lm), choice)
