"""How far to draft: near the best that could have been chosen, on simulated and recorded rounds."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from engine.costs import CostModel
from engine.draft import NO_DRAFT, Draft
from engine.events import Outcome
from engine.params import SamplingParams
from engine.planning import Limits, Planner, Played
from tests.engine import simulated
from tests.engine.fakes import ScriptedDrafter, TableLM, nobody, spoken
from tests.engine.simulated import (
    CURVES,
    PASS_SECONDS,
    Proposal,
    Text,
    best_fixed,
    drawn,
    fixed,
    measured,
    planned,
    recorded,
    staircase,
)

SEEDS = range(3)
curves = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
PRICES = {"free": 0.0, "a twentieth": 0.05, "a fifth": 0.2, "two thirds": 0.67}
prices = pytest.mark.parametrize("each", PRICES.values(), ids=PRICES.keys())


def over_seeds(made, curve):
    """Seconds planned and seconds of the best fixed length, over replies of several seeds."""
    texts = [made(seed) for seed in SEEDS]
    ours = sum(planned(Planner(measured(curve)), text, curve).seconds for text in texts)
    return ours, sum(best_fixed(text, curve) for text in texts)


# Near the best, whatever drafts cost and bring.


@curves
@prices
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.8])
def test_where_nothing_changes_it_is_near_the_best_fixed_length(curve, each, share):
    ours, best = over_seeds(lambda seed: drawn(1500, lambda at: share, seed, each=each), curve)

    assert ours <= 1.03 * best


@prices
@pytest.mark.parametrize(
    ("first", "then"), [(0.9, 0.1), (0.1, 0.9), (0.8, 0.0), (0.0, 0.8), (0.6, 0.2), (0.2, 0.6)]
)
def test_where_it_changes_midway_it_is_near_the_best_length_of_each_half(first, then, each):
    halves = [lambda at: first, lambda at: then]

    ours = best = 0.0
    for seed in SEEDS:
        parts = [drawn(600, half, seed + at, each=each) for at, half in enumerate(halves)]
        whole = Text([*parts[0].proposals, *parts[1].proposals], each=each)
        ours += planned(Planner(measured(staircase)), whole, staircase).seconds
        best += sum(best_fixed(part, staircase) for part in parts)

    assert ours <= 1.10 * best


@curves
@prices
def test_where_nothing_ever_holds_it_costs_almost_nothing(curve, each):
    text = drawn(1000, lambda at: 0.0, seed=1, each=each)

    spent = planned(Planner(measured(curve)), text, curve)

    assert spent.seconds <= 1.03 * fixed(0, text, curve)


@prices
def test_over_many_short_replies_it_costs_almost_nothing_either(each):
    planner = Planner(measured(staircase))
    texts = [drawn(100, lambda at: 0.0, seed, each=each) for seed in range(20)]

    seconds = sum(planned(planner, text, staircase).seconds for text in texts)

    assert seconds <= 1.03 * sum(fixed(0, text, staircase) for text in texts)


def test_where_nothing_is_found_it_costs_the_asking_alone():
    text = Text([Proposal(0, 0, 0)] * 1000)

    spent = planned(Planner(measured(staircase)), text, staircase)

    asking = 1000 * text.seconds(0)
    assert spent.seconds <= 1.0001 * (fixed(0, text, staircase) + asking)


# The same on recorded rounds.


def test_on_recorded_rounds_it_is_near_the_best_fixed_length():
    texts = recorded().values()

    ours = sum(planned(Planner(measured(staircase)), text, staircase).seconds for text in texts)

    lengths = simulated.LONGEST_FIXED
    best = min(sum(fixed(length, text, staircase) for text in texts) for length in lengths)
    assert ours <= 1.03 * best


@pytest.mark.parametrize("name", recorded().keys())
def test_on_recorded_rounds_it_is_never_slower_than_plain_decoding(name):
    text = recorded()[name]

    spent = planned(Planner(measured(staircase)), text, staircase)

    assert spent.seconds <= 1.03 * fixed(0, text, staircase)


def test_one_session_over_all_recorded_replies_is_near_the_best_fixed_length():
    planner = Planner(measured(staircase))

    ours = sum(planned(planner, text, staircase).seconds for text in recorded().values())

    lengths = simulated.LONGEST_FIXED
    best = min(sum(fixed(n, text, staircase) for text in recorded().values()) for n in lengths)
    assert ours <= 1.03 * best


# What disturbs it.


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_rounds_that_something_else_slowed_down_do_not_mislead_it(share):
    def spikes(round_index):
        return generator.uniform(1.0, 1.15) * (10 if generator.random() < 0.03 else 1)

    generator, text = random.Random(5), drawn(1500, lambda at: share, seed=2)

    spent = planned(Planner(measured(staircase)), text, staircase, disturbed=spikes)

    assert spent.seconds <= 1.03 * best_fixed(text, staircase)


def test_a_machine_that_slows_down_for_a_while_does_not_mislead_it():
    text = drawn(2000, lambda at: 0.7, seed=2)

    spent = planned(
        Planner(measured(staircase)),
        text,
        staircase,
        disturbed=lambda round_index: 2.5 if 100 < round_index < 400 else 1.0,
    )

    assert spent.seconds <= 1.03 * best_fixed(text, staircase)


@pytest.mark.parametrize("wrong_rows", [1, 2, 4, 8])
@pytest.mark.parametrize("wrong", [0.4, 2.5])
def test_a_cost_that_was_measured_wrongly_does_not_mislead_it_for_long(wrong_rows, wrong):
    readings = measured(staircase).readings()
    for cells in readings.values():
        cells[wrong_rows] *= wrong
    text = drawn(2500, lambda at: 0.7, seed=2)

    spent = planned(Planner(CostModel(readings)), text, staircase)

    assert spent.seconds <= 1.07 * best_fixed(text, staircase)


def test_costs_that_nobody_measured_are_learnt_from_the_rounds():
    text = drawn(3000, lambda at: 0.8, seed=2)

    spent = planned(Planner(CostModel()), text, staircase)

    assert spent.seconds <= 1.10 * best_fixed(text, staircase)


# One decision at a time.


LIMITS = Limits(None, 0, remaining_tokens=100, cache_tokens=300)


def tried_out(planner, *, holds, rounds=40, name="x", grade=0, found=63):
    planned(planner, Text([Proposal(grade, found, holds)] * rounds, name=name), staircase)
    return planner


def judged(planner, *, grade=0, found=63, name="x"):
    budget = planner.budget((name,), LIMITS)
    kept, _ = budget.judge(Draft.chain([7] * min(found, budget.depth), name, grade=grade))
    return len(kept)


def test_a_draft_ends_at_the_edge_of_a_step():
    planner = Planner(measured(staircase))
    for _ in range(10):
        tried_out(planner, holds=4)

    assert judged(planner) in (3, 7)


def test_a_grade_that_holds_is_drafted_further_than_one_that_does_not():
    planner = Planner(measured(staircase))
    for _ in range(10):
        tried_out(planner, grade=6, holds=20, rounds=100)
        tried_out(planner, grade=2, holds=0, rounds=20)

    assert judged(planner, grade=6) > 3
    assert judged(planner, grade=2) <= 1


def test_a_forced_length_is_kept_whatever_it_costs():
    planner = tried_out(Planner(measured(staircase)), holds=0)

    budget = planner.budget(("x",), Limits(5, 0, remaining_tokens=100, cache_tokens=300))
    kept, _ = budget.judge(Draft.chain([7] * 5, "x"))

    assert (budget.depth, budget.nodes, len(kept)) == (5, 5, 5)


@pytest.mark.parametrize(("forced", "depth"), [(None, 3), (8, 3), (2, 2), (0, 0)])
def test_a_draft_never_outruns_the_reply(forced, depth):
    planner = tried_out(Planner(measured(staircase)), holds=20)

    budget = planner.budget(("x",), Limits(forced, 0, remaining_tokens=4, cache_tokens=300))

    assert budget.depth == depth


def test_a_tree_gets_the_nodes_that_the_user_allows_where_drafting_pays():
    text = drawn(300, lambda at: 0.9, seed=1, each=0.1)
    planner = Planner(measured(CURVES["flat"]))
    planned(planner, text, CURVES["flat"])

    budget = planner.budget(("x",), Limits(None, 24, remaining_tokens=100, cache_tokens=300))

    assert budget.nodes == 24 >= budget.depth > 0


@pytest.mark.parametrize(("holds", "fewest", "most"), [(8, 7, 15), (1, 1, 3), (0, 0, 1)])
def test_a_tree_that_costs_nothing_to_grow_is_cut_to_its_beginning(holds, fewest, most):
    planner = Planner(measured(staircase))
    for _ in range(6):
        tried_out(planner, holds=holds, rounds=60, found=16)
    planner.begin_reply()
    limits = Limits(None, 16, remaining_tokens=100, cache_tokens=300)

    budget = planner.budget(("x",), limits)
    kept, _ = budget.judge(bush(pairs=8))

    assert budget.nodes == 16 > budget.depth
    assert fewest <= len(kept) <= most
    assert kept == bush(pairs=8).first(len(kept))


def bush(pairs):
    """A chain with a second choice beside each of its nodes."""
    parents = [node for at in range(pairs) for node in [2 * at - 2 if at else -1] * 2]
    count = 2 * pairs
    nothing = (None,) * count
    return Draft(tuple(range(count)), tuple(parents), ("x",) * count, nothing, nothing)


def test_where_nobody_can_draft_nothing_is_asked():
    assert Planner(measured(staircase)).budget((), LIMITS).depth == 0


def test_before_any_cost_is_known_a_round_is_plain():
    planner = Planner(CostModel())

    first = planner.budget(("x",), LIMITS)
    planner.observe(Played(NO_DRAFT, (), 1, 1, 0.0, PASS_SECONDS))
    second = planner.budget(("x",), LIMITS)

    assert first.depth == 0 < second.depth


# Staying alive.


def test_trials_of_what_does_not_pay_come_ever_more_rarely():
    text = drawn(1000, lambda at: 0.0, seed=1, each=0.67)

    spent = planned(Planner(measured(staircase)), text, staircase)

    trials = [at for at, drafted in enumerate(spent.drafted) if drafted]
    gaps = [later - earlier for earlier, later in pairwise(trials[2:])]
    assert 3 <= len(gaps) <= 12
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 4 * gaps[0]


def test_plain_rounds_between_drafts_that_pay_come_ever_more_rarely():
    text = drawn(6000, lambda at: 0.9, seed=1)

    spent = planned(Planner(measured(staircase)), text, staircase)

    plain = [at for at, drafted in enumerate(spent.drafted) if not drafted][1:]
    gaps = [later - earlier for earlier, later in pairwise(plain)]
    assert len(gaps) >= 3
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 4 * gaps[0]


def test_what_one_reply_has_taught_serves_the_next():
    losing = Text([Proposal(0, 63, 0)] * 40, each=0.2)
    planner = Planner(measured(staircase))
    first = planned(planner, losing, staircase)

    second = planned(planner, losing, staircase)

    assert sum(second.drafted) < sum(first.drafted)


# The text does not depend on it.


class RandomPlans(Planner):
    """Decides by a coin, and drops whatever may be dropped."""

    def __init__(self, seed):
        super().__init__()
        self._random = random.Random(f"no draw of the reply's own with seed {seed}")

    def budget(self, proposers, limits):
        chosen = self._random.choice([None, 0, 1, 2, 5, 9])
        if chosen is None:
            return super().budget(proposers, limits)
        depth = min(chosen, limits.remaining_tokens - 1)
        budget = super().budget(proposers, Limits(depth, 0, 100, limits.cache_tokens))
        return type(budget)(depth, depth, judge=self._cut)

    def _cut(self, draft):
        if draft.is_deterministic:
            draft = draft.first(self._random.randrange(len(draft) + 1))
        return draft, self._random.uniform(-1, 1)


def wrong_at_every_third(ids):
    return [8 - token if at % 3 == 2 else token for at, token in enumerate(ids)]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_seed_has_one_text_however_far_is_drafted(temperature):
    lm = TableLM.random(31, vocabulary=9)
    params = SamplingParams(temperature=temperature, seed=4)
    plain = spoken(lm, nobody(), [1, 2, 3], params, most=60)
    said = [1, 2, 3, *plain.ids, *[0] * 10]
    half_right = ScriptedDrafter(lambda ids: wrong_at_every_third(said[len(ids) :]))

    for seed in range(20):
        planner = RandomPlans(seed)
        reply = spoken(
            lm, half_right, [1, 2, 3], params, most=60, draft_length=None, planner=planner
        )

        assert reply.ids == plain.ids
        assert reply.accepted > 0


def test_what_a_round_brought_reaches_the_planner():
    lm = TableLM.random(31, vocabulary=9)
    plain = spoken(lm, nobody(), [1, 2, 3], SamplingParams(), most=30)
    said = [1, 2, 3, *plain.ids, *[0] * 10]
    planner = Planner()

    spoken(
        lm,
        ScriptedDrafter(lambda ids: said[len(ids) :]),
        [1, 2, 3],
        SamplingParams(),
        most=30,
        draft_length=4,
        planner=planner,
    )

    first, *_ = planner.prospects("scripted").survival.shares([None])
    assert first > 0.7
    assert not planner.costs.is_empty
    assert {note.drafted for note in planner.notes(["scripted"], is_forced=True)} >= {4}


def test_rows_that_ride_along_with_a_proposer_count_among_its_costs():
    planner = Planner(measured(staircase))
    limits = Limits(None, 0, remaining_tokens=1000, cache_tokens=300)
    tokens = spent = 0.0

    for _ in range(1000):
        budget = planner.budget(["window"], limits)
        riders = 20 if budget.depth else 0
        drafted = min(budget.depth, 3) if riders else 0
        draft = Draft.chain(range(drafted), "window")
        seconds = simulated.PASS_SECONDS * staircase(1 + drafted + riders)
        outcomes = [Outcome.KEPT, *[Outcome.TURNED_DOWN] * (drafted - 1)][:drafted]
        kept = min(1, drafted)
        planner.observe(Played(draft, outcomes, 1 + kept, 1 + drafted + riders, 1e-5, seconds))
        tokens, spent = tokens + 1 + kept, spent + seconds

    assert tokens / spent > 0.95 / simulated.PASS_SECONDS
