"""Auto: whoever promises most drafts, the cheapest asked first; its nodes say who it was."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from engine.draft import NO_DRAFT, Draft
from engine.drafters import FAMILIES
from engine.drafters.auto import Auto
from engine.drafters.drafter import Context
from engine.params import Rule, SamplingParams
from engine.planning import Budget, Limits, Planner, Played
from engine.sampling import Noise
from tests.engine.fakes import Bench, ScriptedDrafter, TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, rules
from tests.engine.simulated import (
    CACHE_TOKENS,
    PASS_SECONDS,
    Proposal,
    Text,
    drawn,
    measured,
    outcomes_of,
    planned,
    staircase,
)
from tests.engine.statistics import misfit, reply_law
from tests.engine.test_planning import RandomPlans
from tests.engine.tiny_heads import write_heads

[AUTO] = [family for family in FAMILIES if family.name == "auto"]


class Named(ScriptedDrafter):
    """Proposes the same whenever it is asked, and counts how often that is."""

    def __init__(self, name, ids=(5, 6, 7)):
        super().__init__(lambda _: ids)
        self.name, self.proposers, self.asked = name, (name,), 0

    def propose(self, context, budget, params, noise):
        self.asked += 1
        return super().propose(context, budget, params, noise)


def proposed(auto, budget):
    return auto.propose(Context([1, 2], 2), budget, SamplingParams(), Noise(0))


def shared(**worths):
    """A budget of three ahead for each name, worth so much."""
    shares = {name: Budget(3, 3, worth) for name, worth in worths.items()}
    return Budget(3, 3, shares=shares, judge=lambda draft: (draft, worth_of(draft, worths)))


def worth_of(draft, worths):
    return worths[draft.drafters[0]] if len(draft) else 0.0


# Who drafts.


def test_the_one_that_promises_most_drafts():
    auto = Auto([Named("cheap"), Named("dear")])

    assert proposed(auto, shared(cheap=0.4, dear=1.5)).drafters == ("dear",) * 3
    assert proposed(auto, shared(cheap=1.4, dear=0.5)).drafters == ("cheap",) * 3


def test_the_dear_one_is_not_even_asked_where_it_promises_less():
    cheap, dear = Named("cheap"), Named("dear")

    proposed(Auto([cheap, dear]), shared(cheap=1.4, dear=0.5))

    assert (cheap.asked, dear.asked) == (1, 0)


def test_the_dear_one_drafts_where_the_cheap_one_finds_nothing():
    auto = Auto([Named("cheap", ids=()), Named("dear")])

    assert proposed(auto, shared(cheap=9.0, dear=0.1)).drafters == ("dear",) * 3


def test_with_a_forced_length_the_first_that_finds_something_drafts():
    forced = Budget(2, 2)

    assert proposed(Auto([Named("cheap"), Named("dear")]), forced).drafters == ("cheap",) * 2
    assert proposed(Auto([Named("cheap", ()), Named("dear")]), forced).drafters == ("dear",) * 2


def test_a_drafter_without_a_budget_is_left_alone():
    auto = Auto([Named("cheap", ids=()), Named("dear")])
    budget = Budget(3, 3, shares={"cheap": Budget(3, 3, 1.0), "dear": Budget(0, 0)})

    assert len(proposed(auto, budget)) == 0


def test_all_of_them_learn_from_every_round(lms):
    drafters = [Named("cheap", ids=(1, 2, 3)), Named("dear")]

    reply = spoken(lms["llama"], Auto(drafters), LONG_PROMPT, SamplingParams(), most=8)

    told = [len(drafter.observed) for drafter in drafters]
    assert told[0] == told[1] >= len(reply.rounds)


def test_what_was_drawn_is_taken_whoever_promises_more():
    row = torch.full((9,), 1 / 9, dtype=torch.float64)
    drawing = ScriptedDrafter(lambda _: Draft.chain([3], "drawing", q_rows=[row]))
    drawing.name = "drawing"

    draft = proposed(Auto([drawing, Named("dear")]), shared(drawing=0.1, dear=9.0))

    assert draft.drafters == ("drawing",)


# How well it chooses, on simulated rounds.


class FromText(ScriptedDrafter):
    """Proposes from a simulated text, and adds up what that would have taken."""

    def __init__(self, text):
        super().__init__(lambda ids: ())
        self.text, self.name, self.proposers, self.seconds = text, text.name, (text.name,), 0.0

    def propose(self, context, budget, params, noise):
        proposal = self.text.proposals[len(context.ids)]
        count = min(budget.depth, proposal.found)
        self.seconds += self.text.seconds(count) if budget.depth else 0.0
        return Draft.chain([7] * count, self.name, grade=proposal.grade) if count else NO_DRAFT


def seconds_by_auto(*texts):
    drafters = [FromText(text) for text in texts]
    auto, planner, place, seconds = Auto(drafters), Planner(measured(staircase)), 0, 0.0
    planner.begin_reply()
    while place < len(texts[0]):
        limits = Limits(None, 0, len(texts[0]) - place, CACHE_TOKENS)
        budget = planner.budget(auto.proposers, limits)
        before = sum(drafter.seconds for drafter in drafters)
        found = auto.propose(Context([0] * place, 0), budget, SamplingParams(), Noise(0))
        draft, _ = budget.judge(found)
        draft_seconds = sum(drafter.seconds for drafter in drafters) - before
        [holds] = [t.proposals[place].holds for t in texts if t.name in draft.drafters] or [0]
        tokens = min(1 + min(len(draft), holds), limits.remaining_tokens)
        spent = draft_seconds + PASS_SECONDS * staircase(1 + len(draft))
        rows = 1 + len(draft)
        planner.observe(
            Played(draft, outcomes_of(len(draft), holds), tokens, rows, draft_seconds, spent)
        )
        place, seconds = place + tokens, seconds + spent
    return seconds


def lookup(seed):
    """What an n-gram drafter finds: now and then a long copy, which holds."""
    generator, proposals = random.Random(seed), []
    while len(proposals) < 1500:
        copied = 24 if generator.random() < 0.03 else 0
        proposals += [Proposal(6, 63, left) for left in range(copied, 0, -1)] or [Proposal(0, 0, 0)]
    return Text(proposals[:1500], name="lookup")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("each", [0.1, 0.67])
def test_it_is_as_good_as_the_best_of_those_it_chooses_among(share, each):
    cheap = lookup(seed=3)
    dear = replace(drawn(1500, lambda at: share, seed=4, each=each), name="model")

    together = seconds_by_auto(cheap, dear)

    alone = [planned(Planner(measured(staircase)), text, staircase) for text in (cheap, dear)]
    assert together <= 1.03 * min(spent.seconds for spent in alone)


def test_it_gains_from_both_where_both_have_their_places():
    cheap = lookup(seed=3)
    dear = replace(drawn(1500, lambda at: 0.75, seed=4, each=0.1), name="model")

    together = seconds_by_auto(cheap, dear)

    alone = [planned(Planner(measured(staircase)), text, staircase) for text in (cheap, dear)]
    assert together <= 0.85 * min(spent.seconds for spent in alone)


# Whom it takes in.


@dataclass
class Shipping(Bench):
    """A target for which drafters ship; folders: of each by its family's name."""

    folders: dict[str, str] = field(default_factory=dict)

    def shipped(self, family):
        return self.folders.get(family)


@pytest.fixture
def shipping(lms, draft_lm, tmp_path):
    def ship(*families):
        lm = lms["llama"]
        folders = {name: str(write_heads(tmp_path / name, name, lm)) for name in families}
        return Shipping(lm, draft_lm, folders)

    return ship


def members(bench, choice=None):
    return AUTO.build(bench, choice).proposers


def test_without_a_draft_model_it_loads_none(lms, draft_lm):
    assert members(Bench(lms["llama"], draft_lm)) == ("ngram", "layer-skip")


def test_a_draft_model_is_taken_in_where_it_is_named(lms, draft_lm):
    everyone = ("ngram", "draft-model", "layer-skip")

    assert members(Bench(lms["llama"], draft_lm), "anywhere") == everyone


def test_the_best_of_what_ships_is_taken_in(shipping):
    assert members(shipping("medusa", "eagle")) == ("ngram", "eagle", "layer-skip")
    assert members(shipping("medusa", "eagle3", "eagle")) == ("ngram", "eagle3", "layer-skip")


def test_a_draft_model_that_is_named_takes_the_place_of_what_ships(shipping):
    assert members(shipping("eagle"), "anywhere") == ("ngram", "draft-model", "layer-skip")


def test_what_ships_damaged_is_passed_over(shipping):
    bench = shipping("medusa", "eagle3")
    Path(bench.folders["eagle3"], "model.safetensors").write_bytes(b"no tensors")

    assert members(bench) == ("ngram", "medusa", "layer-skip")


def test_layer_skip_is_taken_in_only_where_its_trial_paid(lms, draft_lm):
    class Sceptic(Bench):
        def pays(self, family):
            return False

    assert members(Sceptic(lms["llama"], draft_lm)) == ("ngram",)


# What comes out.


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_coupled_text_does_not_depend_on_who_drafts_how_far(temperature, seed, lms, draft_lm):
    params = SamplingParams(temperature=temperature, seed=5)
    bench = Bench(lms["llama"], draft_lm)
    plain = spoken(bench.lm, nobody(), LONG_PROMPT, params, most=24)

    reply = spoken(
        bench.lm,
        AUTO.build(bench, "anywhere"),
        LONG_PROMPT,
        params,
        most=24,
        draft_length=None,
        planner=RandomPlans(seed),
    )

    assert reply.ids == plain.ids
    assert len({name for done in reply.rounds for name in done.draft.drafters}) >= 2


@rules
def test_replies_follow_the_targets_law_however_it_is_planned(rule):
    end, prompt = frozenset([0]), [1, 2, 3, 1, 2, 3, 4, 1, 2]
    lm = TableLM.random(31, end_ids=end)
    bench = Bench(lm, TableLM.random(2, end_ids=end))
    auto, memo, texts, proposers = AUTO.build(bench, "anywhere"), lm.new_memo(), [], set()

    for seed in range(1200):
        reply = spoken(
            lm,
            auto,
            prompt,
            SamplingParams(temperature=0.8, rule=rule, seed=seed),
            most=3,
            draft_length=None,
            planner=RandomPlans(seed),
            memo=memo,
        )
        texts.append(tuple(reply.ids))
        proposers |= {name for done in reply.rounds for name in done.draft.drafters}

    law = reply_law(
        lambda ids: lm.logits(ids).tolist(),
        prompt,
        SamplingParams(temperature=0.8),
        length=3,
        end_ids=end,
    )
    assert misfit(texts, law) < 3.7  # one in ten thousand
    assert proposers >= {"ngram", "draft-model"}


def test_nodes_and_the_round_say_who_proposed_and_who_was_in_charge(lms, draft_lm):
    bench = Bench(lms["llama"], draft_lm)
    params = SamplingParams(rule=Rule.COUPLED)

    reply = spoken(
        bench.lm, AUTO.build(bench, None), LONG_PROMPT, params, most=12, planner=Planner()
    )

    assert {done.drafter for done in reply.rounds} == {"auto"}
    names = {name for done in reply.rounds for name in done.draft.drafters}
    assert {"ngram"} <= names <= {"ngram", "layer-skip"}
