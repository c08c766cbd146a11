"""EAGLE's heads: in step with the target whatever happens, and what their trees are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.draft import ROOT, Draft
from engine.drafters.drafter import Context
from engine.drafters.eagle import EagleDrafter
from engine.drafters.eagle_loading import load_eagle, load_eagle3
from engine.drafters.eagle_memory import EagleMemory
from engine.drafters.eagle_tree import ConfidentPlan, FixedPlan, Plan
from engine.drafters.projection import DenseProjection
from engine.drafters.tree_shape import RANKS, best_shape
from engine.models.transformers_lm import TransformersLM
from engine.params import Rule, SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine import models_for_tests as tiny
from tests.engine import tiny_heads
from tests.engine.fakes import TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, rules
from tests.engine.statistics import misfit, reply_law

if TYPE_CHECKING:
    from collections.abc import Callable

PLANS = {"fixed": FixedPlan, "confident": ConfidentPlan}
VOCABULARY = 40
GREEDY = SamplingParams()

plans = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
temperatures = pytest.mark.parametrize("temperature", [0.0, 0.8])


@pytest.fixture(scope="module")
def lm():
    return TransformersLM(tiny.llama(5, vocabulary=VOCABULARY, layers=4))


@pytest.fixture(scope="module")
def heads(lm, tmp_path_factory):
    """Random heads for the target, one of each kind."""
    width, folder = tiny_heads.width_of(lm), tmp_path_factory.mktemp("heads")
    tiny_heads.write(folder / "eagle", *tiny_heads.eagle(width, VOCABULARY))
    tiny_heads.write(folder / "eagle3", *tiny_heads.eagle3(width, VOCABULARY, layers=4))
    return {
        "eagle": load_eagle(str(folder / "eagle"), lm, "eagle"),
        "eagle3": load_eagle3(str(folder / "eagle3"), lm, "eagle3"),
    }


kinds = pytest.mark.parametrize("kind", ["eagle", "eagle3"])


def drafter_of(head, lm, plan: Callable[[int, int], Plan] = ConfidentPlan):
    return EagleDrafter(head, lm, plan, name="eagle")


def proposed(drafter, ids, budget, params=GREEDY):
    return drafter.propose(Context(ids, len(ids)), budget, params, Noise(params.seed))


# In step with the target.


class Chat:
    """A target's memo and a drafter's memory beside it, as the loop would lead them."""

    def __init__(self, head, lm):
        self.lm, self.taps = lm, head.taps
        self.memo = lm.new_memo()
        self.memory = EagleMemory(head, lm)
        self.ids: list[int] = []

    def read(self, ids, *, told):
        """A prompt, or a rewind to an earlier place and another way on."""
        self.ids = list(ids)
        for chunk in self.lm.read(self.memo, ids, self.taps):
            if told:
                seen = ids[: chunk.first + chunk.rows]
                self.memory.observe(seen, chunk.first, chunk.hidden)

    def round(self, draft_ids, accepted, token, *, told, ended=False):
        """A pass over a tree with the right path beside wrong nodes; then it is committed."""
        draft = bush(draft_ids)
        first = len(self.ids) - 1
        scores = self.lm.score(self.memo, self.ids, draft, taps=self.taps)
        path = [2 * place + 1 for place in range(accepted)]
        scores.keep(path)
        self.ids += [draft.ids[node] for node in path] + ([] if ended and path else [token])
        if told:
            rows = [0, *(1 + node for node in path)]
            hidden = {tap: states[rows] for tap, states in scores.hidden.items()}
            self.memory.observe(self.ids, first, hidden)


def bush(ids):
    """Each id beside a wrong sibling that comes first."""
    tokens, parents, node = [], [], ROOT
    for token in ids:
        tokens += [(token + 1) % VOCABULARY, token]
        parents += [node] * 2
        node = len(tokens) - 1
    count = len(tokens)
    return Draft(tuple(tokens), tuple(parents), ("x",) * count, (None,) * count, (None,) * count)


token_ids = st.integers(0, VOCABULARY - 1)
rounds = st.tuples(
    st.just("round"),
    st.lists(token_ids, max_size=3),
    st.integers(0, 3),
    token_ids,
    st.booleans(),
    st.booleans(),
)
prompts = st.tuples(
    st.just("read"), st.integers(0, 12), st.lists(token_ids, min_size=1, max_size=6), st.booleans()
)
histories = st.lists(
    st.one_of(rounds, rounds, prompts, st.just(("draft",))), min_size=1, max_size=8
)


@kinds
@settings(deadline=None, max_examples=40)
@given(history=histories, begin=st.lists(token_ids, min_size=2, max_size=8))
def test_after_any_history_it_is_where_a_fresh_computation_is(kind, lm, heads, history, begin):
    head = heads[kind]
    chat = Chat(head, lm)
    chat.read(begin, told=True)

    for event in history:
        match event:
            case ("read", kept, more, told):
                chat.read([*chat.ids[:kept], *more], told=told)
            case ("round", draft_ids, accepted, token, told, ended):
                accepted = min(accepted, len(draft_ids))
                chat.round(draft_ids, accepted, token, told=told, ended=ended)
            case _ if len(chat.ids) > 1:
                chat.memory.catch_up(chat.ids)

    if len(chat.ids) > 1:
        guess = chat.memory.catch_up(chat.ids)
        expected = EagleMemory(head, lm).catch_up(chat.ids)
        torch.testing.assert_close(guess, expected, rtol=1e-9, atol=1e-9)
        rows = len(chat.ids) - 1
        fresh = by_hand(head, lm, chat.ids, [])
        torch.testing.assert_close(guess, fresh[rows - 1 :], rtol=1e-9, atol=1e-9)


def by_hand(head, lm, ids, path):
    """All rows in one go on a cache of their own, and then those of a path."""
    hidden = {tap: [] for tap in head.taps}
    for chunk in lm.read(lm.new_memo(), ids, head.taps):
        for tap in head.taps:
            hidden[tap].append(chunk.hidden[tap])
    features = head.features({tap: torch.cat(parts) for tap, parts in hidden.items()})
    cache = head.layer.new_cache()
    out = head.step(features, ids[1:], range(len(ids) - 1), cache, 0)
    for place, token in enumerate(path):
        row = len(ids) - 1 + place
        out = torch.cat([out, head.step(out[-1:], [token], [row], cache, row)])
    return out


@kinds
def test_what_a_told_history_needs_is_never_read_again(kind, lm, heads):
    class Reading(TransformersLM):
        reads = 0

        def read(self, memo, ids, taps=(), replies=()):
            self.reads += 1
            return super().read(memo, ids, taps, replies)

    target = Reading(tiny.llama(5, vocabulary=VOCABULARY, layers=4))
    drafter = drafter_of(heads[kind], target)

    for prompt in (LONG_PROMPT[:20], [*LONG_PROMPT[:12], 3, 4], [5, 6, 7]):
        prompt = [token % VOCABULARY for token in prompt]
        spoken(target, drafter, prompt, SamplingParams(), most=9)

    assert target.reads == 3  # the three prompts


@kinds
def test_changed_in_mid_chat_it_drafts_at_once(kind, lm, heads):
    memo, prompt = lm.new_memo(), [3, 1, 4, 1, 5, 9, 2, 6]
    for _ in lm.read(memo, prompt):
        pass

    reply = spoken(lm, drafter_of(heads[kind], lm), prompt, SamplingParams(), most=6, memo=memo)

    fresh = spoken(lm, drafter_of(heads[kind], lm), prompt, SamplingParams(), most=6)
    assert len(reply.rounds[0].draft) == 3
    assert [done.draft.ids for done in reply.rounds] == [done.draft.ids for done in fresh.rounds]


def test_a_single_token_gives_no_row_to_draft_from(lm, heads):
    assert not len(proposed(drafter_of(heads["eagle"], lm), [3], Budget(3, 3)))


@kinds
@plans
@pytest.mark.parametrize("tree_nodes", [0, 9])
def test_a_target_in_half_precision_is_drafted_for_in_it(kind, plan, tree_nodes, tmp_path):
    half = TransformersLM(tiny.llama(5, vocabulary=VOCABULARY, layers=4).bfloat16())
    made = {"eagle": tiny_heads.eagle, "eagle3": tiny_heads.eagle3}[kind](
        tiny_heads.width_of(half), VOCABULARY, **({"layers": 4} if kind == "eagle3" else {})
    )
    load = {"eagle": load_eagle, "eagle3": load_eagle3}[kind]
    head = load(str(tiny_heads.write(tmp_path, *made)), half, kind)

    reply = spoken(
        half,
        drafter_of(head, half, plan),
        [3, 1, 4, 1, 5],
        SamplingParams(temperature=0.5),
        most=8,
        tree_nodes=tree_nodes,
    )

    assert isinstance(head.layer.out, DenseProjection)
    assert head.layer.out.weight.dtype == torch.bfloat16
    assert len(reply.ids) == 8
    assert reply.drafted > 0


# Trees.


@kinds
@plans
@rules
@temperatures
def test_every_node_has_the_probability_that_its_own_path_gives_it(
    kind, plan, rule, temperature, lm, heads
):
    head, ids = heads[kind], [3, 1, 4, 1, 5, 9]
    params = SamplingParams(temperature=temperature, rule=rule, seed=3)

    draft = proposed(drafter_of(head, lm, plan), ids, Budget(4, 14), params)

    assert len(draft) == 14
    assert draft.is_deterministic
    for node, parent in enumerate(draft.parents):
        path = list(draft.path_ids(parent))
        logits = head.logits(by_hand(head, lm, ids, path)[-1:])
        log_q = head.vocabulary.log_q(logits, [[*ids, *path]], params)[0]
        place = head.vocabulary.tokens(torch.arange(len(log_q))).index(draft.ids[node])
        assert draft.q[node] == pytest.approx(log_q[place].exp().item())


def test_a_fixed_tree_has_the_best_shape_and_its_ranks(lm, heads):
    head, ids = heads["eagle"], [3, 1, 4, 1, 5, 9]

    draft = proposed(drafter_of(head, lm, FixedPlan), ids, Budget(3, 12))

    shape = best_shape(12, [RANKS] * 3)
    by_parent = {}
    for parent, rank in zip(shape.parents, shape.ranks, strict=True):
        by_parent.setdefault(parent, []).append(rank)
    assert sorted(map(len, by_parent.values())) == sorted(map(len, draft.children.values()))
    for parent, nodes in draft.children.items():
        logits = head.logits(by_hand(head, lm, ids, draft.path_ids(parent))[-1:])[0]
        best = logits.argsort(descending=True).tolist()
        assert [draft.ids[node] for node in nodes] == best[: len(nodes)]


@kinds
@pytest.mark.parametrize("sharpness", [1.0, 1.7])
@pytest.mark.parametrize("nodes", [5, 9, 16, 30])
def test_a_confident_tree_takes_the_most_probable_paths_of_those_it_looked_at(
    kind, nodes, sharpness, lm, heads
):
    head, ids = heads[kind], [3, 1, 4, 1, 5, 9]
    head = replace(head, vocabulary=replace(head.vocabulary, sharpness=sharpness))

    draft = proposed(drafter_of(head, lm), ids, Budget(3, nodes))

    assert len(draft) == nodes
    width = min(10, (nodes + 1) // 2)
    expected = by_brute_force(head, lm, ids, width=width, depth=3)[:nodes]
    paths = {tuple(draft.path_ids(node)) for node in range(nodes)}
    assert paths == {path for path, _ in expected}


def by_brute_force(head, lm, ids, *, width, depth):
    """EAGLE-2 in its own words: expand the best of each level, then the best of all."""
    found, level = [], [((), 0.0)]
    for _ in range(depth):
        grown = []
        for path, confidence in level:
            logits = head.logits(by_hand(head, lm, ids, path)[-1:])[0]
            best = (head.vocabulary.sharpness * logits).log_softmax(-1).topk(width)
            tokens = head.vocabulary.tokens(best.indices)
            for token, value in zip(tokens, best.values.tolist(), strict=True):
                grown.append(((*path, token), confidence + value))
        found += grown
        level = sorted(grown, key=lambda entry: -entry[1])[:width]
    return sorted(found, key=lambda entry: -entry[1])


@plans
@rules
def test_trees_follow_the_targets_law(plan, rule, tmp_path):
    end = frozenset([0])
    lm = TableLM.random(31, end_ids=end)
    tiny_heads.write(tmp_path, *tiny_heads.eagle(tiny_heads.width_of(lm), lm.vocabulary))
    drafter, memo = drafter_of(load_eagle(str(tmp_path), lm, "eagle"), lm, plan), lm.new_memo()

    texts, accepted = [], 0
    for seed in range(600):
        params = SamplingParams(temperature=0.8, rule=rule, seed=seed)
        reply = spoken(
            lm, drafter, [1, 2, 3], params, most=3, draft_length=2, tree_nodes=5, memo=memo
        )
        texts.append(tuple(reply.ids))
        accepted += reply.accepted

    law = reply_law(
        lambda ids: lm.logits(ids).tolist(),
        [1, 2, 3],
        SamplingParams(temperature=0.8),
        length=3,
        end_ids=end,
    )
    assert misfit(texts, law) < 3.7
    assert accepted


@kinds
@plans
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"temperature": 0.8},
        {"temperature": 1.2, "top_k": 3, "top_p": 0.9},
        {"temperature": 1.0, "repetition_penalty": 1.6},
    ],
    ids=["greedy", "temperature", "filters", "penalty"],
)
def test_coupled_text_is_the_same_with_every_tree(kind, plan, chosen, lm, heads):
    params = SamplingParams(**chosen, rule=Rule.COUPLED, seed=7)
    plain = spoken(lm, nobody(), [3, 1, 4, 1, 5], params, most=16)

    for nodes in (4, 15, 40):
        reply = spoken(
            lm,
            drafter_of(heads[kind], lm, plan),
            [3, 1, 4, 1, 5],
            params,
            most=16,
            draft_length=3,
            tree_nodes=nodes,
        )
        assert reply.ids == plain.ids
        assert reply.drafted > 0


@plans
def test_nothing_grows_behind_an_end_of_turn(plan, tmp_path):
    lm = TableLM.random(4, vocabulary=6, end_ids=frozenset(range(6)))
    tiny_heads.write(tmp_path, *tiny_heads.eagle(tiny_heads.width_of(lm), 6))
    drafter = drafter_of(load_eagle(str(tmp_path), lm, "eagle"), lm, plan)

    assert len(proposed(drafter, [1, 2, 3], Budget(4, 4))) == 1
    assert set(proposed(drafter, [1, 2, 3], Budget(4, 9)).depths) == {1}


# Heads that must be right.


@pytest.fixture(scope="module")
def token_by_token():
    """A model whose next token follows from the last one alone, its states being embeddings."""
    model = tiny.llama(6, vocabulary=VOCABULARY, layers=4, sharpness=12.0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
        table = model.model.embed_tokens.weight
        table /= table.pow(2).mean(-1, keepdim=True).sqrt()
    return model


def knowing(folder, kind, model):
    """A head that hands the next token's embedding on."""
    width = model.config.hidden_size
    tensors, config = {"eagle": tiny_heads.eagle, "eagle3": tiny_heads.eagle3}[kind](
        width, VOCABULARY
    )
    prefix = {"eagle": "layers.0.", "eagle3": "midlayer."}[kind]
    ones, nothing = torch.ones(width).double(), torch.zeros(width, width).double()
    eye = torch.eye(width).double()
    tensors[f"{prefix}mlp.down_proj.weight"].zero_()
    if kind == "eagle":
        tensors[f"{prefix}self_attn.o_proj.weight"].zero_()
        tensors |= {"fc.weight": torch.cat([eye, nothing], 1), "fc.bias": 0.0 * ones}
        return tiny_heads.write(folder, tensors, config)
    # Queries and keys that are all alike turn with their positions, so a row looks at itself.
    alike = 20.0 * torch.ones(width).double()
    tensors |= {
        "fc.weight": torch.zeros(width, 3 * width).double(),
        "midlayer.input_layernorm.weight": ones,
        "midlayer.hidden_norm.weight": 0.0 * ones,
        "norm.weight": ones,
        "lm_head.weight": model.lm_head.weight.detach().clone(),
        "midlayer.self_attn.q_proj.weight": torch.zeros(width, 2 * width).double(),
        "midlayer.self_attn.q_proj.bias": alike,
        "midlayer.self_attn.k_proj.weight": torch.zeros(width, 2 * width).double(),
        "midlayer.self_attn.k_proj.bias": alike.clone(),
        "midlayer.self_attn.v_proj.weight": torch.cat([eye, nothing], 1),
        "midlayer.self_attn.o_proj.weight": eye.clone(),
    }
    del tensors["d2t"], tensors["t2d"]
    one_head = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": width}
    return tiny_heads.write(folder, tensors, config | one_head | {"norm_before_residual": True})


@kinds
@pytest.mark.parametrize(
    ("rule", "temperature", "tree_nodes"),
    [
        # Not a tree under REJECTION above 0: its nodes are the likeliest, and the target draws.
        (Rule.COUPLED, 0.0, 0),
        (Rule.COUPLED, 0.0, 12),
        (Rule.COUPLED, 0.8, 0),
        (Rule.COUPLED, 0.8, 12),
        (Rule.REJECTION, 0.0, 12),
        (Rule.REJECTION, 0.8, 0),
    ],
)
def test_a_head_that_must_be_right_is_accepted_whole(
    kind, rule, temperature, tree_nodes, token_by_token, tmp_path
):
    lm = TransformersLM(token_by_token)
    load = {"eagle": load_eagle, "eagle3": load_eagle3}[kind]
    head = load(str(knowing(tmp_path, kind, token_by_token)), lm, kind)
    params = SamplingParams(temperature=temperature, rule=rule, seed=2)

    reply = spoken(
        lm,
        drafter_of(head, lm),
        [3, 1, 4, 1, 5],
        params,
        most=20,
        draft_length=4,
        tree_nodes=tree_nodes,
    )

    assert reply.accepted == 16
    assert len(reply.rounds) == 4
