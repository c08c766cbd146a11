"""Whole replies through the engine, from folders on disk: text, events, numbers, any drafter."""

from __future__ import annotations

import threading
from functools import cache, partial
from itertools import pairwise

import pytest

from engine import Drafted, Engine, Finished, FinishReason, Origin, Outcome, Round
from engine.params import ReplyParams, Rule, SamplingParams
from tests.engine.tiny_heads import HEADS, write_heads

SAMPLINGS = {
    "greedy": SamplingParams(),
    "coupled": SamplingParams(temperature=0.8, seed=6),
    "coupled, filters": SamplingParams(
        temperature=1.0, top_k=20, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=2**63 - 1
    ),
}
REJECTION = SamplingParams(temperature=0.8, rule=Rule.REJECTION, seed=6)
QUESTIONS = ("the cat and the cat and the", "and then? and then? and")

samplings = pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS.keys())


@pytest.fixture(scope="module", params=["llama", "gemma"])
def engine(request):
    folder = request.getfixturevalue(f"{request.param}_folder")
    return Engine.load(folder, device="cpu", dtype="float64")


@pytest.fixture(scope="module")
def specs(engine, draft_folder, padded_draft_folder, other_folder, tmp_path_factory):
    """Every listed drafter, and the shapes that the list only hints at."""
    heads = {
        family: write_heads(tmp_path_factory.mktemp(family), family, engine.lm) for family in HEADS
    }
    listed = [
        f"{choice.spec}:{heads.get(choice.spec, draft_folder)}" if choice.needs else choice.spec
        for choice in engine.drafter_choices()
    ]
    return [
        *listed,
        "layer-skip@1",
        f"draft-model:{padded_draft_folder}",
        f"draft-model:{other_folder}",
        f"shared-draft-model:{other_folder}",
        f"suffix+draft-model:{other_folder}",
        f"draft-model:{engine.source}",
    ]


@pytest.fixture(scope="module")
def said(engine):
    """Conversations with this engine, held once for all tests that only read them."""
    return cache(partial(conversation, engine))


def answered(session, text, params):
    return list(session.reply(text, params, threading.Event()))


def conversation(engine, spec, sampling, *, draft_length=4, most=12, **options):
    """Two replies of one conversation, and their events."""
    session = engine.new_session(drafter=spec)
    session.drafting.draft_length = draft_length
    params = ReplyParams(sampling, max_new_tokens=most, **options)
    events = [answered(session, question, params) for question in QUESTIONS]
    return session, events


def rounds_of(events):
    return [event for event in events if isinstance(event, Round)]


def end_of(events) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def tokens_of(events):
    return [token for event in rounds_of(events) for token in event.tokens]


def text_of(events):
    return "".join(token.text for token in tokens_of(events)) + end_of(events).text


@samplings
def test_a_conversation_reads_the_same_with_every_drafter(said, specs, sampling):
    _, plain = said("off", sampling)

    for spec in specs:
        _, events = said(spec, sampling)

        for ours, theirs in zip(events, plain, strict=True):
            assert [token.id for token in tokens_of(ours)] == [t.id for t in tokens_of(theirs)], (
                spec
            )
            assert text_of(ours) == text_of(theirs)
            assert end_of(ours).reason == end_of(theirs).reason


@pytest.mark.parametrize("sampling", [*SAMPLINGS.values(), REJECTION], ids=str)
def test_events_account_for_every_token_and_every_node(said, specs, sampling):
    for spec in specs:
        session, (events, _) = said(spec, sampling)

        tokens, rounds = tokens_of(events), rounds_of(events)
        assert text_of(events) == session.messages[1].content
        first = tokens[0].position
        assert [token.position for token in tokens] == list(range(first, first + len(tokens)))
        assert first == end_of(events).stats.prompt_tokens
        for place, done in enumerate(rounds):
            check_round(done)
            assert done.index == place
            assert done.drafter == spec.partition(":")[0].partition("@")[0]


def check_round(done):
    kept = [node for node in done.nodes if node.outcome is Outcome.KEPT]
    accepted = [token for token in done.tokens if token.origin is Origin.DRAFT_ACCEPTED]
    turned_down = any(node.outcome is Outcome.TURNED_DOWN for node in done.nodes)
    own = done.tokens[len(accepted) :]
    assert [token.depth for token in done.tokens] == list(range(1, len(done.tokens) + 1))
    assert [(node.id, node.q) for node in kept] == [(token.id, token.q) for token in accepted]
    assert list(done.tokens[: len(accepted)]) == accepted
    assert [token.origin for token in own] in (
        [],
        [Origin.RESAMPLED if turned_down else Origin.TARGET_ONLY],
    )
    assert all(0 < token.p <= 1 for token in done.tokens)
    assert all(token.q is None for token in own)
    assert done.rows >= 1 + len(done.nodes)
    assert min(done.draft_seconds, done.pass_seconds, done.other_seconds) >= 0


@pytest.mark.parametrize("draft_length", [2, 4, 8])
def test_the_numbers_at_the_end_are_the_sums_of_the_rounds(said, specs, draft_length):
    for spec in specs:
        _, (events, _) = said(spec, REJECTION, draft_length=draft_length)

        rounds, stats = rounds_of(events), end_of(events).stats
        assert stats.tokens == sum(len(done.tokens) for done in rounds)
        assert stats.rounds == len(rounds)
        assert stats.drafted == sum(len(done.nodes) for done in rounds)
        assert stats.accepted == sum(done.accepted for done in rounds)
        assert stats.resampled + stats.accepted <= stats.tokens
        assert stats.mean_accepted_length == stats.tokens / len(rounds)
        assert stats.decode_seconds == pytest.approx(sum(done.seconds for done in rounds))
        assert (stats.acceptance_rate is None) == (stats.drafted == 0)
        assert all(0 <= share <= 1 for share in stats.survival_by_depth)
        assert stats.params.sampling == REJECTION


def test_the_target_as_its_own_drafter_is_accepted_whole(said, engine):
    for sampling in (*SAMPLINGS.values(), REJECTION):
        _, replies = said(f"draft-model:{engine.source}", sampling)

        for events in replies:
            assert end_of(events).stats.acceptance_rate == 1.0
            assert end_of(events).stats.resampled == 0


def test_a_random_drafter_is_turned_down_and_harms_nothing(said, draft_folder):
    _, plain = said("off", SAMPLINGS["greedy"])

    _, replies = said(f"draft-model:{draft_folder}", SAMPLINGS["greedy"])

    assert [text_of(events) for events in replies] == [text_of(events) for events in plain]
    for events in replies:
        stats = end_of(events).stats
        assert stats.accepted < 0.2 * stats.drafted


@samplings
def test_changing_the_drafter_between_and_during_replies_changes_no_token(
    said, engine, specs, sampling
):
    _, plain = said("off", sampling)
    session = engine.new_session()
    params = ReplyParams(sampling, max_new_tokens=12)
    drafters = [engine.drafter(spec) for spec in specs]

    replies, used = [], []
    for question in QUESTIONS:
        events = []
        for event in session.reply(question, params, threading.Event()):
            events.append(event)
            if isinstance(event, Round):
                used.append(event.drafter)
                session.drafting.drafter = drafters[len(used) % len(drafters)]
                session.drafting.draft_length = 1 + len(used) % 5
        replies.append(events)

    assert [text_of(events) for events in replies] == [text_of(events) for events in plain]
    assert [list(dict.fromkeys(d.drafter for d in rounds_of(e))) for e in replies] == [
        list(end_of(events).stats.drafters) for events in replies
    ]


@samplings
def test_answering_again_with_the_same_seed_says_the_same(engine, specs, sampling):
    params = ReplyParams(sampling, max_new_tokens=12)
    for spec in specs:
        session = engine.new_session(drafter=spec)
        events = answered(session, QUESTIONS[0], params)

        again = answered(session, None, params)

        assert text_of(again) == text_of(events)
        assert len(session.messages) == 2


@samplings
def test_another_seed_says_something_else_above_temperature_0(said, sampling):
    _, (first, _) = said("off", sampling)

    _, (second, _) = said("off", sampling.with_seed(77))

    assert (text_of(first) == text_of(second)) == sampling.is_greedy


@samplings
@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_limit_is_met_exactly_with_every_drafter(said, specs, sampling, most):
    for spec in specs:
        _, (events, _) = said(spec, sampling, draft_length=5, most=most)

        assert len(tokens_of(events)) == most
        assert end_of(events).reason is FinishReason.LENGTH


@samplings
def test_a_stop_text_ends_every_reply_at_one_place(said, specs, sampling):
    _, (whole, _) = said("off", sampling)
    text = text_of(whole)
    stop = text[len(text) // 2 :][:2]
    before = text[: text.index(stop)]

    for spec in specs:
        _, (events, _) = said(spec, sampling, stop_texts=(stop,))

        assert text_of(events) == before
        assert end_of(events).reason is FinishReason.STOP_TEXT
        assert len(tokens_of(events)) <= len(tokens_of(whole))


def test_a_preview_is_never_more_than_the_draft_that_is_judged_next(said, specs):
    for spec in specs:
        _, (events, _) = said(spec, SAMPLINGS["coupled"])

        for event, follower in pairwise(events):
            if isinstance(event, Drafted):
                assert isinstance(follower, Round)
                assert follower.drafter == event.drafter
                assert follower.nodes
